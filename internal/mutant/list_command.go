package mutant

// theCommand are the mutants of redlock run and redlock hold.
func theCommand() []Mutant {
	const cli, child, e2e = "cmd/redlock/internal/cli/", "cmd/redlock/internal/child/", "cmd/redlock/e2e"
	return []Mutant{
		{
			Name:   "command-left-not-waited-for",
			Sample: true,
			Breaks: "a lock is given back when its command has ended, whatever that has left running",
			Edits:  []Edit{{cli + "supervise.go", "s.left.since && s.leaderOnly", "s.left.since"}},
			Tests:  in(e2e, "TestHazard118ProcessesThatACommandLeavesKeepTheLock"),
		},
		{
			Name:   "command-orphans-not-adopted",
			Breaks: "orphans of a command are not known to redlock",
			Edits:  []Edit{{child + "descend_linux.go", "PR_SET_CHILD_SUBREAPER, 1", "PR_SET_CHILD_SUBREAPER, 0"}},
			Tests:  in(e2e, "TestHazard118ProcessesThatACommandLeavesKeepTheLock"),
		},
		{
			Name:   "command-process-1-dies",
			Sample: true,
			Breaks: "process 1 of a PID namespace tries to die of a signal, and ends with another status",
			Edits:  []Edit{{child + "signals_unix.go", "if !ok || os.Getpid() == 1 {", "if !ok {"}},
			Tests:  in(e2e, "TestHazard121AProcess1EndsWithTheStatusOfItsSignal"),
		},
		{
			Name:   "command-hold-heeds-signals",
			Breaks: "a lock that is held for a script's processes is given back at a signal, while they clean up",
			Edits: []Edit{
				{cli + "hold.go", "sig != child.Report && k.forOthers()", "sig != child.Report && k.fd > 99"},
			},
			Tests: in(e2e, "TestHazard122AHeldLockOutlivesAScriptThatIsKilled"),
		},
		{
			Name:   "command-modes-stay",
			Breaks: "a terminal stays as a command that was killed has left it",
			Edits: []Edit{
				{cli + "supervise.go", "s.process.Status().Signal != 0 {", "s.process.Status().Signal > 99 {"},
			},
			Tests: in(e2e, "TestHazard124TheTerminalIsAsItWasAfterAKill"),
		},
	}
}
