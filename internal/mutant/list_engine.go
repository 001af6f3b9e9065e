package mutant

import "time"

// engine are more mutants of the engine, by file, and of what stands on it.
func engine() []Mutant {
	return []Mutant{
		{
			Name:   "acquired-one-more",
			Breaks: "an acquisition needs one grant more than a quorum",
			Edits:  []Edit{{"quorum.go", "wins = wins && c.granted >= e.quorum\n\t\tlost = lost || c.granted+c.pending < e.quorum\n\t\treachable", "wins = wins && c.granted > e.quorum\n\t\tlost = lost || c.granted+c.pending < e.quorum\n\t\treachable"}},
			Tests:  in(".", "TestVerdictsAreWhatEveryCompletionOfTheVotesLeadsTo"),
		},
		{
			Name:   "acquired-lost-early",
			Breaks: "an acquisition is lost when the grants that are still to come would just do",
			Edits:  []Edit{{"quorum.go", "lost = lost || c.granted+c.pending < e.quorum\n\t\treachable", "lost = lost || c.granted+c.pending <= e.quorum\n\t\treachable"}},
			Tests:  in(".", "TestVerdictsAreWhatEveryCompletionOfTheVotesLeadsTo"),
		},
		{
			Name:   "extended-denied-early",
			Breaks: "an extension is denied by one refusal too few",
			Edits:  []Edit{{"quorum.go", "if c.refused > e.spare() {", "if c.refused >= e.spare() {"}},
			Tests:  in(".", "TestVerdictsAreWhatEveryCompletionOfTheVotesLeadsTo"),
		},
		{
			Name:   "released-by-most",
			Breaks: "a release says that the lock was held when a majority has said that it was not",
			Edits:  []Edit{{"quorum.go", "if c.refused >= e.quorum {", "if c.refused > e.quorum {"}},
			Tests:  in(".", "TestVerdictsAreWhatEveryCompletionOfTheVotesLeadsTo"),
		},
		{
			Name:   "unknown-is-refused",
			Breaks: "an error of a master counts as its refusal",
			Edits:  []Edit{{"quorum.go", "\tcase Unknown:\n\t\tt.unknown |= 1 << i", "\tcase Unknown:\n\t\tt.refused |= 1 << i"}},
			Tests:  in(".", "TestHazard11ARefusalInAnOutageIsNotHeld"),
		},
		{
			Name:   "votes-after-the-end",
			Breaks: "votes count after a round was decided",
			Edits:  []Edit{{"round.go", "if r.verdict != open || r.ballots[i].vote != Pending {", "if r.ballots[i].vote != Pending {"}},
			Tests:  []Tests{{Package: ".", Names: []string{"TestReleaseAgainSaysTheSameWhateverComesLate"}, Crash: "blocked goroutines remain"}},
		},
		{
			Name:   "no-granularity",
			Breaks: "the milliseconds by which Redis rounds are not taken off a validity",
			Edits:  []Edit{{"clock.go", "*factor) + expiryGranularity", "*factor)"}},
			Tests:  in(".", "TestHazard16DriftIsPaddedInMilliseconds"),
		},
		{
			Name:   "time-overflows",
			Breaks: "a ttl beyond the end of time is over at once",
			Edits:  []Edit{{"clock.go", "if d > 0 && t > math.MaxInt64-d {", "if false {"}},
			Tests:  in(".", "TestAMaxHoldBeyondTheEndOfTimeIsNone"),
		},
		{
			Name:   "lapsed-too-early",
			Breaks: "a key counts as gone when its ttl is over by our clock alone",
			Edits:  []Edit{{"clock.go", "return later(later(now, ttl), driftAllowance(ttl, factor))", "return later(now, ttl)"}},
			Tests:  in(".", "TestAKeyIsGoneNoSoonerThanTheSlowestClockSays"),
		},
		{
			Name:   "max-hold-ignored",
			Breaks: "MaxHold does not end a lock that is renewed",
			Edits:  []Edit{{"lock.go", "\tif k.atMost > 0 {\n\t\tuntil = min(until, k.atMost)\n\t}\n\tk.until = max", "\tk.until = max"}},
			Tests:  []Tests{{Package: ".", Names: []string{"TestHazard21RenewalIsBounded"}, Crash: "test timed out", Within: 30 * time.Second}},
		},
		{
			Name:   "bound-goes-back",
			Breaks: "an extension by less takes validity away",
			Edits:  []Edit{{"lock.go", "k.until = max(k.until, until)", "k.until = until"}},
			Tests:  in(".", "TestExtendMovesTheBoundAndNeverBack"),
		},
		{
			Name:   "err-without-clock",
			Breaks: "Err does not read the clock: a lock is held until a timer has fired",
			Edits:  []Edit{{"lock.go", "if k.over == nil && k.locker.clock.Now() >= k.until {", "if false {"}},
			Tests:  in(".", "TestHazard24AfterASuspensionEverythingKnows"),
		},
		{
			Name:   "failed-not-released",
			Breaks: "what a failed attempt has left on masters is not released",
			Edits:  []Edit{{"lock.go", "\t\tk.finish(errAbandoned, nil)\n", ""}},
			Tests:  in(".", "TestHazard01CleanupSurvivesAnExpiredContext"),
		},
		{
			Name:   "token-forgotten-by-extension",
			Breaks: "an extension does not bring a fencing counter back",
			Edits:  []Edit{{"lock.go", "\tif r.Op == single.Extend {\n\t\tr.Token = k.token\n\t}\n", ""}},
			Tests:  in(".", "TestExtendRaisesTheCounterOfAMasterThatLostIt"),
		},
		{
			Name:   "release-unsent",
			Breaks: "where the acquisition has ended nothing is released",
			Edits:  []Edit{{"order.go", "return !s.maySet && (", "return s.maySet || ("}},
			Tests:  in(".", "TestAReleasedLockIsOver"),
		},
		{
			Name:   "janitor-not-told",
			Breaks: "a release that was not confirmed is forgotten",
			Edits:  []Edit{{"order.go", "if s.maySet && (c.Err != nil || s.outcomeUnknown) {", "if false {"}},
			Tests:  in(".", "TestAMasterThatWasStoppedIsCleanedUpSoonAfterItIsBack"),
		},
		{
			Name:   "spared-too-many",
			Breaks: "a master that a quorum needs is spared acquisitions",
			Edits:  []Edit{{"order.go", "limit := 2*sorted[set.quorum-1] + maxBehind", "limit := 2*sorted[0]"}},
			Tests:  in(".", "TestAQuorumIsAlwaysAsked"),
		},
		{
			Name:   "spares-everything",
			Breaks: "also operations of locks that are held are not sent to masters that are behind",
			Edits:  []Edit{{"order.go", "if r.request.Op != single.Acquire {\n\t\treturn 0", "if false {\n\t\treturn 0"}},
			Tests:  in(".", "TestOperationsOfAHoldAreNotSpared"),
		},
		{
			Name:   "release-tells-late",
			Breaks: "Done closes when the release is over, and not before it is sent",
			Edits:  []Edit{{"release.go", "\tif k.done != nil {\n\t\tclose(k.done)\n\t}\n", "\tif k.done != nil {\n\t\tdefer func() { go close(k.done) }()\n\t}\n"}},
			Tests:  in(".", "TestAReleasedLockIsOver"),
		},
		{
			Name:   "min-hold-dropped",
			Breaks: "a lock with MinHold gives its key back at once",
			Edits:  []Edit{{"release.go", "\tif left <= 0 {\n\t\treturn 0\n\t}\n\treturn left +", "\tif left != 0 {\n\t\treturn 0\n\t}\n\treturn left +"}},
			Tests:  in(".", "TestAReleasedLockKeepsItsKeysForMinHold"),
		},
		{
			Name:   "never-leaves",
			Breaks: "a waiter that gives up stays in the masters' queues",
			Edits:  []Edit{{"wait.go", "\tif len(unclaimed) > 0 && !claimed {\n\t\tl.depart(w.spec, unclaimed, w.latest)\n\t}\n", "\t_ = unclaimed\n"}},
			Tests:  in(".", "TestAWaiterThatGaveUpIsNotCalled"),
		},
		{
			Name:   "repairs-a-loss",
			Breaks: "an extension that was not won sets keys again",
			Edits:  []Edit{{"extend.go", "if !r.repairs || r.verdict != won || k.over != nil", "if !r.repairs || k.over != nil"}},
			Tests:  in(".", "TestAFailedExtensionSetsNothingAgain"),
		},
		{
			Name:   "repair-trusted",
			Breaks: "a repair without an answer counts as a key that was there",
			Edits:  []Edit{{"extend.go", "\tif c.Err == nil || !c.Sent {\n\t\tk.states", "\tif true {\n\t\tk.states"}},
			Tests:  in(".", "TestARepairWithoutAnAnswerCountsWhenTheOthersHaveConfirmed"),
		},
		{
			Name:   "repair-never-trusted",
			Breaks: "a master that was repaired never counts again",
			Edits:  []Edit{{"extend.go", "\t\tif b.ended && b.Err == nil && b.Reply.Outcome == single.Granted {\n\t\t\ts.continuityUnknown = false\n\t\t}\n", "\t\t_ = b\n"}},
			Tests:  in(".", "TestARepairWithoutAnAnswerCountsWhenTheOthersHaveConfirmed"),
		},
		{
			Name:   "repair-too-short",
			Breaks: "what is set again lives for as long as the extension asked for, though the hold counts on it for longer",
			Edits:  []Edit{{"extend.go", "return max(r.request.TTL, min(", "return min(r.request.TTL, min("}},
			Tests:  in(".", "TestARepairLivesAsLongAsTheHold"),
		},
		{
			Name:   "extension-from-before",
			Breaks: "an extension that began before the caller asked counts as its own",
			Edits:  []Edit{{"extend.go", "if x.begun > asked && x.latest", "if x.begun >= asked && x.latest != nil && x.latest"}},
			Tests:  in(".", "TestAnExtensionCountsFromWhenItWasAskedFor"),
		},
		{
			Name:   "renews-once-more",
			Breaks: "a lock is renewed once more than MaxRenewals",
			Edits:  []Edit{{"renew.go", "n.count < s.maxRenewals", "n.count <= s.maxRenewals"}},
			Tests:  in(".", "TestHazard21RenewalIsBounded"),
		},
		{
			Name:   "renewal-tried-once",
			Breaks: "a renewal that has failed is not tried again",
			Edits:  []Edit{{"renew.go", "if err := k.extendedLocked(r, &after); err != nil && k.over == nil {", "if err := k.extendedLocked(r, &after); err != nil && k.over != nil {"}},
			Tests:  in(".", "TestARenewalThatHasFailedIsTriedAgain"),
		},
		{
			Name:   "one-attempt-more",
			Breaks: "a wait makes one attempt more than MaxAttempts",
			Edits:  []Edit{{"wait.go", "final = w.attempts == w.spec.maxAttempts", "final = w.attempts == w.spec.maxAttempts+1"}},
			Tests:  in(".", "TestMaxAttemptsEndsTheWaitAfterSoManyRounds"),
		},
		{
			Name:   "waits-for-nothing",
			Breaks: "a wait goes on where waiting can't help",
			Edits: []Edit{
				{"wait.go", "errors.Is(err, ErrExpired)) && !errors.Is(err, ErrMisconfigured)", "errors.Is(err, ErrExpired))"},
				{"wait.go", "case errors.Is(err, ErrMisconfigured), errors.Is(err, ErrOutdated), err", "case errors.Is(err, ErrOutdated), err"},
			},
			Tests: in(".", "TestHazard51AWrongPasswordEndsTheWait"),
		},
		{
			Name:   "never-listens",
			Breaks: "a waiter does not listen for notifications",
			Edits:  []Edit{{"wait.go", "\t\tl.subscription.Enter()\n", ""}},
			Tests:  in(".", "TestALockerListensOnOneConnectionAMasterAndOnlyWhileItWaits"),
		},
		{
			Name:   "raise-once",
			Breaks: "a raise that has come too late is not repeated",
			Edits:  []Edit{{"fenced.go", "const maxRaises = 4", "const maxRaises = 1"}},
			Tests:  in(".", "TestARaiseThatComesTooLateIsRepeated"),
		},
		{
			Name:   "mad-clock",
			Breaks: "a clock of another millennium uses up the tokens",
			Edits:  []Edit{{"fenced.go", "\tif wall > greatestWallToken {\n\t\treturn 0\n\t}\n", ""}},
			Tests:  in(".", "TestAClockOfAnotherMillenniumDoesNotUseUpTokens"),
		},
		{
			Name:   "passed-when-extended",
			Breaks: "a lock is passed on that was extended",
			Edits:  []Edit{{"pass.go", " && k.extending.begun == 0", ""}},
			Tests:  in(".", "TestALockIsNotPassedOn"),
		},
		{
			Name:   "ttl-beyond-guard",
			Breaks: "a lock outlives the masters' restart guard",
			Edits:  []Edit{{"spec.go", "guard > 0 && ttl > guard {", "guard > 0 && ttl > 2*guard {"}},
			Tests:  in(".", "TestATTLLongerThanTheGuardIsRefused"),
		},
		{
			Name:   "shard-one-group",
			Breaks: "during a transition a key that moves is locked in its new group alone",
			Edits:  []Edit{{"sharded/sharded.go", "\treturn s.joint[[2]int{from, to}]\n", "\treturn s.lockers[to]\n"}},
			Tests:  in(".", "TestProcessesOfATransitionAgreeWithThoseBeforeAndAfter"),
		},
		{
			Name:   "shard-whole-key",
			Breaks: "keys with one hash tag are spread over the groups",
			Edits:  []Edit{{"sharded/rendezvous.go", "found && tag != \"\" {", "found && tag == \"\" {"}},
			Tests:  in(".", "TestKeysWithOneHashTagAreOfOneGroup"),
			Sample: true,
		},
		{
			Name:   "shard-least",
			Breaks: "a key belongs to the group with the smallest score",
			Edits:  []Edit{{"sharded/rendezvous.go", "at < 0 || score > best {", "at < 0 || score < best {"}},
			Tests:  in(".", "TestWhereAKeyBelongsNeverChanges"),
		},
		{
			Name:   "leader-always",
			Breaks: "a candidate says that it leads when its term is over",
			Edits:  []Edit{{"leader/leader.go", "return c.term.Load().Err() == nil }", "return c.term.Load() != nil }"}},
			Tests:  in("leader", "TestACandidateIsNoLeaderOnceItsTermIsOver"),
			Sample: true,
		},
		{
			Name:   "leader-stuck-is-healthy",
			Breaks: "a candidate that never leads though nobody does is healthy",
			Edits:  []Edit{{"leader/health.go", "case now.Sub(c.vacant) > c.tolerance:", "case now.Sub(c.vacant) < 0:"}},
			Tests:  in("leader", "TestACampaignThatIsStuckIsNotHealthy"),
		},
	}
}
