package mutant

// tries are the mutants of calls that do not wait.
func tries() []Mutant {
	const winner, split = "TestHazard103ATryOnAFreeKeyHasAWinner", "TestHazard103AVoteThatStaysSplitIsNoRefusal"
	return []Mutant{
		{
			Name:   "split-is-held",
			Breaks: "a try takes a split vote for a refusal",
			Edits:  []Edit{{"try.go", "!f.is(failHeld) || s.contest.Held(&l.rules)", "!f.is(failHeld) || f.q != nil"}},
			Tests:  in(".", winner),
		},
		{
			Name:   "try-waits-for-the-stopped",
			Breaks: "a round of a try waits for a stopped master until its timeout",
			Edits:  []Edit{{"internal/hold/round.go", "\tr.hurryLocked()\n", ""}},
			Tests:  in(".", winner),
		},
		{
			Name:   "try-leaves-the-far",
			Breaks: "a round of a try does not wait for a master that is known to be far away",
			Edits:  []Edit{{"internal/contend/contest.go", "2*took, 2*slowest)", "2*took, 0*slowest)"}},
			Tests:  in(".", "TestATryWaitsForMastersThatAreFarAwayAndNotForStoppedOnes"),
		},
		{
			Name:   "try-meets-nobody",
			Breaks: "a try of a new Locker ends before its connections are made",
			Edits:  []Edit{{"try.go", "if strange != 0 && ctx.Err() == nil", "if strange == 1 && strange == 2"}},
			Tests:  in(".", "TestATryOfANewLockerWaitsForItsConnections"),
		},
		{
			Name:   "try-hopes",
			Breaks: "a try of a new Locker asks again masters that refuse connections",
			Edits:  []Edit{{"try.go", "return sets.majority(hope)", "return hope != 0"}},
			Tests:  in(".", "TestATryOfANewLockerWaitsForItsConnections"),
		},
		{
			Name:   "try-refused-by-itself",
			Breaks: "a try takes the keys of its earlier rounds for another owner's",
			Edits: []Edit{
				{
					"internal/contend/contest.go", "slices.Contains(c.own, name)",
					"slices.Contains(c.own[:0], name)",
				},
			},
			Tests: in(".", "TestATryIsNotRefusedByItsOwnEarlierRound"),
		},
		{
			Name:   "contended-is-held",
			Breaks: "a try says of a vote that stays split that another holds the lock",
			Edits:  []Edit{{"try.go", "\treturn ErrContended\n", "\treturn ErrHeld\n"}},
			Tests:  in(".", split),
		},
		{
			Name:   "held-is-contended",
			Breaks: "a try takes owners that stay for contenders",
			Edits: []Edit{
				{
					"internal/contend/contest.go", "c.round > 1 && lasting != 0 && outvoted(lasting)",
					"c.round > 64 && lasting != 0 && outvoted(lasting)",
				},
			},
			Tests: in(".", split),
		},
		{
			Name:   "readers-contend",
			Breaks: "a writer that tries takes readers for contenders",
			Edits:  []Edit{{"internal/contend/contest.go", "\t\tname = readers\n", "\t\tname += readers\n"}},
			Tests:  in(".", split),
		},
		{
			Name:   "reentrants-both-give-up",
			Breaks: "a try in a transition takes the lasting owner of a reentrant contender for the holder",
			Edits: []Edit{{
				"internal/contend/contest.go", "name == readers || owner.Made(name)",
				"true || owner.Made(name)",
			}},
			Tests: in(".", "TestHazard103OneOfTwoReentrantOwnersWinsInTheTransition"),
		},
	}
}
