package mutant

import "time"

// engine are more mutants of the engine, by file, and of the code that uses it.
func engine() []Mutant {
	return []Mutant{
		{
			Name:   "acquired-one-more",
			Breaks: "an acquisition needs one grant more than a quorum",
			Edits: []Edit{
				{"quorum.go", "wins = wins && c.granted >= e.quorum\n\t\tlost = lost || c.granted+c.pending < " +
					"e.quorum\n\t\treachable", "wins = wins && c.granted > e.quorum\n\t\tlost = lost || " +
					"c.granted+c.pending < e.quorum\n\t\treachable"},
			},
			Tests: in(".", "TestAVerdictHoldsForAllPossibleLaterVotes"),
		},
		{
			Name:   "acquired-lost-early",
			Breaks: "an acquisition is lost when the grants that are still to come would just do",
			Edits: []Edit{
				{"quorum.go", "lost = lost || c.granted+c.pending < e.quorum\n\t\treachable", "lost = lost || " +
					"c.granted+c.pending <= e.quorum\n\t\treachable"},
			},
			Tests: in(".", "TestAVerdictHoldsForAllPossibleLaterVotes"),
		},
		{
			Name:   "extended-denied-early",
			Breaks: "an extension is denied by one refusal too few",
			Edits:  []Edit{{"quorum.go", "if c.refused > e.spare() {", "if c.refused >= e.spare() {"}},
			Tests:  in(".", "TestAVerdictHoldsForAllPossibleLaterVotes"),
		},
		{
			Name:   "released-by-most",
			Breaks: "a release says that the lock was held when a majority has said that it was not",
			Edits:  []Edit{{"quorum.go", "if c.refused >= e.quorum {", "if c.refused > e.quorum {"}},
			Tests:  in(".", "TestAVerdictHoldsForAllPossibleLaterVotes"),
		},
		{
			Name:   "unknown-is-refused",
			Breaks: "an error of a master counts as its refusal",
			Edits: []Edit{
				{
					"internal/hold/env.go", "\tcase Unknown:\n\t\tt.Unknown |= 1 << i",
					"\tcase Unknown:\n\t\tt.Refused |= 1 << i",
				},
			},
			Tests: in(".", "TestHazard11ARefusalInAnOutageIsNotHeld"),
		},
		{
			Name:   "votes-after-the-end",
			Breaks: "votes count after a round was decided",
			Edits: []Edit{
				{
					"internal/hold/round.go", "if r.verdict != Open || r.ballots[i].vote != Pending {",
					"if r.ballots[i].vote != Pending {",
				},
			},
			Tests: []Tests{
				{
					Package: ".", Names: []string{"TestARepeatedReleaseReturnsTheSameAfterLateReplies"},
					Crash: "blocked goroutines remain",
				},
			},
		},
		{
			Name:   "no-granularity",
			Breaks: "a validity does not lose the milliseconds of Redis's rounding",
			Edits:  []Edit{{"clock.go", "*factor) + expiryGranularity", "*factor)"}},
			Tests:  in(".", "TestHazard16DriftIsPaddedInMilliseconds"),
		},
		{
			Name:   "shorter-extension-puts-off",
			Breaks: "an extension by less than a renewal asks for puts the renewal off",
			Edits:  []Edit{{"internal/hold/renew.go", "\t\tif planned > 0 && ttl < t.TTL {", "\t\tif planned < 0 {"}},
			Tests:  in(".", "TestAShorterExtensionDoesNotDelayARenewal"),
		},
		{
			Name:   "time-overflows",
			Breaks: "a ttl beyond the end of time is over at once",
			Edits:  []Edit{{"clock.go", "if d > 0 && t > math.MaxInt64-d {", "if false {"}},
			Tests:  in(".", "TestAHugeMaxHoldIsNoLimit"),
		},
		{
			Name:   "lapsed-too-early",
			Breaks: "a key counts as gone when its ttl is over by our clock alone",
			Edits: []Edit{
				{"clock.go", "return later(later(now, ttl), driftAllowance(ttl, factor))", "return later(now, ttl)"},
			},
			Tests: in(".", "TestAKeyCountsAsGoneWhenTheSlowestClockSaysSo"),
		},
		{
			Name:   "max-hold-ignored",
			Breaks: "MaxHold does not end a lock that is renewed",
			Edits: []Edit{
				{
					"internal/hold/hold.go",
					"\tif h.atMost > 0 {\n\t\tuntil = min(until, h.atMost)\n\t}\n\th.until = max",
					"\th.until = max",
				},
			},
			Tests: []Tests{
				{
					Package: ".", Names: []string{"TestHazard21RenewalIsBounded"}, Crash: "test timed out",
					Within: 30 * time.Second,
				},
			},
		},
		{
			Name:   "bound-goes-back",
			Breaks: "an extension by less takes validity away",
			Edits:  []Edit{{"internal/hold/hold.go", "h.until = max(h.until, until)", "h.until = until"}},
			Tests:  in(".", "TestExtendNeverShortensTheValidity"),
		},
		{
			Name:   "err-without-clock",
			Breaks: "Err does not read the clock: a lock is held until a timer has fired",
			Edits:  []Edit{{"internal/hold/hold.go", "if !h.state.Over() && h.env.Now() >= h.until {", "if false {"}},
			Tests:  in(".", "TestHazard24AfterASuspensionEveryMethodReportsTheLossOfTheLock"),
		},
		{
			Name:   "failed-not-released",
			Breaks: "keys of a failed attempt are not released",
			Edits:  []Edit{{"lock.go", "\t\tk.hold.Abandon()\n", ""}},
			Tests:  in(".", "TestHazard01CleanupSurvivesAnExpiredContext"),
		},
		{
			Name:   "token-forgotten-by-extension",
			Breaks: "an extension does not bring a fencing counter back",
			Edits:  []Edit{{"internal/hold/hold.go", "\tif r.Op == single.Extend {\n\t\tr.Token = h.token\n\t}\n", ""}},
			Tests:  in(".", "TestExtendRaisesTheCounterOfAMasterThatLostIt"),
		},
		{
			Name:   "release-unsent",
			Breaks: "where the acquisition has ended nothing is released",
			Edits: []Edit{
				{
					"internal/hold/lease.go", "return s.last == nil && s.trace.Level < Touched }",
					"return s.last == nil }",
				},
			},
			Tests: in(".", "TestAReleasedLockIsOver"),
		},
		{
			Name:   "janitor-not-told",
			Breaks: "a release that was not confirmed is forgotten",
			Edits: []Edit{
				{
					"internal/hold/lease.go", "s.trace.Level >= Touched && (c.Err != nil || unsure) {",
					"unsure && false {",
				},
			},
			Tests: in(".", "TestAMasterThatWasStoppedIsCleanedUpSoonAfterItIsBack"),
		},
		{
			Name:   "spared-too-many",
			Breaks: "a master that a quorum needs is spared acquisitions",
			Edits: []Edit{{
				"internal/hold/send.go", "limit := 2*sorted[set.Quorum-1] + maxBehind",
				"limit := 2*sorted[0]",
			}},
			Tests: in(".", "TestAQuorumOfMastersAlwaysGetsTheRequest"),
		},
		{
			Name:   "spares-everything",
			Breaks: "also operations of locks that are held are not sent to masters that are behind",
			Edits: []Edit{
				{
					"internal/hold/send.go", "if r.request.Op == single.Acquire {\n\t\tbehind =",
					"if true {\n\t\tbehind =",
				},
			},
			Tests: in(".", "TestExtensionsAndReleasesGoToSlowMastersToo"),
		},
		{
			Name:   "release-tells-late",
			Breaks: "Done closes when the release is over, and not before it is sent",
			Edits: []Edit{
				{
					"internal/hold/release.go", "\tif h.done != nil {\n\t\tclose(h.done)\n\t}\n",
					"\tif h.done != nil {\n\t\tdefer func() { go close(h.done) }()\n\t}\n",
				},
			},
			Tests: in(".", "TestAReleasedLockIsOver"),
		},
		{
			Name:   "min-hold-dropped",
			Breaks: "a lock with MinHold gives its key back at once",
			Edits: []Edit{
				{
					"internal/hold/release.go", "\tif left <= 0 {\n\t\treturn 0\n\t}\n\treturn left +",
					"\tif left != 0 {\n\t\treturn 0\n\t}\n\treturn left +",
				},
			},
			Tests: in(".", "TestAReleasedLockKeepsItsKeysForMinHold"),
		},
		{
			Name:   "never-leaves",
			Breaks: "a cancelled waiter stays in the masters' queues",
			Edits:  []Edit{{"wait.go", "heirAfter); len(unclaimed) > 0 {", "heirAfter); len(unclaimed) < 0 {"}},
			Tests:  in(".", "TestACancelledWaiterIsNotNotified"),
		},
		{
			Name:   "position-lapses",
			Breaks: "a waiter that asks seldom lets its position in the masters' queues lapse",
			Edits:  []Edit{{"internal/contend/next.go", "\tcase subscribed:\n", "\tcase false:\n"}},
			Tests:  in(".", "TestAWaiterWithALongRetryEveryIsNotifiedOfALateRelease"),
		},
		{
			Name:   "position-asked-for-once",
			Breaks: "one attempt that the masters do not answer costs the position in their queues",
			Edits: []Edit{
				{"internal/contend/next.go", "refreshAfter = 24 * time.Second", "refreshAfter = 40 * time.Second"},
			},
			Tests: in(".", "TestAWaiterKeepsItsPositionAfterALostAttempt"),
		},
		{
			Name:   "position-counts",
			Sample: true,
			Breaks: "what keeps the position in the masters' queues counts as an attempt",
			Edits:  []Edit{{"internal/contend/next.go", "Counts: v.Now >= p.due", "Counts: true"}},
			Tests:  in(".", "TestKeepingAPositionCountsAsNoAttempt"),
		},
		{
			Name:   "position-nowhere",
			Breaks: "who asks seldom asks more often although no master can notify it",
			Edits:  []Edit{{"internal/contend/next.go", "\tcase subscribed:\n", "\tcase true:\n"}},
			Tests:  in(".", "TestAWaiterSendsFewRequestsToKeepItsPosition"),
		},
		{
			Name:   "repairs-a-loss",
			Breaks: "an extension that was not won sets keys again",
			Edits:  []Edit{{"internal/hold/repair.go", "if r.verdict != Won || h.state.Over()", "if h.state.Over()"}},
			Tests:  in(".", "TestKeysThatAFailedExtensionSetDoNotCount"),
		},
		{
			Name:   "repair-trusted",
			Breaks: "a repair without an answer counts as a key that was there",
			Edits: []Edit{
				{
					"internal/hold/repair.go", "\tif c.Err == nil || !c.Sent {\n\t\th.states",
					"\tif true {\n\t\th.states",
				},
			},
			Tests: in(".", "TestARepairWithoutAnAnswerCountsWhenTheOthersHaveConfirmed"),
		},
		{
			Name:   "repair-never-trusted",
			Breaks: "a master that was repaired never counts again",
			Edits: []Edit{
				{"internal/hold/repair.go", "\t\tif b.ended && b.Err == nil && b.Reply.Outcome == single.Granted " +
					"{\n\t\t\ts.continuityUnknown = false\n\t\t}\n", "\t\t_ = b\n"},
			},
			Tests: in(".", "TestARepairWithoutAnAnswerCountsWhenTheOthersHaveConfirmed"),
		},
		{
			Name:   "repair-too-short",
			Breaks: "a repaired key lives for the extension's ttl, although the hold counts on it for longer",
			Edits: []Edit{{
				"internal/hold/repair.go", "return max(r.request.TTL, min(",
				"return min(r.request.TTL, min(",
			}},
			Tests: in(".", "TestARepairedKeyHasTheTTLOfTheHold"),
		},
		{
			Name:   "extension-from-before",
			Breaks: "an extension that began before the caller asked counts as its own",
			Edits: []Edit{
				{
					"internal/hold/extend.go", "if x.begun > asked && x.latest",
					"if x.begun >= asked && x.latest != nil && x.latest",
				},
			},
			Tests: in(".", "TestValidityAfterAnExtensionCountsFromItsRequest"),
		},
		{
			Name:   "renews-once-more",
			Breaks: "a lock is renewed one time more than MaxRenewals",
			Edits:  []Edit{{"internal/hold/renew.go", "n.count < t.MaxRenewals", "n.count <= t.MaxRenewals"}},
			Tests:  in(".", "TestHazard21RenewalIsBounded"),
		},
		{
			Name:   "renewal-tried-once",
			Breaks: "a renewal that has failed is not tried again",
			Edits: []Edit{
				{
					"internal/hold/renew.go", "if f := h.extendedLocked(r, &after); f != nil && !h.state.Over() {",
					"if f := h.extendedLocked(r, &after); f != nil && h.state.Over() {",
				},
			},
			Tests: in(".", "TestARenewalThatHasFailedIsTriedAgain"),
		},
		{
			Name:   "one-attempt-more",
			Breaks: "a wait makes one attempt more than MaxAttempts",
			Edits: []Edit{
				{"wait.go", "final = w.Attempts == w.spec.MaxAttempts", "final = w.Attempts == w.spec.MaxAttempts+1"},
			},
			Tests: in(".", "TestMaxAttemptsEndsTheWaitAfterSoManyRounds"),
		},
		{
			Name:   "waits-for-nothing",
			Breaks: "a wait has no end although an operator has to mend something",
			Edits: []Edit{
				{"internal/contend/next.go", "return max(began, p.Since) + o.MendTime", "return 0"},
			},
			Tests: in(".", "TestARefusalByASetIsReportedDuringItsOwnOutage"),
		},
		{
			Name:   "mends-at-once",
			Breaks: "a wait ends as soon as masters complain of something that an operator may mend",
			Edits: []Edit{
				{"internal/contend/next.go", "return max(began, p.Since) + o.MendTime", "return max(began, p.Since)"},
			},
			Tests: in(".", "TestHazard105AWaitOutlastsEveryFaultThatMayPass"),
		},
		{
			Name:   "mended-by-each",
			Breaks: "each of those who wait behind each other asks the masters whether they still complain",
			Edits:  []Edit{{"wait.go", "f != nil && turn && w.rounds == 0 {", "f != nil && turn && w.rounds < 0 {"}},
			Tests:  in(".", "TestHazard105TheTableOfFaultsSaysWhenAWaitEnds"),
		},
		{
			Name:   "election-gives-up",
			Breaks: "an election ends like a wait when an operator has to mend something",
			Edits:  []Edit{{"spec.go", "s.MendTime == 0 && !s.enduring {", "s.MendTime == 0 {"}},
			Tests:  in(".", "TestHazard105ACandidateOutlastsEveryFaultThatMayPass"),
		},
		{
			Name:   "complains-often",
			Breaks: "the pauses of a wait do not become longer while masters complain",
			Edits:  []Edit{{"internal/contend/next.go", "if p.ComplainedOf > 0 {\n", "if p.ComplainedOf < 0 {\n"}},
			Tests:  in(".", "TestHazard105ACandidateOutlastsEveryFaultThatMayPass"),
		},
		{
			Name:   "provider-unknown",
			Breaks: "refused credentials that a provider has made count as a wrong password",
			Edits:  []Edit{{"single/faults.go", "case m.renews && isRefusedUser(err):", "case false:"}},
			Tests:  in(".", "TestHazard105TheTableOfFaultsSaysWhenAWaitEnds"),
		},
		{
			Name:   "closed-client-passes",
			Breaks: "a wait on clients that were closed goes on",
			Edits: []Edit{
				{"single/faults.go", "{\"the client is closed\", Closed,", "{\"the client is closed\", Passing,"},
			},
			Tests: in(".", "TestHazard106AWaitOnClosedClientsEnds"),
		},
		{
			Name:   "stale-replica-counts",
			Breaks: "a replica's answer on an old connection counts for its address",
			Edits:  []Edit{{"single/batch.go", "case e.stale && IsElsewhere(err):", "case false:"}},
			Tests:  in(".", "TestHazard104AStaleConnectionToADemotedServerEndsNothing"),
		},
		{
			Name:   "reconnection-unlooked",
			Breaks: "a release that was published while a subscription was away is not looked for",
			Edits: []Edit{
				{"internal/subscription/subscription.go", "if l.ready>>i&1 == 1 && l == s.current {", "if false {"},
			},
			Tests: in(".", "TestHazard107AReleaseWhileAllSubscriptionsAreAwayIsNoticed"),
		},
		{
			Name:   "never-listens",
			Breaks: "a waiter does not listen for notifications",
			Edits:  []Edit{{"wait.go", "\t\tl.crowd.Subscription.Enter()\n", ""}},
			Tests:  in(".", "TestALockerListensOnOneConnectionAMasterAndOnlyWhileItWaits"),
		},
		{
			Name:   "raise-once",
			Breaks: "a raise that has come too late is not repeated",
			Edits:  []Edit{{"internal/hold/fence.go", "const maxRaises = 4", "const maxRaises = 1"}},
			Tests:  in(".", "TestARaiseThatComesTooLateIsRepeated"),
		},
		{
			Name:   "mad-clock",
			Breaks: "a clock of another millennium uses up the tokens",
			Edits:  []Edit{{"internal/hold/tokens.go", "\tif wall > greatestWallToken {\n\t\treturn 0\n\t}\n", ""}},
			Tests:  in(".", "TestAClockOfAnotherMillenniumDoesNotUseUpTokens"),
		},
		{
			Name:   "passed-when-extended",
			Breaks: "a lock is passed on that was extended",
			Edits:  []Edit{{"internal/hold/pass.go", " && h.extending.begun == 0", ""}},
			Tests:  in(".", "TestSomeReleasesGoToTheMastersInsteadOfAWaiter"),
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
			Tests:  in(".", "TestKeysWithOneHashTagBelongToOneGroup"),
			Sample: true,
		},
		{
			Name:   "shard-least",
			Breaks: "a key belongs to the group with the smallest score",
			Edits:  []Edit{{"sharded/rendezvous.go", "at < 0 || score > best {", "at < 0 || score < best {"}},
			Tests:  in(".", "TestTheGroupOfAKeyNeverChanges"),
		},
		{
			Name:   "leader-always",
			Breaks: "a candidate says that it leads when its term is over",
			Edits: []Edit{
				{"leader/leader.go", "return c.term.Load().Err() == nil }", "return c.term.Load() != nil }"},
			},
			Tests:  in("leader", "TestACandidateIsNoLeaderOnceItsTermIsOver"),
			Sample: true,
		},
		{
			Name:   "leader-stuck-is-healthy",
			Breaks: "a candidate that never leads is healthy although there is no leader",
			Edits: []Edit{
				{"leader/vacancy.go", "if what == nobody && lasted > c.tolerance {", "if what == nobody && lasted " +
					"< 0 {"},
			},
			Tests: in("leader", "TestACampaignThatIsStuckIsNotHealthy"),
		},
	}
}
