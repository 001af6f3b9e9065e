package mutant

import "time"

// around are mutants of the code around an acquisition: its bounds and the end of its Locker; one master's client,
// connections and scripts; and the packages that use the engine.
func around() []Mutant {
	return []Mutant{
		{
			Name:   "close-without-bound",
			Breaks: "Close without a deadline waits for masters that do not answer until the ttls are over",
			Edits:  []Edit{{"close.go", "; !bounded {", "; false && !bounded {"}},
			Tests:  in(".", "TestHazard111CloseWithoutADeadlineIsNotHeldUpByAMasterThatHangs"),
		},
		{
			Name:   "close-does-not-wait",
			Breaks: "Close ends held locks at once",
			Edits: []Edit{
				{
					"close.go", "\tselect {\n\tcase <-l.env.Registry.Empty():\n\tcase <-ctx.Done():\n\t}\n\tleft",
					"\tleft",
				},
			},
			Tests: in(".", "TestCloseWaitsForHoldsAndRefusesNewOnes"),
		},
		{
			Name:   "close-keeps-contexts",
			Breaks: "locks that Close has ended are over, and their contexts go on",
			Edits: []Edit{
				{
					"internal/hold/release.go", "h.overLocked(ShutDown, nil, &after)",
					"h.state.End(ShutDown)\n\t\th.over = h.handle.Reason(ShutDown, nil)",
				},
			},
			Tests: in(".", "TestCloseGivesUpWithItsContext"),
		},
		{
			Name:   "close-again-returns",
			Breaks: "a second Close returns while the first one waits",
			Edits:  []Edit{{"close.go", "\t\treturn l.awaitClose(ctx)", "\t\treturn nil"}},
			Tests: []Tests{
				{Package: ".", Names: []string{"TestASecondCloseWaitsForTheFirst"}, Crash: "goroutines in bubble are " +
					"blocked"},
			},
		},
		{
			Name:   "close-stays-in-queues",
			Breaks: "Close returns before its waiters have left the masters' queues",
			Edits: []Edit{
				{
					"internal/hold/registry.go", "if !r.closed || r.first != nil || r.busy.Load() > 0 {",
					"if !r.closed || r.first != nil {",
				},
			},
			Tests: in(".", "TestHazard65CloseTakesWaitersOutOfTheMastersQueues"),
		},
		{
			Name:   "acquired-after-close",
			Breaks: "an acquisition that Close has ended returns a lock",
			Edits: []Edit{
				{
					"internal/hold/hold.go", "if h.state.Over() { // the Locker was shut down",
					"if false { // the Locker was shut down",
				},
			},
			Tests: in(".", "TestAnAcquisitionFailsWhenCloseReturnsBeforeIt"),
		},
		{
			Name:   "ttl-within-the-allowance",
			Breaks: "a lock is extended by a ttl that the drift allowance uses up",
			Edits:  []Edit{{"spec.go", "if ttl <= allowance {", "if ttl < 0 {"}},
			Tests:  in(".", "TestBadArgumentsOfALockAreRefusedBeforeAnythingIsSent"),
		},
		{
			Name:   "grace-within-the-allowance",
			Breaks: "a lock is acquired although allowance and grace leave nothing of its ttl",
			Edits:  []Edit{{"spec.go", "case s.Grace >= s.TTL-allowance:", "case s.Grace >= s.TTL:"}},
			Tests:  in(".", "TestGraceIsChecked"),
		},
		{
			Name:   "client-without-deadline",
			Breaks: "a client that was brought waits for a master beyond the request's deadline",
			Edits:  []Edit{{"single/master.go", "\topt.ContextTimeoutEnabled = true\n", ""}},
			Tests: []Tests{
				{
					Package: "single", Names: []string{"TestHazard04TheDeadlineIsKeptWithADefaultClient"},
					Crash: "test timed out", Within: 20 * time.Second,
				},
			},
		},
		{
			Name:   "client-retries",
			Breaks: "a client that was brought sends a request again",
			Edits:  []Edit{{"single/master.go", "\topt.MaxRetries = 0\n", ""}},
			Equivalent: "go-redis sends a command again only if it may, and those of requests say that they may not, " +
				"alone and in a pipeline: the option keeps " +
				"a client that forgets that from it (TestARequestIsSentOnceThroughAClientThatRetries)",
		},
		{
			Name:   "client-retries-uncounted",
			Breaks: "a refusal counts as the answer to all attempts of a client that retries",
			Edits:  []Edit{{"single/batch.go", "c.Sent = !m.exact || c.Err != nil", "c.Sent = c.Err != nil"}},
			Tests:  in("single", "TestARefusalThroughAClientThatRetriesMayHaveSetTheKey"),
		},
		{
			Name:   "client-overtaken",
			Breaks: "a release overtakes the acquisition that a client holds back",
			Edits:  []Edit{{"single/master.go", "if m.heldBack.Load() > 0 {", "if m.heldBack.Load() < 0 {"}},
			Tests:  in("single", "TestNothingOvertakesARequestThatAClientHoldsBack"),
		},
		{
			Name:   "client-held-back-unsent",
			Breaks: "a request that a client holds back past its deadline counts as not sent",
			Edits:  []Edit{{"single/master.go", "Reply{}, ctx.Err(), true", "Reply{}, ctx.Err(), false"}},
			Tests:  in("single", "TestNothingOvertakesARequestThatAClientHoldsBack"),
		},
		{
			Name:   "conn-without-deadline",
			Breaks: "a request may take as long as the options allow one that has no deadline",
			Edits: []Edit{
				{"single/conns.go", "if deadline, ok := ctx.Deadline(); ok {", "if deadline, ok := ctx.Deadline(); " +
					"ok && false {"},
			},
			Tests: in("single", "TestHazard04TheDeadlineIsKeptOnConnectionsOfOurOwn"),
		},
		{
			Name:   "conn-half-read",
			Breaks: "a connection is kept after a request without an answer, and the request is delivered",
			Edits:  []Edit{{"single/conns.go", "case c.Drained():", "case c != nil:"}},
			Tests:  in("single", "TestARequestThatTimedOutResetsItsConnection"),
		},
		{
			Name:   "conn-half-read-used",
			Breaks: "a late reply answers the next request",
			Edits: []Edit{
				{"single/conns.go", "case c.Drained():", "case c != nil:"},
				{
					"internal/wire/conn.go", "\tcase !c.Drained():\n\t\treturn false\n\tcase c.raw == nil:",
					"\tcase c.raw == nil:",
				},
				{"internal/wire/conn.go", "\tc.unsent, c.pushed = commands, false\n", "\tc.broken, c.unsent, " +
					"c.pushed = false, commands, false\n"},
			},
			Tests: in("single", "TestALateReplyThatComesAloneAnswersNoRequest"),
		},
		{
			Name:   "conn-lives-on",
			Breaks: "a connection is used beyond the lifetime that the options give it",
			Edits: []Edit{
				{"single/pool_idle.go", "|| life > 0 && now.Sub(c.born) >= life", "|| life < 0 && now.Sub(c.born) " +
					">= life"},
			},
			Tests: in("single", "TestOldConnectionsAreReplaced"),
		},
		{
			Name:   "guard-excuses-the-run-before",
			Breaks: "a run that fsyncs excuses the one before it, which did not",
			Edits:  []Edit{{"single/guard.go", "g.kept = s.keeps() && g.last.durable", "g.kept = s.keeps()"}},
			Tests:  in("single", "TestTheGuardTrustsWhatItObservedMoreThanUptime"),
		},
		{
			Name:   "bundle-short-reply",
			Breaks: "a reply to a bundle that has too few results answers the first of its releases",
			Edits: []Edit{
				{"single/bundle.go", "(len(from.Items()) != len(bundle) || ", "(len(from.Items()) > len(bundle) || "},
			},
			Tests: in("single", "TestABundleWithTooFewResultsIsUnsure"),
		},
		{
			Name:   "bundle-lost-is-not-sent",
			Breaks: "releases in a bundle that was not answered count as not sent",
			Edits:  []Edit{{"single/bundle.go", "c.Sent = !c.Answered() && !m.neverSent(err)", "c.Sent = false"}},
			Tests:  in("single", "TestABundleWithoutAnAnswerIsUnsure"),
		},
		{
			Name:   "queue-unbounded",
			Breaks: "a queue takes everybody who comes",
			Edits:  []Edit{{"single/lua/queue.lua", "\tredis.pcall('ZREMRANGEBYRANK', queue, 257, -1)\n", ""}},
			Tests:  in("single", "TestTheQueueIsBoundedAndKeepsThoseWhoWaitedLongest"),
		},
		{
			Name:   "queue-for-ever",
			Breaks: "a queue is made without an end",
			Edits: []Edit{
				{"single/lua/queue.lua", "\tif there == 0 then\n\t\tredis.pcall('PEXPIRE', queue, keep)\n\tend\n", ""},
			},
			Tests: in("single", "TestTheQueueExpiresWithoutFurtherAttempts"),
		},
		{
			Name:   "queue-notifies-again",
			Breaks: "a waiter that was notified stays in the queue, and is notified again after it has died",
			Edits:  []Edit{{"single/lua/queue.lua", "\tredis.pcall('ZREM', queue, next)\n", ""}},
			Tests:  in("single", "TestADeadWaiterIsNotifiedOnce"),
		},
		{
			Name:   "share-dies-early",
			Breaks: "a shared key lives as long as the hold that came last",
			Edits:  []Edit{{"single/lua/share.lua", "math.max(atLeast, longest, redis.call('PTTL', key))", "atLeast"}},
			Tests:  in("single", "TestAHoldIsNeverShortened"),
		},
		{
			Name:   "share-dies-with-its-end-taken",
			Breaks: "a shared key without an end dies with the hold that comes next",
			Edits: []Edit{
				{"single/lua/share.lua", "math.max(atLeast, longest, redis.call('PTTL', key))", "math.max(atLeast, " +
					"redis.call('PTTL', key))"},
			},
			Tests: in("single", "TestSharePersistedKeyKeepsItsHolds"),
		},
		{
			Name:   "announce-goes-back",
			Breaks: "a master says that the generation it receives is the greatest",
			Edits: []Edit{
				{"single/lua/announce.lua", "math.max(tonumber(known), tonumber(ARGV[1]))", "tonumber(ARGV[1])"},
			},
			Tests: in(".", "TestServersKeepTheGreatestGeneration"),
		},
		{
			Name:   "announce-over-somebody",
			Breaks: "foreign data in the generation's place is taken for a generation",
			Edits: []Edit{
				{"single/lua/announce.lua", "not string.match(known, '^%d+$') or ", "not tonumber(known) or "},
			},
			Tests: in(".", "TestServersKeepTheGreatestGeneration"),
		},
		{
			Name:   "announce-for-a-while",
			Breaks: "a master forgets the generation after an hour",
			Edits: []Edit{
				{"single/lua/announce.lua", "string.format('%.0f', greatest))", "string.format('%.0f', greatest), " +
					"'EX', 3600)"},
			},
			Tests: in(".", "TestServersKeepTheGreatestGeneration"),
		},
		{
			Name:   "inspect-what-has-ended",
			Breaks: "Holder names an owner after its hold has ended",
			Edits: []Edit{
				{
					"single/lua/inspect.lua", "redis.call('ZCOUNT', KEYS[i], '(' .. now, '+inf')",
					"redis.call('ZCOUNT', KEYS[i], '(0', '+inf')",
				},
			},
			Tests: in("single", "TestAnEndedHoldBlocksNoOtherOwner"),
		},
		{
			Name:   "inspect-owners",
			Breaks: "holds of one owner are not told apart",
			Edits:  []Edit{{"single/lua/inspect.lua", "redis.sha1hex(last[2 * n - 1])", "redis.sha1hex(owner)"}},
			Tests:  in("single", "TestInspectOfASharedKeyNamesTheLongestHoldAndCountsAll"),
		},
		{
			Name:   "shard-two-groups",
			Breaks: "a lock on keys of two groups is taken in the group of the first",
			Edits:  []Edit{{"sharded/sharded.go", "if s.Locker(other) != l {", "if s.Locker(other) == nil {"}},
			Tests:  in(".", "TestSeveralKeysMustBeOfOneGroup"),
		},
		{
			Name:   "shard-drift-of-one",
			Breaks: "a lock of two groups has the drift allowance of the new one",
			Edits: []Edit{
				{
					"sharded/joint.go", "max(cmp.Or(a.DriftFactor, redlock.DefaultDriftFactor),\n\t\tcmp",
					"max(0,\n\t\tcmp",
				},
			},
			Tests: in(".", "TestALockInTwoGroupsPromisesOnlyWhatBothGroupsPromise"),
		},
		{
			Name:   "shard-guard-of-one",
			Breaks: "a lock of two groups is said to have the restart guard of the new one",
			Edits: []Edit{
				{
					"sharded/joint.go", "b.RestartGuard == 0 || a.RestartGuard > 0 && a.RestartGuard < b.RestartGuard",
					"b.RestartGuard == 0",
				},
			},
			Tests: in(".", "TestALockInTwoGroupsPromisesOnlyWhatBothGroupsPromise"),
		},
		{
			Name:   "shard-without-guard",
			Breaks: "masters of a group are opened without its restart guard",
			Edits: []Edit{
				{
					"sharded/build.go", "single.Options{RestartGuard: g.Options.RestartGuard, Clock: now}",
					"single.Options{Clock: now}",
				},
			},
			Tests: in(".", "TestMastersOfAGroupAreOpenedWithItsRestartGuard"),
		},
		{
			Name:   "shard-guards-differ",
			Breaks: "a master of two groups has the restart guard of the first, whatever the other one says",
			Edits:  []Edit{{"sharded/build.go", "if m.RestartGuard() != g.Options.RestartGuard {", "if m == nil {"}},
			Tests:  in(".", "TestShardedRefusesContradictoryGroups"),
		},
		{
			Name:   "semaphore-keeps-two",
			Breaks: "one that waits for a permit keeps a second that comes at the same moment",
			Edits: []Edit{
				{"semaphore/semaphore.go", "\t\t\tgo func() { _ = " +
					"r.permit.Release(surplus.Release(context.WithoutCancel(ctx))) }()\n", "\t\t\t_ = surplus.Is\n"},
			},
			Tests: in("semaphore", "TestAWaiterKeepsOneOfSeveralSlotsThatComeAtOnce"),
		},
		{
			Name:   "semaphore-shared",
			Breaks: "a permit may be a shared lock, and a slot may have any number",
			Edits:  []Edit{{"semaphore/semaphore.go", "append(slices.Clone(opts), redlock.Fenced())", "opts"}},
			Tests:  in("semaphore", "TestBadInputIsNamed"),
		},
		{
			Name:   "leader-outage-is-a-vacancy",
			Breaks: "observers see no leader when masters do not answer",
			Edits: []Edit{
				{"leader/observe.go", "\t\t\tcase err == nil:", "\t\t\tcase err == nil || !final(err) && ctx.Err() " +
					"== nil:"},
			},
			Tests: in("leader", "TestObserversWaitThroughAnOutageAndEndOnFinalErrors"),
		},
		{
			Name:   "leader-outage-ends",
			Breaks: "an outage ends an observer's sequence",
			Edits: []Edit{
				{"leader/observe.go", "\t\t\tcase errors.Is(err, redlock.ErrClosed), errors.Is(err, " +
					"redlock.ErrInvalid):", "\t\t\tdefault:"},
			},
			Tests: in("leader", "TestObserversWaitThroughAnOutageAndEndOnFinalErrors"),
		},
		{
			Name:   "leader-outage-is-stuck",
			Breaks: "a candidate that can't reach the masters is not healthy, and its process is started anew",
			Edits:  []Edit{{"leader/vacancy.go", "\t\twhat = unseen\n", ""}},
			Tests:  in("leader", "TestMastersThatFailAtOnceAreNoVacancy"),
		},
		{
			Name:   "leader-vacancy-unwatched",
			Breaks: "two looks that are far apart make a vacancy of the terms between",
			Edits: []Edit{
				{"leader/vacancy.go", "what == somebody || now.Sub(v.looked) > gap {", "what == somebody || gap < 0 {"},
			},
			Tests: []Tests{
				{
					Package: "leader", Names: []string{"TestAVacancyThatWasNotWatchedDoesNotCount"},
					Crash: "blocked goroutines remain",
				},
			},
		},
		{
			Name:   "leader-asks-in-step",
			Breaks: "a candidate asks at equal intervals, between which terms may begin and end",
			Edits:  []Edit{{"leader/vacancy.go", "every/2+rand.N(every/2)", "every+0*rand.N(every/2)"}},
			Tests:  in("leader", "TestTermsInStepWithTheQuestionsAreNoVacancy"),
		},
		{
			Name:   "leader-goes-back",
			Breaks: "observers see a term that is older than an earlier one",
			Edits:  []Edit{{"leader/observe.go", "term.Token < s.top.Token || ", ""}},
			Tests:  in("leader", "TestALeaderWithASmallerTokenIsReportedAsNoLeader"),
		},
	}
}
