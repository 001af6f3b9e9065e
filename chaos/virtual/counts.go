package virtual

import "github.com/seed-624411e5/redlock/chaos/history"

// Counts are numbers of events. A batch with small numbers proves nothing.
type Counts struct {
	// Acquired, Refused and Failed are acquisitions, those that found the key held, and those that failed otherwise.
	Acquired, Refused, Failed int
	// Contended counts the runs in which clients competed for a key.
	Contended int
	// Commands are those that masters performed, and Held are the messages that a fault held back.
	Commands, Held int
	// Faults are those that came on, by their kind.
	Faults map[FaultKind]int
}

func (c *Counts) returned(e *history.Event) {
	switch e.Outcome {
	case history.Acquired:
		c.Acquired++
	case history.Held:
		c.Refused++
	default:
		c.Failed++
	}
}

// Add adds the counts of other runs.
func (c *Counts) Add(o Counts) {
	c.Acquired += o.Acquired
	c.Refused += o.Refused
	c.Failed += o.Failed
	c.Contended += o.Contended
	c.Commands += o.Commands
	c.Held += o.Held
	if c.Faults == nil {
		c.Faults = make(map[FaultKind]int)
	}
	for k, n := range o.Faults {
		c.Faults[k] += n
	}
}
