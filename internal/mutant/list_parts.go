package mutant

// parts are the mutants of the engine's parts: its janitor, queues, lanes and timers.
func parts() []Mutant {
	return []Mutant{
		{
			Name: "janitor-asks-once",
			Breaks: "the first answer settles a release behind an unknown outcome, also if the master reads the " +
				"earlier request later",
			Edits:  []Edit{{"internal/janitor/janitor.go", "p.need, p.unread = 2, true", "p.need, p.unread = 1, true"}},
			Tests:  in("internal/janitor", "TestAMasterIsAskedUntilItConfirms"),
			Sample: true,
		},
		{
			Name:   "janitor-ttl-from-adoption",
			Breaks: "the ttl of a request to a stopped master counts from before the master read it",
			Edits: []Edit{
				{"internal/janitor/janitor.go", "p.lapses = max(p.lapses, j.Lapsed(now, p.Request.TTL))", "_ = now"},
			},
			Tests: in("internal/janitor", "TestAnUnreadRequestLapsesATTLAfterTheFirstAnswer"),
		},
		{
			Name:   "janitor-forgets-unread",
			Breaks: "a release is forgotten with its ttl though its master has yet to read what sets the key",
			Edits: []Edit{
				{"internal/janitor/janitor.go", "now >= p.lapses && (!p.unread || j.draining)", "now >= p.lapses"},
			},
			Tests: in("internal/janitor", "TestAReleaseLapsesWithItsTTLUnlessItsKeyMayStillBeSet"),
		},
		{
			Name:   "janitor-never-lapses",
			Breaks: "releases are sent again after their keys have expired",
			Edits:  []Edit{{"internal/janitor/janitor.go", "now >= p.lapses && (!p.unread", "now < 0 && (!p.unread"}},
			Tests:  in("internal/janitor", "TestAReleaseLapsesWithItsTTLUnlessItsKeyMayStillBeSet"),
		},
		{
			Name:   "janitor-floods",
			Breaks: "a master that is down gets all pending releases",
			Edits:  []Edit{{"internal/janitor/janitor.go", "down := j.Down(i)", "down := false"}},
			Tests:  in("internal/janitor", "TestAMasterThatIsDownGetsOnePendingReleaseAtATime"),
		},
		{
			Name:   "janitor-asks-with-others",
			Breaks: "a master that is down is asked whenever another one is",
			Edits: []Edit{
				{"internal/janitor/janitor.go", "if down && now+early < j.next[i] {", "if down && now < 0 {"},
			},
			Tests: in("internal/janitor", "TestAMasterThatIsDownIsNotAskedWithOthers"),
		},
		{
			Name:   "janitor-waits-twice",
			Breaks: "a release that has failed later than another is repeated only after two intervals",
			Edits:  []Edit{{"internal/janitor/janitor.go", "j.armLocked(wait)", "j.armLocked(max(wait, Interval))"}},
			Tests:  in("internal/janitor", "TestEachMasterIsAskedAgainWithinAnInterval"),
		},
		{
			Name:   "janitor-sweeps-for-each",
			Breaks: "each release that has failed has a sweep of its own",
			Edits: []Edit{
				{"internal/janitor/janitor.go", "!p.asking && now+early >= p.due", "!p.asking && now >= p.due"},
			},
			Tests: in("internal/janitor", "TestAnIntervalHasFewSweeps"),
		},
		{
			Name:   "janitor-no-bound",
			Breaks: "one release more than the bound is remembered of a master",
			Edits: []Edit{
				{"internal/janitor/janitor.go", "n < MaxPending, p.leaves()", "n <= MaxPending, p.leaves()"},
			},
			Tests: in("internal/janitor", "TestPendingReleasesOfOneMasterAreBounded"),
		},
		{
			Name:   "janitor-no-hurry",
			Breaks: "a master that is back gets one pending release an interval",
			Edits:  []Edit{{"internal/janitor/janitor.go", "if waits && !j.closed", "if waits && j.closed"}},
			Tests:  in("internal/janitor", "TestAMasterThatIsDownGetsOnePendingReleaseAtATime"),
		},
		{
			Name:   "janitor-asks-the-latest",
			Breaks: "a master that is down gets the youngest pending release again and again, and no other",
			Edits:  []Edit{{"internal/janitor/janitor.go", "cmp.Compare(a.due, b.due)", "cmp.Compare(b.due, a.due)"}},
			Tests:  in("internal/janitor", "TestAMasterThatIsDownGetsOnePendingReleaseAtATime"),
		},
		{
			Name:   "retention-too-long",
			Breaks: "a counter's key is remembered for longer than masters keep the counter",
			Edits:  []Edit{{"internal/retention/retention.go", "age >= 2*turn", "age >= 9*turn"}},
			Tests:  in("internal/retention", "TestKeysAreForgottenInTimeAndNotBefore"),
			Sample: true,
		},
		{
			Name:   "retention-no-bound",
			Breaks: "one key more than the bound is remembered",
			Edits:  []Edit{{"internal/retention/retention.go", "len(k.young) >= maxKeys", "len(k.young) > maxKeys"}},
			Tests:  in("internal/retention", "TestTheNumberAndSizeOfKeysAreBounded"),
		},
		{
			Name:   "schedule-early",
			Breaks: "an entry fires before it is due",
			Edits: []Edit{
				{"internal/schedule/schedule.go", "s.entries[0].at <= s.now()", "s.entries[0].at <= " +
					"s.now()+time.Millisecond"},
			},
			Tests: in("internal/schedule", "TestEachEntryFiresAtItsOwnTime"),
		},
		{
			Name:   "schedule-backwards",
			Breaks: "the last entry fires first",
			Edits:  []Edit{{"internal/schedule/schedule.go", "h[i].at < h[j].at", "h[i].at > h[j].at"}},
			Tests:  in("internal/schedule", "TestEntriesFireInTheirOrderAndNeverEarly"),
			Sample: true,
		},
		{
			Name:   "schedule-sleeps-on",
			Breaks: "after a suspension nothing fires before its timer does, which stood still",
			Edits: []Edit{
				{"internal/schedule/schedule.go", "min(s.entries[0].at-now, longestSleep)", "s.entries[0].at-now"},
			},
			Tests: in("internal/schedule", "TestEntriesDueDuringASuspensionFireWithinASecondAfterIt"),
		},
		{
			Name:   "schedule-late",
			Breaks: "an entry that is due before all others does not move the timer",
			Edits:  []Edit{{"internal/schedule/schedule.go", "(s.armed == 0 || at < s.armed)", "s.armed == 0"}},
			Tests:  in("internal/schedule", "TestEachEntryFiresAtItsOwnTime"),
		},
		{
			Name:   "schedule-after-close",
			Breaks: "entries fire after Close",
			Edits: []Edit{
				{
					"internal/schedule/schedule.go", "if !s.closed && len(s.entries) > 0 && s.entries[0].at <=",
					"if len(s.entries) > 0 && s.entries[0].at <=",
				},
			},
			Tests: in("internal/schedule", "TestNothingMoreFiresOnceCloseHasBegun"),
		},
		{
			Name:   "limiter-one-more",
			Breaks: "one operation more than the limit is under way",
			Edits:  []Edit{{"internal/limiter/limiter.go", "l.underWay < l.limit", "l.underWay <= l.limit"}},
			Tests:  in("internal/limiter", "TestOperationsStartInTheirOrderUpToTheLimit"),
			Sample: true,
		},
		{
			Name:   "delivery-ends",
			Breaks: "an observer that ends its goroutine gets no more events",
			Edits:  []Edit{{"internal/delivery/delivery.go", "if !finished {", "if false && !finished {"}},
			Tests: []Tests{
				{
					Package: "internal/delivery", Names: []string{
						"TestValuesComeInTheirOrderAlsoWhereTheGoroutineEnds",
					},
					Crash: "goroutines in bubble are blocked",
				},
			},
		},
		{
			Name:   "delivery-no-count",
			Breaks: "events that found no room are not told of",
			Edits:  []Edit{{"internal/delivery/delivery.go", "\t\tq.missed++\n", ""}},
			Tests:  in("internal/delivery", "TestValuesWithoutRoomAreCounted"),
			Sample: true,
		},
		{
			Name:   "subscription-cut",
			Breaks: "a subscription ends after its time though another waiter has come",
			Edits: []Edit{
				{"internal/subscription/subscription.go", "if s.waiters == 0 && !s.closed {", "if !s.closed {"},
			},
			Tests:  in("internal/subscription", "TestWaitersShareOneSubscriptionThatLingers"),
			Sample: true,
		},
		{
			Name:   "queue-first-and-second",
			Breaks: "also the second in line has the turn",
			Edits: []Edit{
				{"internal/waitqueue/yield.go", "turn = l == nil || l.first == e\n", "turn = l == nil || l.first == " +
					"e || e.prev == l.first\n"},
			},
			Tests: in("internal/waitqueue", "TestEveryQueueHasOneTurn"),
		},
		{
			Name:   "queue-not-by-age",
			Breaks: "who comes from another key's queue stands behind the younger",
			Edits:  []Edit{{"internal/waitqueue/keyqueue.go", "if before.seq > e.seq {", "if false {"}},
			Tests:  in("internal/waitqueue", "TestAnEntryBlockedByAnotherKeyMakesRoom"),
		},
		{
			Name:   "queue-one-notification",
			Breaks: "one master's notification counts as a quorum's",
			Edits:  []Edit{{"internal/waitqueue/notify.go", "case q.majority(l.notified):", "case l.notified != 0:"}},
			Tests:  in("internal/waitqueue", "TestANotificationGoesToTheFirstEntry"),
		},
		{
			Name:   "queue-lost-news",
			Breaks: "a notification is lost when the first in line changes",
			Edits:  []Edit{{"internal/waitqueue/keyqueue.go", "\tl.news |= why\n", ""}},
			Tests:  in("internal/waitqueue", "TestNewsOfAFreeKeyGoesToTheEntryWithTheTurn"),
		},
		{
			Name:   "queue-same-class-again",
			Breaks: "an attempt that reached no quorum lets the class try that has tried most often",
			Edits: []Edit{
				{"internal/waitqueue/waitqueue.go", "other.attempts < chosen.attempts", "other.attempts > " +
					"chosen.attempts"},
			},
			Tests: in("internal/waitqueue", "TestAnotherClassGetsAChanceAndTheOrderWithinAClassStays"),
		},
		{
			Name:   "queue-favour-for-all",
			Breaks: "also older entries leave the keys alone that are kept for a favoured one",
			Edits:  []Edit{{"internal/waitqueue/yield.go", "f.seq < e.seq", "f.seq != e.seq"}},
			Tests:  in("internal/waitqueue", "TestAFavourTakesNothingFromOlderEntries"),
		},
		{
			Name:   "queue-favour-no-rest",
			Breaks: "a favour follows the other, so that a hold that does not end keeps the others from their keys",
			Edits:  []Edit{{"internal/waitqueue/yield.go", "return now < q.favours.get(key).rest }", "return false }"}},
			Tests:  in("internal/waitqueue", "TestAFavourKeepsKeysFromYoungerEntriesForAShortTime"),
		},
		{
			Name:   "queue-forgets-place",
			Breaks: "a new first waiter does not know that the process is in the masters' queues",
			Edits: []Edit{
				{"internal/waitqueue/keyqueue.go", "\t\tl.first.inherited = true\n\t\tif why", "\t\tif why"},
			},
			Tests: in("internal/waitqueue", "TestTheNewFirstEntryInheritsThePosition"),
		},
		{
			Name:   "queue-takes-who-tries",
			Breaks: "one that makes an attempt is passed a lock, and may get two",
			Edits:  []Edit{{"internal/waitqueue/take.go", "l.first.trying || ", ""}},
			Tests:  in("internal/waitqueue", "TestOnlyTheFirstRestingEntryIsTaken"),
		},
		{
			Name:   "queue-takes-several",
			Breaks: "a waiter for several keys receives a lock on one key",
			Edits:  []Edit{{"internal/waitqueue/take.go", "len(l.first.want.Keys) > 1 || ", ""}},
			Tests:  in("internal/waitqueue", "TestOnlyTheFirstRestingEntryIsTaken"),
		},
		{
			Name:   "queue-no-rival",
			Breaks: "the waiter of another process that a release has notified is raced",
			Edits:  []Edit{{"internal/waitqueue/yield.go", "d = max(d, q.rivals.get(key).ahead-at)", "_ = at"}},
			Tests:  in("internal/waitqueue", "TestHazard48RivalsAreForgottenTogether"),
		},
		{
			Name:   "lane-overtakes",
			Breaks: "a call leaves before its predecessor has ended",
			Edits:  []Edit{{"internal/lane/order.go", "if c.follows() || len(l.held) > 0", "if len(l.held) > 0"}},
			Tests:  in("internal/lane", "TestACallLeavesOnlyWhenTheOneItFollowsHasEnded"),
			Sample: true,
		},
		{
			Name:   "lane-overtakes-release",
			Breaks: "an acquisition overtakes a release of its key that waits for its own acquisition",
			Edits: []Edit{
				{
					"internal/lane/order.go", " || len(l.held) > 0 && c.Timeout == 0 && l.heldUpLocked(c.Request) {",
					" {",
				},
			},
			Tests: in("internal/lane", "TestSwappedSendsOfOneHoldKeepTheirOrder"),
		},
		{
			Name:   "lane-drops-release",
			Breaks: "a release is not sent though the acquisition before it may have set the key",
			Edits:  []Edit{{"internal/lane/order.go", "c.After.Err == nil && !c.After.Sent", "c.After.Err == nil"}},
			Tests:  in("internal/lane", "TestAReleaseIsSkippedOnlyIfItsAcquisitionWasRefused"),
		},
		{
			Name:   "lane-drops-unanswered",
			Breaks: "a release is not sent because its acquisition was not answered",
			Edits: []Edit{
				{
					"internal/lane/order.go", "c.Undoes && c.After != nil && c.After.Err == nil && !c.After.Sent",
					"c.Undoes && c.After != nil && (c.After.Err != nil || !c.After.Sent)",
				},
			},
			Tests: in("internal/lane", "TestAReleaseIsSkippedOnlyIfItsAcquisitionWasRefused"),
		},
		{
			Name:   "lane-bundles-waiter",
			Breaks: "a release goes into a bundle though its waiter may be in the queue",
			Edits: []Edit{
				{"internal/lane/order.go", "c.Unqueued = c.Unqueued && (c.After == nil || c.After.Err == nil && " +
					"c.After.Reply.Outcome == single.Granted)", ""},
			},
			Tests: in("internal/lane", "TestALaneUsesTheResultOfTheAcquisitionBeforeARelease"),
		},
		{
			Name:   "lane-sends-late",
			Breaks: "a call is sent after its deadline",
			Edits:  []Edit{{"internal/lane/trip.go", "if !c.Deadline.After(t.began) {", "if false {"}},
			Tests:  in("internal/lane", "TestACallThatIsStillQueuedAtItsDeadlineIsNotSent"),
		},
		{
			Name:   "lane-shortest-deadline",
			Breaks: "a batch ends with the earliest deadline of its calls",
			Edits: []Edit{
				{"internal/lane/trip.go", "c.Deadline.After(latest.Deadline)", "c.Deadline.Before(latest.Deadline)"},
			},
			Tests: in("internal/lane", "TestABatchGetsTheLatestDeadlineOfItsCalls"),
		},
		{
			Name:   "lane-down-late",
			Breaks: "a master counts as down one unanswered batch too late",
			Edits:  []Edit{{"internal/lane/health.go", "h.failures >= downAfter; ", "h.failures > downAfter; "}},
			Tests:  in("internal/lane", "TestAMasterThatIsDownGetsOneProbeAtATime"),
		},
		{
			Name:   "lane-many-probes",
			Breaks: "a master that is down gets many probes at a time",
			Edits:  []Edit{{"internal/lane/order.go", "(l.out > 0 || len(l.queue) > 0 || time.Now()", "(time.Now()"}},
			Tests: []Tests{
				{
					Package: "internal/lane", Names: []string{"TestAMasterThatIsDownGetsOneProbeAtATime"},
					Crash: "goroutines in bubble are blocked",
				},
			},
		},
		{
			Name:   "lane-probe-lost",
			Breaks: "a lane waits for a probe that was too late, and never sends to the master again",
			Edits: []Edit{
				{"internal/lane/trip.go", "\tif len(live) == 0 {\n\t\treturn", "\tif len(live) == 0 {\n\t\tt.out = " +
					"false\n\t\treturn"},
			},
			Tests: []Tests{
				{Package: "internal/lane", Names: []string{"TestALateProbeMakesWayForTheNext"}, Crash: "goroutines " +
					"in bubble are blocked"},
			},
		},
		{
			Name:   "lane-one-more",
			Breaks: "one call more than the bound waits",
			Edits:  []Edit{{"internal/lane/order.go", "len(l.queue) >= maxQueue", "len(l.queue) > maxQueue"}},
			Tests: []Tests{
				{Package: "internal/lane", Names: []string{"TestAFullQueueRefuses"}, Crash: "goroutines in bubble " +
					"are blocked"},
			},
		},
		{
			Name: "lane-refuses-release",
			Breaks: "a release that follows an acquisition is refused at once by a master that is down, and taken " +
				"for undone",
			Edits: []Edit{{"internal/lane/order.go", "\tcase c.follows():\n\t\treturn nil\n", ""}},
			Tests: []Tests{
				{
					Package: "internal/lane", Names: []string{"TestACallThatFollowsAProbeIsNotRefused"},
					Crash: "goroutines in bubble are blocked",
				},
			},
		},
		{
			Name:   "lane-stays-down",
			Breaks: "a master that answers again still counts as down",
			Edits: []Edit{
				{
					"internal/lane/health.go", "h.failures, h.down, h.refusal, h.heard = 0, false, nil, now",
					"h.failures, h.heard = 0, now",
				},
			},
			Tests: []Tests{
				{
					Package: "internal/lane", Names: []string{"TestTheFirstAnswerOpensTheLaneAgain"},
					Crash: "goroutines in bubble are blocked",
				},
			},
		},
		{
			Name:   "lane-leaves-before-told",
			Breaks: "a call may leave before the receiver of its predecessor has the answer",
			Edits: []Edit{
				{
					"internal/lane/trip.go", "\t\tc.To.Ended(c)\n\t\tc.over.Store(true) //",
					"\t\tc.over.Store(true)\n\t\tc.To.Ended(c) //",
				},
			},
			Tests: in("internal/lane", "TestACallLeavesOnlyAfterTheReceiverOfThePreviousCallReturned"),
		},
		{
			Name:   "lane-short-silence",
			Breaks: "a batch that only its callers' deadline cut short counts against its master",
			Edits:  []Edit{{"internal/lane/health.go", "took < max(2*l.RTT(), silenceFloor)", "took < 0"}},
			Tests:  in("internal/lane", "TestHazard96OnlyALongSilenceCountsAgainstAMaster"),
		},
		{
			Name:   "lane-meets-nobody",
			Breaks: "a master counts as down while the first connection to it is being made",
			Edits:  []Edit{{"internal/lane/health.go", "|| l.health.meets(l, ended)", "|| false"}},
			Tests:  in("internal/lane", "TestHazard96OnlyALongSilenceCountsAgainstAMaster"),
		},
		{
			Name: "lane-impatient",
			Breaks: "callers' deadlines cut a batch short, however often, and the lane never learns the master's " +
				"distance",
			Edits: []Edit{{"internal/lane/trip.go", "latest.Deadline.Sub(t.began) < patience", "patience < 0"}},
			Tests: in("internal/lane", "TestHazard96OnlyALongSilenceCountsAgainstAMaster"),
		},
		{
			Name:   "lane-refuses-holds",
			Breaks: "operations of holds are refused by a master that is down",
			Edits: []Edit{
				{"internal/lane/order.go", "case c.Timeout > 0 && len(l.queue) < 2*maxQueue:", "case false:"},
			},
			Tests: in("internal/lane", "TestHazard96AMasterThatIsDownStillGetsOperationsOfHolds"),
		},
		{
			Name:   "lane-floods-the-dead",
			Breaks: "operations of holds are sent to a master that refuses connections as fast as it refuses",
			Edits:  []Edit{{"internal/lane/urgent.go", "return l.health.next, true //", "return time.Time{}, true //"}},
			Tests:  in("internal/lane", "TestHazard96AMasterThatIsDownStillGetsOperationsOfHolds"),
		},
		{
			Name:   "lane-no-extras",
			Breaks: "operations of holds wait behind a batch that is stuck",
			Edits:  []Edit{{"internal/lane/urgent.go", "return at, l.extras < maxExtras", "return at, false"}},
			Tests: []Tests{
				{
					Package: "internal/lane", Names: []string{"TestHazard100OperationsOfHoldsLeaveWhileABatchIsStuck"},
					Crash: "goroutines in bubble are blocked",
				},
			},
		},
		{
			Name:   "lane-extras-without-end",
			Breaks: "a master that hangs gets batch after batch",
			Edits: []Edit{
				{"internal/lane/urgent.go", "return at, l.extras < maxExtras", "return at, l.extras < maxInFlight"},
			},
			Tests: in("internal/lane", "TestHazard100OperationsOfHoldsLeaveWhileABatchIsStuck"),
		},
		{
			Name:   "lane-floods-the-slow",
			Breaks: "a master gets more batches at a time because it is slow",
			Edits:  []Edit{{"internal/lane/urgent.go", "overdue.After(at) {", "false {"}},
			Tests:  in("internal/lane", "TestHazard100ASlowMasterGetsNoMoreBatchesAtATime"),
		},
		{
			Name: "lane-mixes-deadlines",
			Breaks: "an operation of a hold travels with calls that have much more time, and can't be tried again " +
				"before they end",
			Edits: []Edit{{"internal/lane/order.go", "n.latest.After(n.limit) {", "false {"}},
			Tests: []Tests{{
				Package: "internal/lane", Names: []string{"TestHazard100OtherCallsKeepNoOperationOfAHoldInFlight"},
				Crash: "goroutines in bubble are blocked",
			}},
		},
		{
			Name:   "lane-in-turn",
			Breaks: "operations of holds wait behind a long queue of acquisitions",
			Edits: []Edit{
				{"internal/lane/order.go", "if t.extra || len(l.queue) > maxBatch && !l.passed {", "if t.extra {"},
			},
			Tests: in("internal/lane", "TestHazard100OperationsOfHoldsGoBeforeALongQueue"),
		},
		{
			Name:   "lane-one-moment",
			Breaks: "one moment's harm to all batches in flight counts for each batch",
			Edits:  []Edit{{"internal/lane/health.go", "if began.Before(h.since) {", "if false {"}},
			Tests:  in("internal/lane", "TestHazard96OneEventCountsOnceAgainstAMaster"),
		},
		{
			Name:   "lane-passes-over",
			Breaks: "a call that does not go with others is passed over for as long as there are such",
			Edits:  []Edit{{"internal/lane/order.go", "if passed < 0 {", "if passed < -1 {"}},
			Tests:  in("internal/lane", "TestHazard100NoCallIsPassedOverTwice"),
		},
		{
			Name:   "lane-overtakes-passed",
			Breaks: "a release that does not go with others is overtaken by the next acquisition of its key",
			Edits:  []Edit{{"internal/lane/order.go", "if !s.admit(c) {\n\t\t\tl.holdLocked(c)", "if !s.admit(c) {"}},
			Tests: []Tests{{
				Package: "internal/lane", Names: []string{
					"TestHazard100ALaterCallForItsKeyDoesNotOvertakeAPassedOverCall",
				}, Crash: "goroutines in bubble are blocked",
			}},
		},
	}
}
