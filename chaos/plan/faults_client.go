package plan

// clientFaults hurt those who use the lock.
func clientFaults() []Fault {
	faults := []Fault{
		{Name: "client-pause", Text: "the code that uses the lock stands still, as in a garbage collection"},
		{Name: "child-pause", Text: "a client's process is stopped (SIGSTOP)"},
		{Name: "child-kill", Text: "a client's process is killed and another one started"},
	}
	for i := range faults {
		faults[i].Where, faults[i].Lasts = OnClient, true
	}
	return faults
}
