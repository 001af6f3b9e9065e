package plan

import "github.com/seed-624411e5/redlock/chaos/masters"

// The faults of clients. The code that carries them out distinguishes them by name.
const (
	ClientPause = "client-pause"
	ClientClock = "client-clock-step"
	ClientRate  = "client-clock-rate"
	ChildPause  = "child-pause"
	ChildKill   = "child-kill"
	// Reconfigure is no harm: a client gets other masters while it has locks and waits for others.
	Reconfigure = "reconfigure"
)

// clientFaults are the faults of clients.
func clientFaults() []Fault {
	faults := []Fault{
		{Name: ClientPause, Text: "the code that uses the lock stands still, as in a garbage collection; of a " +
			"client in a process of its own the whole process"},
		{Name: ChildPause, Children: true, Text: "a client's process is stopped (SIGSTOP)"},
		{Name: ChildKill, Children: true, Text: "a client's process is killed and another one started"},
	}
	for i := range faults {
		faults[i].Where, faults[i].Lasts = OnClient, true
	}
	return append(faults, Fault{
		Name: ClientClock, Where: OnClient, Lasts: true, Leaves: masters.FullService,
		Text:  "a client's time of day jumps by step, and back when the fault is over",
		Check: checkOf(masters.ClockStep),
	}, Fault{
		Name: ClientRate, Where: OnClient, Lasts: true, Leaves: masters.FullService,
		Text:  "a client's time of day runs at rate; what it gained stays when the fault is over",
		Check: checkOf(masters.ClockRate),
	}, Fault{
		Name: Reconfigure, Where: OnClient, Leaves: masters.FullService,
		Text: "a client changes to other masters (sets); its holds stay on the masters that granted them",
	})
}
