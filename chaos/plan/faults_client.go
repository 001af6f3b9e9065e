package plan

// The faults of clients, which are told apart by name where they are carried out.
const (
	ClientPause = "client-pause"
	ChildPause  = "child-pause"
	ChildKill   = "child-kill"
)

// clientFaults are what happens to clients.
func clientFaults() []Fault {
	faults := []Fault{
		{Name: ClientPause, Text: "the code that uses the lock stands still, as in a garbage collection"},
		{Name: ChildPause, Children: true, Text: "a client's process is stopped (SIGSTOP)"},
		{Name: ChildKill, Children: true, Text: "a client's process is killed and another one started"},
	}
	for i := range faults {
		faults[i].Where, faults[i].Lasts = OnClient, true
	}
	return faults
}
