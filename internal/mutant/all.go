package mutant

import (
	"slices"
	"time"
)

// Changes that several mutants share.
var (
	repairAtOnce = []Edit{
		{
			"internal/hold/extend.go", "Op: single.Extend, TTL: ttl}",
			"Op: single.Extend, TTL: ttl, Repair: true}",
		},
	}
	countRepairs = slices.Concat(repairAtOnce, []Edit{
		{
			"internal/hold/round.go", "case c.Reply.Outcome == single.Granted:",
			"case c.Reply.Outcome == single.Granted, c.Reply.Outcome == single.Repaired:",
		},
	})
	lateExtend = []Edit{
		{"internal/hold/hold.go", "if !h.state.Over() && h.env.Now() >= h.until {", "if false {"},
		{"internal/hold/extend.go", "late := h.env.Now() >= h.until", "late := false"},
		{
			"internal/hold/renew.go", "case now >= " +
				"h.until-h.terms.Grace:\n\t\th.lapseLocked(&after)\n\t\th.lapsedLocked(now, " +
				"&after)\n",
			"",
		},
		{
			"internal/hold/renew.go", "\tdefault:\n\t\th.scheduleLocked()\n\t}\n}\n\n// lapsedLocked",
			"\tcase now >= h.until-h.terms.Grace && h.renewal.round == " +
				"nil:\n\tdefault:\n\t\th.scheduleLocked()\n\t}\n}\n\n// lapsedLocked",
		},
	}
)

// All returns the mutants. Choose short texts that change seldom. If a text is no longer found, make the same mistake
// in the present code.
func All() []Mutant {
	return slices.Concat(rules(), parts(), connections(), oneMaster(), luaScripts(), engine(), waiting(), tries(),
		observers(), edges(), around(), theCommand())
}

// rules are the mutants of the algorithm's rules. The simulator knows most rules.
func rules() []Mutant {
	return []Mutant{
		{
			Name:   "half-quorum",
			Breaks: "floor(n/2) grants are a majority",
			Edits:  []Edit{{"quorum.go", "{ return n/2 + 1 }", "{ return max(1, n/2) }"}},
			Sim:    []Sim{{Profile: "within", Oracle: "overlap"}},
			Sample: true,
			Chaos:  []Chaos{{"bridge", "overlap", 4 * time.Second}},
		},
		{
			Name:   "no-drift",
			Breaks: "the drift allowance is left out of the validity",
			Edits: []Edit{
				{
					"internal/hold/round.go", "return r.hold.env.ValidUntil(r.start, r.request.TTL)",
					"return r.start + r.request.TTL",
				},
			},
			Sim: []Sim{
				{Profile: "within", Oracle: "overlap", First: 30_001}, // it shows in one schedule of some 3,000
				{Name: "no-drift-slow", Profile: "slow-clients", Oracle: "overlap"},
			},
			Chaos: []Chaos{{"drift", "overlap", 15 * time.Second}},
			Tests: in(".", "TestHazard06AWinWithoutValidityIsALoss"),
		},
		{
			Name:   "drop-stragglers",
			Breaks: "a vote that arrives after its round was decided is neither waited for nor released",
			Edits: []Edit{{
				"internal/hold/lease.go", "return s.last == nil && s.trace",
				"return s.last != nil || s.trace",
			}},
			Sim:   []Sim{{Profile: "within", Oracle: "orphan"}},
			Chaos: []Chaos{{"stragglers", "orphan", 5 * time.Second}},
			Tests: in(".", "TestHazard02StragglersAreReleasedWhenTheyLand"),
		},
		{
			Name:   "unordered-release",
			Breaks: "a release does not wait for the same master's acquire to end",
			Edits: []Edit{{
				"internal/hold/send.go", "if s.last != nil {\n\t\t\t\tb.After",
				"if false {\n\t\t\t\tb.After",
			}},
			Sim:   []Sim{{Profile: "within", Oracle: "orphan"}},
			Tests: in(".", "TestHazard03AReleaseNeverOvertakesItsAcquire", "TestHazard22ExtendAndReleaseDoNotRace"),
		},
		{
			Name:   "count-repairs",
			Breaks: "a master on which the key had to be set again counts as if it had been there all along",
			Edits:  countRepairs,
			Sim:    []Sim{{Profile: "blackout", Oracle: "extension-continuity"}},
			Tests:  in(".", "TestHazard23ARestartedMinorityRegainsTheKey"),
		},
		{
			Name:   "eager-repair",
			Breaks: "every extension sets the key again, also one that is not won, and the next one counts it",
			Edits:  repairAtOnce,
			Tests:  in(".", "TestKeysThatAFailedExtensionSetDoNotCount"),
		},
		{
			Name:   "late-extend",
			Breaks: "an extension counts even if the validity is already over",
			Edits:  lateExtend,
			Sim:    []Sim{{Profile: "within", Oracle: "done-after-bound"}},
		},
		{
			Name:   "late-extend-and-repairs",
			Breaks: "both: a hold comes back to life after another owner's",
			Edits:  slices.Concat(lateExtend, countRepairs),
			Tests:  in(".", "TestHazard17ExtendAfterExpiryFails"),
		},
		{
			Name:   "release-in-grace",
			Breaks: "a hold that has lapsed by its grace is released at once, while its holder comes to an end",
			Edits: []Edit{
				{"internal/hold/renew.go", "case now >= h.until:", "default:"}, {
					"internal/hold/renew.go", "\tdefault:\n\t\th.scheduleLocked()\n\t}\n}\n\n// Renew sends",
					"\t}\n}\n\n// Renew sends",
				},
			},
			Tests: in(".", "TestHazard53DoneClosesAGraceBeforeTheBound"),
		},
		{
			Name:   "bound-from-now",
			Breaks: "validity is counted from the end of the round instead of its start",
			Edits: []Edit{
				{
					"internal/hold/round.go", "return r.hold.env.ValidUntil(r.start,",
					"return r.hold.env.ValidUntil(r.hold.env.Now(),",
				},
			},
			Sim:    []Sim{{Profile: "within", Oracle: "overlap"}},
			Chaos:  []Chaos{{"late-replies", "overlap", 15 * time.Second}},
			Tests:  in(".", "TestHazard19TheBoundIsCountedFromTheStartOfTheRound"),
			Sample: true,
		},
		{
			Name:   "max-token",
			Breaks: "the greatest of the masters' counters is the token, and the others are not raised to it",
			Edits:  []Edit{{"internal/hold/fence.go", "return token, r.hold.env.Majority(same)", "return token, true"}},
			Sim:    []Sim{{Profile: "tokens", Oracle: "token-order"}},
			Tests: in(".", "TestHazard27TokensFollowTheOrderOfMajorities",
				"TestHazard27TokensStayInOrderWhenOneCounterIsAhead"),
		},
		{
			Name:   "fresh-from-now",
			Breaks: "what masters said of their generation holds from when they answered",
			Edits: []Edit{
				{
					"internal/generation/generation.go", "max(c.fresh, start+freshFor)",
					"max(c.fresh, c.Now()+freshFor)",
				},
			},
			Tests: in(".", "TestAnAnswerAboutTheGenerationHoldsFromWhenItWasAskedFor"),
		},
		{
			Name:   "published-inexact",
			Breaks: "a lock reports the token that it asked for, whatever it got",
			Edits: []Edit{
				{
					"internal/hold/hold.go", "request.Fence, request.Exact = h.terms.Fenced, h.terms.Publishes",
					"request.Fence, request.Exact = h.terms.Fenced, false",
				},
				{
					"internal/hold/fence.go", "case h.terms.Publishes && (!agreed || token != r.request.Token):",
					"case false:",
				},
			},
			Tests:  in("leader", "TestThePublishedTokenIsTheTermsOwn"),
			Sample: true,
		},
		{
			Name:   "attach-keeps-owner",
			Breaks: "a lock that was handed over is anybody's who extends it",
			Edits: []Edit{
				{"handover.go", "k, err := l.newLock(s, \"\")", "k, err := l.newLock(s, string(h.Owner))"},
				{"handover.go", "From: string(h.Owner), ", "From: \"another\", "},
			},
			Tests: in(".", "TestOnlyOneProcessCanAttach", "TestHandedOverLocksNeverHaveTwoHolders"),
		},
		{
			Name:   "transfer-without-comparing",
			Breaks: "any owner's key is transferred",
			Edits: []Edit{
				{"single/lua/transfer.lua", "if held ~= from and held ~= owner then", "if held == '' then"},
				{"single/lua/transfer.lua", "if held == from then", "if held ~= owner then"},
				{"internal/store/plain.go", "from := v.what == aString && v.text == r.From", "from := v.what == " +
					"aString && !mine"},
			},
			Tests: in(".", "TestOnlyOneProcessCanAttach", "TestALockContinuesInAnotherProcess",
				"TestHandedOverLocksNeverHaveTwoHolders"),
		},
		{
			Name:   "transfer-of-nothing",
			Breaks: "a key that is free is transferred, too",
			Edits: []Edit{
				{"single/lua/transfer.lua", "elseif not held then\n\treturn {0}\n", ""},
				{"single/lua/transfer.lua", "if held ~= from and held ~= owner then", "if held and held ~= from and " +
					"held ~= owner then"},
				{"single/lua/transfer.lua", "if held == from then\n\tredis.call('SET', KEYS[1], owner, 'XX', " +
					"'PX', ttl)", "if held ~= owner then\n\tredis.call('SET', KEYS[1], owner, 'PX', ttl)"},
			},
			Tests: in(".", "TestALockContinuesInAnotherProcess"),
		},
		{
			Name:   "attach-to-other-masters",
			Breaks: "a process ends a lock that its masters can't have",
			Edits:  []Edit{{"handover.go", "set.of(known) < set.quorum {", "set.of(known) < 0 {"}},
			Tests:  in(".", "TestHazard109AnAttachThatCannotSucceedLeavesTheLock"),
		},
		{
			Name:   "attach-without-doubt",
			Breaks: "a key that may have been set late passes for one that was there all the time",
			Edits: []Edit{
				{
					"internal/hold/hold.go", "h.states[i].continuityUnknown = a.Doubt&(1<<i) != 0",
					"h.states[i].continuityUnknown = false",
				},
			},
			Tests: in(".", "TestAKeyThatWasSetLateIsNotHandedOver"),
		},
		{
			Name:   "attach-by-another-name",
			Breaks: "a master in doubt is trusted by another name",
			Edits:  []Edit{{"handover.go", " || !slices.Contains(h.Masters, name)", ""}},
			Tests:  in(".", "TestAKeyThatWasSetLateIsNotHandedOver"),
		},
		{
			Name:   "semaphore-with-a-slot-more",
			Breaks: "a semaphore has a slot more than it has permits",
			Edits:  []Edit{{"semaphore/semaphore.go", "slots: make([]string, n)}", "slots: make([]string, n+1)}"}},
			Tests:  in("semaphore", "TestNeverMoreThanNHoldersWhateverHappens"),
			Sample: true,
		},
		{
			Name:   "semaphore-slots-of-its-own",
			Breaks: "each process has separate slots",
			Edits: []Edit{
				{"semaphore/semaphore.go", "name + \":slot:\" + strconv.Itoa(i)", "name + \":slot:\" + " +
					"strconv.Itoa(i) + strconv.Itoa(rand.IntN(9))"},
			},
			Tests: in("semaphore", "TestNeverMoreThanNHoldersWhateverHappens"),
		},
		{
			Name:   "handover-goes-on",
			Breaks: "a lock goes on in the process that has handed it over",
			Edits: []Edit{
				{"internal/hold/hold.go", "\th.overLocked(HandedOver, nil, &after)\n", ""},
				{
					"internal/hold/hold.go", "\th.env.Registry.Leave(&h.entry) // only now: Close has to wait",
					"\t// only now: Close has to wait",
				},
			},
			Tests: in(".", "TestHandedOverLocksNeverHaveTwoHolders"),
		},
		{
			Name:   "one-master-is-current",
			Breaks: "one master that knows no newer generation is enough",
			Edits: []Edit{
				{"internal/generation/generation.go", "c.Majority(now.Answered)", "now.Answered != 0"},
				{
					"internal/generation/generation.go",
					"decides := !now.Settled && c.Decides(now.Answered, now.Failed)",
					"decides := !now.Settled && now.Won",
				},
			},
			Tests: in(".", "TestAnyQuorumOfItsMastersTellsAForgottenProcess"),
		},
		{
			Name:   "pause-after-current",
			Breaks: "a pause after the configuration was found current is not counted",
			Edits: []Edit{
				{"internal/hold/hold.go", "r.start = min(r.start, h.asOf)", ""}, {
					"internal/hold/extend.go", "r.start = min(r.start, asOf)", "_ = asOf",
				},
			},
			Tests: in(".", "TestAPauseAfterTheGenerationCheckShortensTheLock"),
		},
		{
			Name:   "generation-not-checked",
			Breaks: "a process asks for the generation, and acquires whatever the answer is",
			Edits: []Edit{
				{
					"membership.go", "if known.Fresh || known.Newer != nil {" +
						"\n\t\treturn known.AsOf, l.outdatedFailure(known.Newer)\n\t}\n\tif sent",
					"if asking != nil || known.Fresh {\n\t\treturn known.AsOf, nil\n\t}\n\tif sent",
				},
			},
			Sim:   []Sim{{Profile: "generations", Oracle: "overlap"}},
			Tests: in(".", "TestAForgottenProcessTakesNoLockOnceTheNextGenerationIsAnnounced"),
		},
		{
			Name:   "forgotten-renews",
			Breaks: "a forgotten process goes on with its locks",
			Edits:  []Edit{{"internal/hold/renew.go", "\tif !fresh {", "\tif false && !fresh {"}},
			Sim:    []Sim{{Profile: "generations", Oracle: "overlap"}},
			Tests:  in(".", "TestAForgottenProcessTakesNoLockOnceTheNextGenerationIsAnnounced"),
		},
		{
			Name:   "joint-acquired-by-one",
			Breaks: "an acquisition is won when one of two sets of masters has won it",
			Edits: []Edit{
				{"quorum.go", "wins, lost, reachable := true,", "wins, lost, reachable := false,"},
				{"quorum.go", "wins = wins && c.granted >= e.quorum\n\t\tlost = lost || c.granted+c.pending < " +
					"e.quorum\n\t\treachable", "wins = wins || c.granted >= e.quorum\n\t\tlost = lost || " +
					"c.granted+c.pending < e.quorum\n\t\treachable"},
			},
			Sim:   []Sim{{Profile: "membership", Oracle: "overlap"}},
			Chaos: []Chaos{{"membership", "overlap", 8 * time.Second}},
		},
		{
			Name:   "joint-extended-by-one",
			Breaks: "an extension is won when one of two sets of masters has won it",
			Edits: []Edit{
				{"quorum.go", "wins, lost, kept := true,", "wins, lost, kept := false,"},
				{"quorum.go", "wins = wins && c.granted >= e.quorum\n\t\tlost = lost || c.granted+c.pending < " +
					"e.quorum\n\t\tkept", "wins = wins || c.granted >= e.quorum\n\t\tlost = lost || " +
					"c.granted+c.pending < e.quorum\n\t\tkept"},
			},
			// it shows in one schedule of some 600
			Sim: []Sim{{Profile: "membership", Oracle: "overlap", First: 20_001}},
		},
		{
			Name:   "joint-released-by-one",
			Breaks: "a release is confirmed when one of two sets of masters has confirmed it",
			Edits: []Edit{
				{"quorum.go", "wins, lost, ours := true,", "wins, lost, ours := false,"},
				{"quorum.go", "wins = wins && confirmed >= e.quorum", "wins = wins || confirmed >= e.quorum"},
			},
			Sim: []Sim{{Profile: "membership", Oracle: "released"}}, // the janitor goes on, so no orphan tells
		},
		{
			Name:   "joint-token-by-one",
			Breaks: "a token is one that a quorum of the old masters has accepted, whatever the new ones have",
			Edits: []Edit{{
				"quorum.go", "{ return r.majority(masters) }",
				"{ return r.electorates[:1].majority(masters) }",
			}},
			// it shows in one schedule of some 300
			Sim: []Sim{{Profile: "membership", Oracle: "token-order", First: 5001}},
		},
		{
			Name:   "joint-majority-of-all",
			Breaks: "two sets of masters decide by a majority of all masters together",
			Edits: []Edit{
				{
					"membership.go", "electorates{newElectorate(\"old\", old), newElectorate(\"new\", members)}",
					"electorates{newElectorate(\"\", old|members)}",
				},
			},
			Sim: []Sim{{Profile: "membership", Oracle: "overlap"}},
		},
		{
			Name:   "passed-past-its-bound",
			Breaks: "a lock is passed on although the masters do not keep it for as long as the next holder believes",
			Edits: []Edit{
				{
					"internal/hold/pass.go", "next.since, next.until = now, h.passing.bound",
					"next.since, next.until = now, h.env.ValidUntil(now, t.TTL)",
				},
			},
			Sim:   []Sim{{Profile: "cohorts", Oracle: "overlap"}},
			Tests: in(".", "TestAReleasedLockIsPassedOnWithoutAskingTheMasters"),
		},
		{
			Name:   "passed-past-its-window",
			Breaks: "a lock goes on being passed on when others are to have it",
			Edits:  []Edit{{"internal/hold/pass.go", "now < p.ends && !p.doubt", "!p.doubt"}},
			Tests:  in(".", "TestALockIsPassedOnOnlyWithinItsWindow"),
		},
		{
			Name:   "passed-in-doubt",
			Breaks: "a lock is passed on that masters were found to have lost",
			Edits:  []Edit{{"internal/hold/pass.go", "now < p.ends && !p.doubt", "now < p.ends"}},
			Tests: in(".", "TestSomeReleasesGoToTheMastersInsteadOfAWaiter",
				"TestALockThatVerifyFoundLostIsNotPassedOn"),
		},
		{
			Name:   "passed-with-its-token",
			Breaks: "a fenced lock is passed on with the token that its holder had",
			Edits:  []Edit{{"internal/hold/pass.go", "next.token = h.token + 1", "next.token = h.token"}},
			Sim:    []Sim{{Profile: "cohorts", Oracle: "token-order"}},
			Tests:  in(".", "TestAFencedLockIsPassedOnWithTokensOfItsOwn", "TestTokensOfPassedLocksAreInOrder"),
		},
		{
			Name:   "tokens-not-got-ahead",
			Breaks: "tokens are passed on that were not got ahead",
			Edits: []Edit{
				{"internal/hold/hold.go", "\t\t\trequest.Spare = h.env.Tokens.Spare(a.Window, a.Token)\n", ""},
				{
					"internal/hold/fence.go", "h.takeTokensLocked(token, r.spareLocked(token))",
					"h.takeTokensLocked(token, 1000)",
				},
			},
			Sim:   []Sim{{Profile: "cohorts", Oracle: "token-order"}},
			Tests: in(".", "TestTokensOfPassedLocksAreInOrder"),
		},
		{
			Name:   "spare-tokens-given-twice",
			Breaks: "a master gives tokens to others that it has given to one before",
			Edits:  []Edit{{"single/lua/acquire.lua", "before, counter + spare, ARGV[9]", "before, counter, ARGV[9]"}},
			Tests: append(in("single", "TestSpareTokensAreGivenToNoOtherOwner"),
				in("internal/store", "TestTheStoreAnswersLikeARealServer")...),
		},
		{
			Name:   "passed-without-tokens",
			Breaks: "a fenced lock is passed on with more tokens than it has got",
			Edits:  []Edit{{"internal/hold/pass.go", " && (!h.terms.Fenced || h.token < p.lastToken)", ""}},
			Tests:  in(".", "TestALockThatHasNoTokenLeftIsReleased"),
		},
		{
			Name:   "passed-without-its-masters",
			Breaks: "the receiver of a passed lock does not know its requests under way",
			Edits: []Edit{
				{
					"internal/hold/pass.go", "h.present, h.queued = next, true\n",
					"h.present, h.queued = next, true\n\tclear(h.states)\n",
				},
			},
			Sim:   []Sim{{Profile: "cohorts", Oracle: "orphan"}},
			Tests: in(".", "TestStragglersOfALockThatWasPassedOnAreReleased"),
		},
		{
			Name:   "passed-without-its-lease",
			Breaks: "what masters answer after a lock was passed on still counts for the hold that was passed on",
			Edits:  []Edit{{"internal/hold/pass.go", "h.present, h.queued = next, true", "h.queued = true"}},
			Tests:  in(".", "TestStragglersOfALockThatWasPassedOnAreReleased"),
		},
		{
			Name:   "second-release-does-not-wait",
			Breaks: "a release that comes while another one is about to be sent takes the lock for released",
			Edits: []Edit{
				{"internal/hold/release.go", "for h.state.Phase == Leaving {", "for false {"},
				{"internal/hold/extend.go", "case r.verdict == Won:", "case r == nil || r.verdict == Won:"},
			},
			Tests: in(".", "TestASecondReleaseWaitsForTheFirst"),
		},
		{
			Name:   "asks-behind-its-own",
			Breaks: "a waiter behind a lock that is passed on asks the masters, and can't receive it",
			Edits:  []Edit{{"wait.go", "Patient: s.Passable() && s.MaxAttempts == 0 && s.MaxOutage == 0, ", ""}},
			Tests: in(".", "TestTwoGoroutinesPassALockOnAcrossASlowNetwork",
				"TestAWaiterCanStopWaitingBehindALockThatIsPassedOn"),
		},
		{
			Name: "patient-for-nothing",
			Breaks: "who waits behind a lock that can't be passed to it lets the window go by when the lock is " +
				"released",
			Edits: []Edit{{"internal/waitqueue/waitqueue.go", "\t\t\tq.remindLocked(key)\n", ""}},
			Tests: in(".", "TestPatienceEndsWhenALockIsNotPassedOn"),
		},
		{
			Name:   "keeps-its-turn",
			Breaks: "a process takes the key after its window, although its release has just notified another one",
			Edits:  []Edit{{"internal/contend/crowd.go", "\t\tc.giveWay(e) //", "\t\t//"}},
			Tests:  in(".", "TestAWaiterThatOnlyPollsGetsAKeyThatIsPassedOn"),
		},
		{
			Name: "no-breath",
			Breaks: "a process asks for the key as soon as its window is over, so a client outside of the queues " +
				"never finds it free",
			Edits: []Edit{{"internal/contend/crowd.go", "ahead += e.Window / breathShare", "_ = breathShare"}},
			Tests: in(".", "TestAWaiterThatOnlyPollsGetsAKeyThatIsPassedOn"),
		},
		{
			Name:   "passed-and-released",
			Sample: true,
			Breaks: "a lock that was passed on, and needs attention, is released when its own validity is over",
			Edits: []Edit{
				{
					"internal/hold/phase.go", "if s.Phase == Grace {\n\t\ts.Phase = Leaving",
					"if s.Over() {\n\t\ts.Phase = Leaving",
				},
			},
			Tests: in("internal/hold", "TestEachEventInEachPhase"),
		},
		{
			Name:   "taken-after-the-end",
			Breaks: "a cancelled waiter may still be taken for the next holder",
			Edits:  []Edit{{"internal/waitqueue/take.go", "\te.trying = e.trying || !e.taken\n", ""}},
			Tests:  in("internal/waitqueue", "TestAnEntryIsTakenOrLeaves"),
			Sample: true,
		},
		{
			Name:   "loading-is-forgetting",
			Breaks: "a master that is still loading its data counts as one that has lost them",
			Edits:  []Edit{{"single/guard_ask.go", "case !lasting(reply):", "case i < 3 && !lasting(reply):"}},
			Chaos:  []Chaos{{"slow-restart", "liveness", 9 * time.Second}},
			Tests:  in("single", "TestHazard38AQuestionAnsweredWithLoadingIsAskedAgain"),
			Sample: true,
		},
		{
			Name:   "stays-in-line",
			Breaks: "an entry for several keys stays in the queue of one that is free while another one is in its way",
			Edits:  []Edit{{"internal/waitqueue/waitqueue.go", "if keys[0] != from.key {", "if false {"}},
			Chaos:  []Chaos{{"mixed-waiters", "liveness", 10 * time.Second}},
			Tests:  in("internal/waitqueue", "TestAnEntryBlockedByAnotherKeyMakesRoom"),
		},
	}
}
