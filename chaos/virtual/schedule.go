package virtual

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Schedule is one run, as data.
type Schedule struct {
	// Seed decides the delays, and names the schedule.
	Seed    uint64    `json:"seed"`
	Masters []Master  `json:"masters"`
	Clients []Process `json:"clients"`
	Faults  []Fault   `json:"faults,omitempty"`
	// MinDelay and MaxDelay bound the time of a message in one direction.
	MinDelay time.Duration `json:"min_delay"`
	MaxDelay time.Duration `json:"max_delay"`
}

// Master is one master's clock.
type Master struct {
	// PPM is by how many millionths its clock is fast; negative for a slow one.
	PPM int64 `json:"ppm,omitempty"`
}

// Process is a client: a program that uses the lock. Its workers share one client of the lock.
type Process struct {
	// Workers are goroutines; each does its sessions one after another.
	Workers [][]Session `json:"workers"`
}

// Session is one acquisition, and the life of its hold.
type Session struct {
	// Pause is how long the worker waits before it.
	Pause time.Duration `json:"pause,omitempty"`
	Key   int           `json:"key"`
	TTL   time.Duration `json:"ttl"`
	// Wait is after how long the acquisition's context ends; 0 for one attempt.
	Wait time.Duration `json:"wait,omitempty"`
	// Hold is how long the holder works, while the lock says that it may.
	Hold time.Duration `json:"hold,omitempty"`
	// Extend has the holder ask once for another ttl, after half of Hold; Renew has the lock do it, as often as needed.
	Extend bool `json:"extend,omitempty"`
	Renew  bool `json:"renew,omitempty"`
	// Fenced asks for a fencing token, if the lock has them.
	Fenced bool `json:"fenced,omitempty"`
}

// FaultKind is a kind of faults.
type FaultKind string

// The faults. Those with a duration last for For.
const (
	// Cut holds back all messages between a client and some masters; CutRequests and CutReplies one direction.
	Cut         FaultKind = "cut"
	CutRequests FaultKind = "cut-requests"
	CutReplies  FaultKind = "cut-replies"
	// Slow adds By to each message, in both directions.
	Slow FaultKind = "slow"
	// Reset breaks all connections between a client and some masters, at one moment. Bytes under way are lost.
	Reset FaultKind = "reset"
	// Freeze stops masters. After it they read the bytes that have arrived.
	Freeze FaultKind = "freeze"
	// Full has masters refuse commands that may take memory.
	Full FaultKind = "full"
	// Crash ends masters, which start again with all their data. Forget is a crash that loses the data.
	Crash  FaultKind = "crash"
	Forget FaultKind = "forget"
	// Step sets masters' clocks By forward, or back.
	Step FaultKind = "step"
	// Pause stops the code of a client that uses the lock, between two calls, as if it had been off the processor. The
	// lock's own goroutines go on. Kill ends the client.
	Pause FaultKind = "pause"
	Kill  FaultKind = "kill"
)

// Fault is one fault.
type Fault struct {
	Kind FaultKind     `json:"kind"`
	At   time.Duration `json:"at"`
	For  time.Duration `json:"for,omitempty"`
	By   time.Duration `json:"by,omitempty"`
	// Client is the number of the client, from 0, for faults of paths and clients; -1 is all clients.
	Client int `json:"client"`
	// Masters are their numbers, from 0.
	Masters []int `json:"masters,omitempty"`
}

// everyone is the Client of a fault that concerns all clients.
const everyone = -1

// ends returns when the fault is over.
func (f *Fault) ends() time.Duration { return f.At + f.For }

// on reports whether the fault concerns the path between a client and a master.
func (f *Fault) on(client, master int) bool {
	return (f.ofMasters() || f.Client == everyone || f.Client == client) && slices.Contains(f.Masters, master)
}

// ofMasters reports whether the fault concerns all clients alike.
func (f *Fault) ofMasters() bool {
	return slices.Contains([]FaultKind{Freeze, Full, Crash, Forget, Step}, f.Kind)
}

// within reports whether a fault is within the assumptions of a lock over masters that keep their data.
func (f *Fault) within() bool { return f.Kind != Forget && f.Kind != Step }

// Inside reports whether all faults are within the assumptions of a lock by majority. Outside them, masters lose data
// or clocks are set, and only locks with fencing tokens promise anything.
func (s *Schedule) Inside() bool {
	return !slices.ContainsFunc(s.Faults, func(f Fault) bool { return !f.within() })
}

// sessions yields all sessions.
func (s *Schedule) sessions(yield func(*Session) bool) {
	for _, c := range s.Clients {
		for _, sessions := range c.Workers {
			for i := range sessions {
				if !yield(&sessions[i]) {
					return
				}
			}
		}
	}
}

const mostKeys = 64

func keyName(n int) string { return fmt.Sprintf("key-%d", n) }

// keys returns the names of the keys that the schedule uses.
func (s *Schedule) keys() []string {
	out := []string{keyName(0)} // of the last sessions of all clients, at least
	for x := range s.sessions {
		if name := keyName(x.Key); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// ttl is the longest; without sessions a second.
func (s *Schedule) ttl() time.Duration {
	longest := time.Duration(0)
	for x := range s.sessions {
		longest = max(longest, x.TTL)
	}
	return cmp.Or(longest, time.Second)
}

const (
	mostMasters = 9
	mostClients = 50
	longest     = 10 * time.Minute
	mostPPM     = 100_000
)

// Check returns an error if a schedule makes no sense.
func (s *Schedule) Check() error {
	switch {
	case len(s.Masters) < 1 || len(s.Masters) > mostMasters:
		return fmt.Errorf("virtual: %d masters, and there must be 1 to %d", len(s.Masters), mostMasters)
	case len(s.Clients) < 1 || len(s.Clients) > mostClients:
		return fmt.Errorf("virtual: %d clients, and there must be 1 to %d", len(s.Clients), mostClients)
	case s.MinDelay < 0 || s.MaxDelay < s.MinDelay || s.MaxDelay > longest:
		return fmt.Errorf("virtual: delays from %v to %v", s.MinDelay, s.MaxDelay)
	}
	for i, m := range s.Masters {
		if m.PPM < -mostPPM || m.PPM > mostPPM {
			return fmt.Errorf("virtual: master %d: ppm is %d, and must be at most %d", i, m.PPM, mostPPM)
		}
	}
	for c := range s.Clients {
		for w, sessions := range s.Clients[c].Workers {
			for i := range sessions {
				if err := sessions[i].check(); err != nil {
					return fmt.Errorf("virtual: client %d, worker %d, session %d: %w", c, w, i, err)
				}
			}
		}
	}
	for i := range s.Faults {
		if err := s.checkFault(&s.Faults[i]); err != nil {
			return fmt.Errorf("virtual: fault %d: %w", i, err)
		}
	}
	return nil
}

func (x *Session) check() error {
	for name, d := range map[string]time.Duration{"pause": x.Pause, "wait": x.Wait, "hold": x.Hold} {
		if d < 0 || d > longest {
			return fmt.Errorf("%s is %v", name, d)
		}
	}
	switch {
	case x.TTL < time.Millisecond || x.TTL > longest:
		return fmt.Errorf("ttl is %v, and must be at least a millisecond", x.TTL)
	case x.Key < 0 || x.Key >= mostKeys:
		return fmt.Errorf("key is %d, and must be from 0 to %d", x.Key, mostKeys-1)
	}
	return nil
}

func (s *Schedule) checkFault(f *Fault) error {
	switch f.Kind {
	case Cut, CutRequests, CutReplies, Slow, Reset, Freeze, Full, Crash, Forget, Step:
		if len(f.Masters) == 0 {
			return fmt.Errorf("a %s needs masters", f.Kind)
		}
	case Pause, Kill:
		if f.Client == everyone {
			return fmt.Errorf("a %s needs a client", f.Kind)
		}
	default:
		return fmt.Errorf("there is no kind %q", f.Kind)
	}
	switch {
	case f.At < 0 || f.At > longest || f.For < 0 || f.For > longest || f.By.Abs() > longest:
		return fmt.Errorf("at %v, for %v, by %v", f.At, f.For, f.By)
	case f.Kind == Slow && f.By <= 0:
		return errors.New("a slow path needs a time above 0 in by")
	case f.Client < everyone || f.Client >= len(s.Clients):
		return fmt.Errorf("there is no client %d", f.Client)
	}
	for _, m := range f.Masters {
		if m < 0 || m >= len(s.Masters) {
			return fmt.Errorf("there is no master %d", m)
		}
	}
	return nil
}

// Read decodes a schedule from JSON, and checks it.
func Read(r io.Reader) (*Schedule, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	s := new(Schedule)
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("virtual: %w", err)
	}
	if dec.More() {
		return nil, errors.New("virtual: there is more in the file than one schedule")
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	return s, nil
}
