package mutant

// observers are the mutants of the code that informs an operator of an outage.
func observers() []Mutant {
	const waits = "TestHazard125ObserversSeeWaitersBegin"
	return []Mutant{
		{
			Name:   "waits-untold",
			Breaks: "an observer is not told that a caller waits",
			Edits:  []Edit{{"wait.go", "\t\tw.locker.observeWait(w.spec)\n", ""}},
			Tests:  in(".", waits),
		},
		{
			Name:   "waits-told-twice",
			Breaks: "an observer hears of a wait with each attempt",
			Edits:  []Edit{{"observe.go", "if !s.waited {", "{"}},
			Tests:  in(".", waits),
		},
		{
			Name:   "outage-repeats-itself",
			Breaks: "each round of an outage has its line in the log",
			Edits:  []Edit{{"observe/slogobserver/slogobserver.go", "!t.fails(now)", "t.fails(now) && false"}},
			Tests:  in("observe/slogobserver", "TestHazard125AnOutageIsTwoLinesForEachTrouble"),
		},
		{
			Name:   "outage-over-at-once",
			Breaks: "a trouble that comes and goes has lines each time",
			Edits:  []Edit{{"observe/slogobserver/episode.go", " || now.Sub(t.last) < calm", ""}},
			Tests:  in("observe/slogobserver", "TestHazard125AnOutageIsTwoLinesForEachTrouble"),
			Sample: true,
		},
	}
}
