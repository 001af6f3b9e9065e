package mutant

import (
	"slices"
	"time"
)

// What several mutants do.
var (
	repairAtOnce = []Edit{{"extend.go", "Op: single.Extend, TTL: ttl}", "Op: single.Extend, TTL: ttl, Repair: true}"}}
	countRepairs = slices.Concat(repairAtOnce, []Edit{
		{"round.go", "case c.Reply.Outcome == single.Granted:", "case c.Reply.Outcome == single.Granted, c.Reply.Outcome == single.Repaired:"},
	})
	lateExtend = []Edit{
		{"lock.go", "if k.over == nil && k.locker.clock.Now() >= k.until {", "if false {"},
		{"extend.go", "late := k.locker.clock.Now() >= k.until", "late := false"},
		{"renew.go", "case now >= k.until-k.spec.grace:\n\t\tk.overLocked(k.lapseLocked(), &after)\n\t\tk.lapsedLocked(now, &after)\n", ""},
		{"renew.go", "\tdefault:\n\t\tk.scheduleLocked()\n\t}\n}\n\n// lapsedLocked", "\tcase now >= k.until-k.spec.grace && k.renewal.round == nil:\n\tdefault:\n\t\tk.scheduleLocked()\n\t}\n}\n\n// lapsedLocked"},
	}
)

// All are the mutants. Choose texts that are short and do not change often; where one is not found any more, the mistake
// has to be made anew in the present code.
func All() []Mutant {
	return []Mutant{
		{ // floor(n/2) grants are a majority
			Name:  "half-quorum",
			Edits: []Edit{{"quorum.go", "{ return n/2 + 1 }", "{ return max(1, n/2) }"}},
			Sim:   []Sim{{Profile: "within", Oracle: "overlap"}},
			Chaos: []Chaos{{"bridge", "overlap", 4 * time.Second}},
		},
		{ // the drift allowance is left out of the validity
			Name:  "no-drift",
			Edits: []Edit{{"round.go", "return validUntil(r.start, r.request.TTL, r.lock.locker.opts.DriftFactor)", "return r.start + r.request.TTL"}},
			Sim: []Sim{
				{Profile: "within", Oracle: "overlap", First: 30_001}, // it shows in one schedule of some 3,000
				{Name: "no-drift-slow", Profile: "slow-clients", Oracle: "overlap"},
			},
			Chaos: []Chaos{{"drift", "overlap", 15 * time.Second}},
			Tests: []Tests{{".", []string{"TestHazard06AWinWithoutValidityIsALoss"}}},
		},
		{ // a vote that arrives after its round was decided is neither waited for nor released
			Name:  "drop-stragglers",
			Edits: []Edit{{"order.go", "if s.last != nil {\n\t\treturn false\n", "if s.last != nil {\n\t\treturn true\n"}},
			Sim:   []Sim{{Profile: "within", Oracle: "orphan"}},
			Chaos: []Chaos{{"stragglers", "orphan", 5 * time.Second}},
			Tests: []Tests{{".", []string{"TestHazard02StragglersAreReleasedWhenTheyLand"}}},
		},
		{ // a release does not wait for the same master's acquire to end
			Name:  "unordered-release",
			Edits: []Edit{{"order.go", "if s.last != nil {\n\t\t\t\tb.After", "if false {\n\t\t\t\tb.After"}},
			Sim:   []Sim{{Profile: "within", Oracle: "orphan"}},
			Tests: []Tests{{".", []string{"TestHazard03AReleaseNeverOvertakesItsAcquire", "TestHazard22ExtendAndReleaseDoNotRace"}}},
		},
		{ // a master on which the key had to be set again counts as if it had been there all along
			Name:  "count-repairs",
			Edits: countRepairs,
			Sim:   []Sim{{Profile: "blackout", Oracle: "extension-continuity"}},
			Tests: []Tests{{".", []string{"TestHazard23ARestartedMinorityRegainsTheKey"}}},
		},
		{ // every extension sets the key again, also one that is not won, and the next one counts it
			Name:  "eager-repair",
			Edits: repairAtOnce,
			Tests: []Tests{{".", []string{"TestAFailedExtensionSetsNothingAgain"}}},
		},
		{ // nobody asks whether the validity is already over
			Name:  "late-extend",
			Edits: lateExtend,
			Sim:   []Sim{{Profile: "within", Oracle: "done-after-bound"}},
		},
		{ // both of them: a hold comes back to life after somebody else's
			Name:  "late-extend-and-repairs",
			Edits: slices.Concat(lateExtend, countRepairs),
			Tests: []Tests{{".", []string{"TestHazard17ExtendAfterExpiryFails"}}},
		},
		{ // a hold that has lapsed by its grace is released at once, while its holder comes to an end
			Name:  "release-in-grace",
			Edits: []Edit{{"renew.go", "case now >= k.until:", "default:"}, {"renew.go", "\tdefault:\n\t\tk.scheduleLocked()\n\t}\n}\n\n// renew sends", "\t}\n}\n\n// renew sends"}},
			Tests: []Tests{{".", []string{"TestHazard53DoneClosesAGraceBeforeTheBound"}}},
		},
		{ // validity is counted from the end of the round instead of its start
			Name:  "bound-from-now",
			Edits: []Edit{{"round.go", "return validUntil(r.start,", "return validUntil(r.lock.locker.clock.Now(),"}},
			Sim:   []Sim{{Profile: "within", Oracle: "overlap"}},
			Chaos: []Chaos{{"late-replies", "overlap", 15 * time.Second}},
			Tests: []Tests{{".", []string{"TestHazard19TheBoundIsCountedFromTheStartOfTheRound"}}},
		},
		{ // the greatest of the masters' counters is the token, and the others are not raised to it
			Name:  "max-token",
			Edits: []Edit{{"fenced.go", "return token, r.lock.locker.sets.majority(same)", "return token, true"}},
			Sim:   []Sim{{Profile: "tokens", Oracle: "token-order"}},
			Tests: []Tests{{".", []string{"TestHazard27TokensFollowTheOrderOfMajorities", "TestHazard27OneMasterAhead"}}},
		},
		{ // what masters said of their generation holds from when they answered
			Name:  "fresh-from-now",
			Edits: []Edit{{"generation.go", "max(c.fresh, later(start, freshFor))", "max(c.fresh, later(l.clock.Now(), freshFor))"}},
			Tests: []Tests{{".", []string{"TestAnAnswerAboutTheGenerationHoldsFromWhenItWasAskedFor"}}},
		},
		{ // the token that a lock says it has is what it asked for, whatever it got
			Name: "published-inexact",
			Edits: []Edit{
				{"redlock.go", "Exact: s.publishes", "Exact: false"},
				{"fenced.go", "case k.spec.publishes && (!agreed || token != r.request.Token):", "case false:"},
			},
			Tests: []Tests{{"leader", []string{"TestThePublishedTokenIsTheTermsOwn"}}},
		},
		{ // a lock that was handed over is anybody's who extends it
			Name: "attach-keeps-owner",
			Edits: []Edit{
				{"handover.go", "k, err := l.newLock(s)", "s.owner = string(h.Owner)\n\tk, err := l.newLock(s)"},
				{"handover.go", "From: string(h.Owner), ", "From: \"another\", "},
			},
			Tests: []Tests{{".", []string{"TestOneOfThoseWhoAttachHasTheLock", "TestNeverTwoHoldersWhenLocksAreHandedOver"}}},
		},
		{ // a key is transferred whoever has it
			Name: "transfer-without-comparing",
			Edits: []Edit{
				{"single/lua/transfer.lua", "if held ~= from and held ~= owner then", "if held == '' then"},
				{"single/lua/transfer.lua", "if held == from then", "if held ~= owner then"},
				{"internal/store/plain.go", "from := v.what == aString && v.text == r.From", "from := v.what == aString && !mine"},
			},
			Tests: []Tests{{".", []string{"TestOneOfThoseWhoAttachHasTheLock", "TestALockGoesOnInAnotherProcess", "TestNeverTwoHoldersWhenLocksAreHandedOver"}}},
		},
		{ // a key that is free is transferred, too
			Name: "transfer-of-nothing",
			Edits: []Edit{
				{"single/lua/transfer.lua", "elseif not held then\n\treturn {0}\n", ""},
				{"single/lua/transfer.lua", "if held ~= from and held ~= owner then", "if held and held ~= from and held ~= owner then"},
				{"single/lua/transfer.lua", "if held == from then\n\tredis.call('SET', KEYS[1], owner, 'XX', 'PX', ttl)", "if held ~= owner then\n\tredis.call('SET', KEYS[1], owner, 'PX', ttl)"},
			},
			Tests: []Tests{{".", []string{"TestALockGoesOnInAnotherProcess"}}},
		},
		{ // a key that may have been set late passes for one that was there all the time
			Name:  "attach-without-doubt",
			Edits: []Edit{{"handover.go", "k.states[i].continuityUnknown = slices.Contains(h.Doubt, name)", "_, _, _ = i, name, slices.Contains(h.Doubt, name)"}},
			Tests: []Tests{{".", []string{"TestAKeyThatWasSetLateIsNotHandedOver"}}},
		},
		{ // a semaphore has a slot more than it has permits
			Name:  "semaphore-with-a-slot-more",
			Edits: []Edit{{"semaphore/semaphore.go", "slots: make([]string, n)}", "slots: make([]string, n+1)}"}},
			Tests: []Tests{{"semaphore", []string{"TestNeverMoreThanNHoldersWhateverHappens"}}},
		},
		{ // each process has slots of its own
			Name:  "semaphore-slots-of-its-own",
			Edits: []Edit{{"semaphore/semaphore.go", "name + \":slot:\" + strconv.Itoa(i)", "name + \":slot:\" + strconv.Itoa(i) + strconv.Itoa(rand.IntN(9))"}},
			Tests: []Tests{{"semaphore", []string{"TestNeverMoreThanNHoldersWhateverHappens"}}},
		},
		{ // a lock goes on in the process that has handed it over
			Name:  "handover-goes-on",
			Edits: []Edit{{"handover.go", "k.left = true\n\tk.overLocked(errHandedOver, &after)\n\tk.locker.observeHandover(k, k.locker.clock.Now()-k.since)\n\tk.locker.forget(k)\n", "_ = &after\n"}},
			Tests: []Tests{{".", []string{"TestNeverTwoHoldersWhenLocksAreHandedOver"}}},
		},
		{ // one master that knows no newer generation is enough
			Name: "one-master-is-current",
			Edits: []Edit{
				{"generation.go", "bool { return a.locker.sets.majority(a.votes.granted) }", "bool { return a.votes.granted != 0 }"},
				{"generation.go", "decides := !a.settled && l.sets.acquired(&a.votes) != open", "decides := !a.settled && wins"},
			},
			Tests: []Tests{{".", []string{"TestAnyQuorumOfItsMastersTellsAForgottenProcess"}}},
		},
		{ // a pause after the configuration was found current is not counted
			Name:  "pause-after-current",
			Edits: []Edit{{"lock.go", "r.start = min(r.start, k.asOf)", ""}, {"extend.go", "r.start = min(r.start, asOf)", "_ = asOf"}},
			Tests: []Tests{{".", []string{"TestAPauseAfterTheGenerationWasFoundCurrentShortensTheLock"}}},
		},
		{ // a process asks for the generation, and acquires whatever the answer is
			Name:  "generation-not-checked",
			Edits: []Edit{{"generation.go", "if fresh || err != nil {\n\t\treturn now, err\n\t}\n\tif sent", "if a != nil || fresh || err != nil {\n\t\treturn now, nil\n\t}\n\tif sent"}},
			Sim:   []Sim{{Profile: "generations", Oracle: "overlap"}},
			Tests: []Tests{{".", []string{"TestAForgottenProcessTakesNoLockOnceTheNextGenerationIsAnnounced"}}},
		},
		{ // a forgotten process goes on with what it holds
			Name:  "forgotten-renews",
			Edits: []Edit{{"renew.go", "asOf, current := k.locker.isCurrent()", "asOf, current := k.locker.clock.Now(), true"}},
			Sim:   []Sim{{Profile: "generations", Oracle: "overlap"}},
			Tests: []Tests{{".", []string{"TestAForgottenProcessTakesNoLockOnceTheNextGenerationIsAnnounced"}}},
		},
		{ // an acquisition is won when one of two sets of masters has won it
			Name: "joint-acquired-by-one",
			Edits: []Edit{
				{"quorum.go", "wins, lost, reachable := true,", "wins, lost, reachable := false,"},
				{"quorum.go", "wins = wins && c.granted >= e.quorum\n\t\tlost = lost || c.granted+c.pending < e.quorum\n\t\treachable", "wins = wins || c.granted >= e.quorum\n\t\tlost = lost || c.granted+c.pending < e.quorum\n\t\treachable"},
			},
			Sim:   []Sim{{Profile: "membership", Oracle: "overlap"}},
			Chaos: []Chaos{{"membership", "overlap", 8 * time.Second}},
		},
		{ // an extension is won when one of two sets of masters has won it
			Name: "joint-extended-by-one",
			Edits: []Edit{
				{"quorum.go", "wins, lost, kept := true,", "wins, lost, kept := false,"},
				{"quorum.go", "wins = wins && c.granted >= e.quorum\n\t\tlost = lost || c.granted+c.pending < e.quorum\n\t\tkept", "wins = wins || c.granted >= e.quorum\n\t\tlost = lost || c.granted+c.pending < e.quorum\n\t\tkept"},
			},
			Sim: []Sim{{Profile: "membership", Oracle: "overlap", First: 20_001}}, // it shows in one schedule of some 600
		},
		{ // a release is confirmed when one of two sets of masters has confirmed it
			Name: "joint-released-by-one",
			Edits: []Edit{
				{"quorum.go", "wins, lost, ours := true,", "wins, lost, ours := false,"},
				{"quorum.go", "wins = wins && confirmed >= e.quorum", "wins = wins || confirmed >= e.quorum"},
			},
			Sim: []Sim{{Profile: "membership", Oracle: "released"}}, // the janitor goes on, so no orphan tells
		},
		{ // a token is one that a quorum of the old masters has accepted, whatever the new ones have
			Name:  "joint-token-by-one",
			Edits: []Edit{{"fenced.go", "r.lock.locker.sets.majority(same)", "r.lock.locker.sets[:1].majority(same)"}},
			Sim:   []Sim{{Profile: "membership", Oracle: "token-order", First: 5001}}, // it shows in one schedule of some 300
		},
		{ // two sets of masters decide by a majority of all of them together
			Name:  "joint-majority-of-all",
			Edits: []Edit{{"quorum.go", "electorates{newElectorate(\"old\", old), newElectorate(\"new\", members)}", "electorates{newElectorate(\"\", old|members)}"}},
			Sim:   []Sim{{Profile: "membership", Oracle: "overlap"}},
		},
		{ // a lock is passed on although the masters do not keep it for as long as the next holder believes
			Name: "passed-past-its-bound",
			Edits: []Edit{
				{"pass.go", "until: min(validUntil(now, s.ttl, l.opts.DriftFactor), k.passing.bound),", "until: validUntil(now, s.ttl, l.opts.DriftFactor),"},
			},
			Sim:   []Sim{{Profile: "cohorts", Oracle: "overlap"}},
			Tests: []Tests{{".", []string{"TestAPassedLockEndsBeforeItsKeyDoes"}}},
		},
		{ // a lock goes on being passed on when others are to have it
			Name:  "passed-past-its-window",
			Edits: []Edit{{"pass.go", "now < p.ends && !p.doubt", "!p.doubt"}},
			Tests: []Tests{{".", []string{"TestALockIsPassedOnOnlyWithinItsWindow"}}},
		},
		{ // a lock is passed on that masters were found to have lost
			Name:  "passed-in-doubt",
			Edits: []Edit{{"pass.go", "now < p.ends && !p.doubt", "now < p.ends"}},
			Tests: []Tests{{".", []string{"TestALockIsNotPassedOn", "TestALockThatVerifyFoundLostIsNotPassedOn"}}},
		},
		{ // a fenced lock is passed on with the token that its holder had
			Name:  "passed-with-its-token",
			Edits: []Edit{{"pass.go", "next.token = k.token + 1", "next.token = k.token"}},
			Sim:   []Sim{{Profile: "cohorts", Oracle: "token-order"}},
			Tests: []Tests{{".", []string{"TestAFencedLockIsPassedOnWithTokensOfItsOwn", "TestTokensOfPassedLocksAreInOrder"}}},
		},
		{ // tokens are passed on that were not got ahead
			Name: "tokens-not-got-ahead",
			Edits: []Edit{
				{"redlock.go", "\t\trequest.Spare = spareTokens(k.passing.window)\n", ""},
				{"fenced.go", "= token, token+spare", "= token, token+spareTokens(k.passing.window)"},
			},
			Sim:   []Sim{{Profile: "cohorts", Oracle: "token-order"}},
			Tests: []Tests{{".", []string{"TestTokensOfPassedLocksAreInOrder"}}},
		},
		{ // a master gives tokens to others that it has given to one before
			Name:  "spare-tokens-given-twice",
			Edits: []Edit{{"single/lua/acquire.lua", "before, counter + spare, ARGV[9]", "before, counter, ARGV[9]"}},
			Tests: []Tests{{"./internal/store", []string{"TestTheStoreAnswersLikeARealServer"}}, {"./single", []string{"TestSpareTokensAreGivenToNobodyElse"}}},
		},
		{ // a fenced lock is passed on with more tokens than it has got
			Name:  "passed-without-tokens",
			Edits: []Edit{{"pass.go", " && (!k.spec.fenced || k.token < p.lastToken)", ""}},
			Tests: []Tests{{".", []string{"TestALockThatHasNoTokenLeftIsReleased"}}},
		},
		{ // whoever becomes first while the reminder comes to the one before is not told
			Name:  "lost-reminder",
			Edits: []Edit{{"pass.go", "if l.clock.Now() >= k.passing.ends {", "if false {"}},
			Tests: []Tests{{".", []string{"TestAReminderThatComesToTheOneBeforeIsNotLost"}}},
		},
		{ // who is passed a lock does not know what was sent for it
			Name:  "passed-without-its-masters",
			Edits: []Edit{{"pass.go", "\tcopy(next.states, k.states)\n", ""}},
			Sim:   []Sim{{Profile: "cohorts", Oracle: "orphan"}},
			Tests: []Tests{{".", []string{"TestStragglersOfALockThatWasPassedOnAreReleased"}}},
		},
		{ // one that gives up may still be taken for the next holder
			Name:  "taken-after-the-end",
			Edits: []Edit{{"internal/waitqueue/take.go", "\te.trying = e.trying || !e.taken\n", ""}},
			Tests: []Tests{{"./internal/waitqueue", []string{"TestAnEntryIsTakenOrLeaves"}}},
		},
		{ // a master that is still loading its data counts as one that has lost them
			Name:  "loading-is-forgetting",
			Edits: []Edit{{"single/guard_ask.go", "case !lasting(reply):", "case i < 3 && !lasting(reply):"}},
			Chaos: []Chaos{{"slow-restart", "liveness", 9 * time.Second}},
		},
		{ // an entry for several keys stays in the queue of one that is free while another one is in its way
			Name:  "stays-in-line",
			Edits: []Edit{{"internal/waitqueue/waitqueue.go", "if keys[0] != from {", "if false {"}},
			Chaos: []Chaos{{"mixed-waiters", "liveness", 10 * time.Second}},
		},
	}
}
