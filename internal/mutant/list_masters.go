package mutant

import "time"

// oneMaster are the mutants of the code that talks to one master, and of the guard.
func oneMaster() []Mutant {
	return []Mutant{
		{
			Name:   "reply-any-number",
			Breaks: "any number grants an acquisition",
			Edits:  []Edit{{"single/reply.go", "(n == 1 || r.Fence && n > 1 && n <= MaxToken)", "(n >= 0)"}},
			Tests:  in("single", "TestANumberGrantsOnlyRequestsThatCanReturnIt"),
		},
		{
			Name:   "reply-unknown-grants",
			Breaks: "a number that no script returns grants",
			Edits:  []Edit{{"single/reply.go", "\tdefault:\n\t\treturn Refused\n", "\tdefault:\n\t\treturn Granted\n"}},
			Tests:  in("single", "TestANumberGrantsOnlyRequestsThatCanReturnIt"),
		},
		{
			Name:   "reply-repair-is-grant",
			Breaks: "a key that was set again counts as one that was there",
			Edits:  []Edit{{"single/reply.go", "\t\treturn Repaired\n", "\t\treturn Granted\n"}},
			Tests:  in("single", "TestExtendProlongsOnlyItsOwnersKeys"),
		},
		{
			Name:   "reply-great-token",
			Breaks: "a token beyond the greatest is taken from a reply",
			Edits: []Edit{
				{"single/reply.go", "case i == 4 && isNumber && number >= 0 && number <= MaxToken:", "case i == 4 && " +
					"isNumber && number >= 0:"},
			},
			Tests: in("single", "TestANumberGrantsOnlyRequestsThatCanReturnIt"),
		},
		{
			Name:   "call-refused-was-sent",
			Breaks: "of an acquisition that was refused it is said that it may have set the key",
			Edits: []Edit{
				{
					"single/batch.go", "c.Sent = !m.exact || c.Err != nil || !takes || c.Reply.Outcome != Refused",
					"c.Sent = takes || true",
				},
			},
			Tests: in(".", "TestARefusedAcquisitionIsNotReleased"),
		},
		{
			Name:   "call-broken-was-not-sent",
			Breaks: "a request on a broken connection counts as never sent",
			Edits: []Edit{
				{"single/batch.go", "\tif !m.exact {\n\t\treturn false\n\t}\n\tif _, unsent", "\tif !m.exact " +
					"{\n\t\treturn false\n\t}\n\tif err != nil {\n\t\treturn true\n\t}\n\tif _, unsent"},
			},
			Tests: in("single", "TestAConnectionThatBreaksMayHaveCarriedTheRequest"),
		},
		{
			Name:   "call-script-forgotten",
			Breaks: "a script that a master has forgotten is not sent in full",
			Edits: []Edit{
				{"single/batch.go", "more = append(more, e.next(e.stage, !sourced[p]))", "more = append(more, " +
					"e.next(e.stage, e.stage == stageFirst && sourced[p]))"},
			},
			Tests: []Tests{
				{
					Package: "single", Names: []string{"TestScriptsAreSentAgainWhenTheServerForgotThem"},
					Crash: "test timed out", Within: 20 * time.Second,
				},
			},
		},
		{
			Name:   "call-any-token",
			Breaks: "a proposal that the counter was ahead of is given out as a token",
			Edits:  []Edit{{"single/batch.go", "case counted.Int() == 1:", "case counted.Int() >= 0:"}},
			Tests:  in("single", "TestARetainedCounterIsNotKeptAgain"),
		},
		{
			Name:   "call-taken-is-held",
			Breaks: "a key that is taken by a lost request of the same owner is refused",
			Edits: []Edit{
				{
					"single/batch.go", "case e.stage == stageFirst && c.Request.quick() && taken(&e.answer):",
					"case false:",
				},
			},
			Tests: in("single", "TestARepeatedAcquireRecognisesItsOwnOwner"),
		},
		{
			Name:   "command-polite-sets",
			Breaks: "a polite acquisition takes the key without a look at its reservation",
			Edits:  []Edit{{"single/command.go", "len(r.Keys) == 1 && !r.Polite && (", "len(r.Keys) == 1 && ("}},
			Tests:  in("single", "TestAReservationKeepsOnlyThePoliteOut"),
		},
		{
			Name:   "command-reserved-names",
			Breaks: "keys that the library keeps for itself are locked",
			Edits:  []Edit{{"single/command.go", "case slices.ContainsFunc(r.Keys, Reserved):", "case false:"}},
			Tests:  in("single", "TestHazard64ReservedNamesAreNoKeys"),
			Sample: true,
		},
		{
			Name:   "command-no-end",
			Breaks: "a ttl below a millisecond is sent as one",
			Edits:  []Edit{{"single/command.go", "r.TTL < time.Millisecond:", "r.TTL < 0:"}},
			Tests:  in("single", "TestMeaninglessRequestsAreNotSent"),
		},
		{
			Name:   "command-plain-hold",
			Breaks: "the owner of a plain lock may look like another one's hold",
			Edits: []Edit{
				{"single/command.go", "case r.Kind == Plain && slices.ContainsFunc([]string{r.Owner, r.From, " +
					"r.KeepAs}, isHold):", "case false:"},
			},
			Tests: in("single", "TestNoPlainLockLooksLikeAHold"),
		},
		{
			Name:   "crowd-of-one",
			Breaks: "a key that is entered again each time costs two requests each time",
			Edits:  []Edit{{"single/crowd.go", "crowdMemory = 8", "crowdMemory = 1"}},
			Tests:  in("single", "TestAKeyWithSeveralHoldsIsRequestedByTheScript"),
		},
		{
			Name:   "bundle-hold-is-gone",
			Breaks: "a hold that a bundle has not found counts as gone, though it is in a set",
			Edits:  []Edit{{"single/bundle.go", " || a.Int() == 0 && c.Request.Kind != Plain)", ")"}},
			Tests:  in("single", "TestReleasesOfHoldsAreBundled"),
		},
		{
			Name:   "bundle-mixes-reserves",
			Breaks: "a release that reserves nothing goes in a bundle with those that do",
			Edits:  []Edit{{"single/bundle.go", "reserves: r.Reserve > 0}", "reserves: true}"}},
			Tests:  in("single", "TestABundleReservesAsItsReleasesDo"),
		},
		{
			Name:   "bundle-reserves-as-the-last",
			Breaks: "a bundle reserves its keys for as long as the last of its releases, and not the longest",
			Edits: []Edit{
				{
					"single/bundle.go", "d = max(d, bundle[i].call.Request.Reserve)",
					"d = bundle[i].call.Request.Reserve",
				},
			},
			Tests: in("single", "TestReleasesThatReserveForOtherTimesGoTogether"),
		},
		{
			Name:   "bundle-ends-at-an-odd-one",
			Breaks: "a call without a partner keeps the calls behind it from going together",
			Edits:  []Edit{{"single/bundle.go", "\t\treturn todo[:head], rest\n", "\t\treturn todo[:head], nil\n"}},
			Tests:  in("single", "TestADifferentFirstCallDoesNotKeepOthersFromGoingTogether"),
		},
		{
			Name:   "bundle-waiters",
			Breaks: "a release goes in a bundle although its waiter may be in the queue",
			Edits:  []Edit{{"single/bundle.go", " && (r.Waiter == \"\" || c.Unqueued)", ""}},
			Tests:  in("single", "TestAWaitersReleaseIsBundledOnlyIfItIsNotQueued"),
		},
		{
			Name:   "prepared-release-names-nobody",
			Breaks: "a prepared release does not name its waiter, although the waiter may be in the queue",
			Edits:  []Edit{{"single/command.go", " || r.Waiter == \"\" || e.call.Unqueued", " || true"}},
			Tests:  in("single", "TestAnUnqueuedReleaseDoesNotNameItsWaiter"),
		},
		{
			Name:   "bundle-mixes-ttls",
			Breaks: "an acquisition of several keys goes in a bundle that takes its keys for another time",
			Edits:  []Edit{{"single/bundle.go", "if f == common &&", "if f.keys == common.keys &&"}},
			Tests:  in("single", "TestABundleTakesKeysForOneTTL"),
		},
		{
			Name:   "bundle-mixes-sizes",
			Breaks: "locks with different numbers of keys go in one bundle",
			Edits:  []Edit{{"single/bundle.go", "if f == common &&", "if f.ttl == common.ttl &&"}},
			Tests:  in("single", "TestUnusualLocksOfSeveralKeysAreHandledOneByOne"),
		},
		{
			Name:   "bundle-refused-by-one",
			Breaks: "a full master's answer to one call of a bundle counts for all",
			Edits: []Edit{
				{"single/bundle.go", "refusesAll = []string{", "refusesAll = []string{\"OOM\", \"NOREPLICAS\", "},
			},
			Tests: in("single", "TestHazard94AMasterThatCannotWriteAnswersEachCallOfABundle"),
		},
		{
			Name:   "bundle-slot-for-all",
			Breaks: "a Cluster's answer about one slot counts for all of a bundle",
			Edits:  []Edit{{"single/bundle.go", "refusesAll = []string{", "refusesAll = []string{\"CLUSTERDOWN\", "}},
			Tests:  in("single", "TestHazard94ASlotWithoutANodeDoesNotFailOtherCallsOfABundle"),
		},
		{
			Name:   "bundle-apart-for-nothing",
			Breaks: "a master that takes no writes just now gets no bundles for a while",
			Edits:  []Edit{{"single/bundle.go", "!slices.ContainsFunc(refusesNow, head.answer.Refused)", "true"}},
			Tests:  in("single", "TestAMasterThatTakesNoWritesGetsBundlesAgain"),
		},
		{
			Name:   "bundle-stray-reply",
			Breaks: "a bundle that travels alone has no command behind it, so that a reply too many passes for its own",
			Edits:  []Edit{{"single/transport.go", "n += len(together)", "n++"}},
			Tests:  in("single", "TestHazard95ASurplusReplyDoesNotGrantABundle"),
		},
		{
			Name:   "bundle-in-slots",
			Breaks: "a Cluster client gets bundles",
			Edits:  []Edit{{"single/bundle.go", "if len(batch) < 2 || !m.exact {", "if len(batch) < 2 {"}},
			Tests:  in("single", "TestAClusterClientGetsNoBundle"),
		},
		{
			Name:   "bundle-deletes-what-is-kept",
			Breaks: "a release that keeps its keys goes in a bundle, which removes them",
			Edits:  []Edit{{"single/bundle.go", " || r.Keep != 0", ""}},
			Tests:  in("single", "TestReleasesThatKeepTheirKeysAreNotBundled"),
		},
		{
			Name: "several-held-again",
			Breaks: "a lock of several keys that was found held goes in a bundle again, and needs another round trip " +
				"each time",
			Edits: []Edit{{"single/crowd.go", "r.Kind == Plain && len(r.Keys) == 1", "r.Kind == Plain"}},
			Tests: in("single", "TestKeysThatWereHeldAreNotBundled"),
		},
		{
			Name:   "several-held-for-ever",
			Breaks: "a lock of several keys that was found held once never goes in a bundle again",
			Edits: []Edit{
				{"single/batch.go", "several := c.Request.Op == Acquire && len(c.Request.Keys) > 1", "several := " +
					"false"},
			},
			Tests: in("single", "TestKeysThatWereHeldAreNotBundled"),
		},
		{
			Name:   "bundle-one-of-each",
			Breaks: "of the calls that one bundle has no room for none goes in another",
			Edits: []Edit{
				{"single/bundle.go", "for rest := batch; len(rest) > 1; {", "for rest := batch; len(rest) > 1; rest " +
					"= nil {"},
			},
			Tests: in("single", "TestAHugeBatchOfSeveralKeysIsTakenWhole"),
		},
		{
			Name:   "bundle-without-bound",
			Breaks: "a bundle may have any number of keys",
			Edits:  []Edit{{"single/bundle.go", " && (len(todo)-head+1)*f.keys <= maxBundle", ""}},
			Tests:  in("single", "TestAHugeBatchOfSeveralKeysIsTakenWhole"),
		},
		{
			Name:   "bundle-acquires-first",
			Breaks: "acquisitions of several keys go out before releases that would free their keys",
			Edits: []Edit{
				{
					"single/bundle.go", "{releaseBundleProgram, releaseSeveralProgram, acquireSeveralProgram}",
					"{acquireSeveralProgram, releaseBundleProgram, releaseSeveralProgram}",
				},
			},
			Tests: in("single", "TestLocksOfSeveralKeysGoOutTogether"),
		},
		{
			Name:   "bundle-granted-by-one-number",
			Breaks: "one number grants all acquisitions of a bundle",
			Edits:  []Edit{{"single/transport.go", "case len(together) > 1 && len(r.Keys) > 1:", "case false:"}},
			Tests:  in("single", "TestOnlyItsOwnResultsGrantABundleOfAcquisitions"),
		},
		{
			Name:   "bundle-all-or-none",
			Breaks: "a bundle that a master refuses is not sent again",
			Edits:  []Edit{{"single/bundle.go", "\tcase head.answer.Kind() == wire.Refusal &&", "\tcase false &&"}},
			Tests:  in("single", "TestOneForbiddenKeyDoesNotKeepTheOthersFromBeingReleased"),
		},
		{
			Name:   "conn-late-sent",
			Breaks: "a batch is sent after its deadline",
			Edits: []Edit{
				{"single/conns.go", "if !deadline.IsZero() && !time.Now().Before(deadline) {", "if false {"},
			},
			Tests: in("single", "TestARequestThatIsLateCostsNoConnection"),
		},
		{
			Name:   "conn-overfull",
			Breaks: "a batch with one reply too many counts",
			Edits:  []Edit{{"single/conns.go", "if overfull || c.Overfull() {", "if false {"}},
			Tests:  in("single", "TestHazard42APipelineIsReadToItsEndToFindASurplusReply"),
		},
		{
			Name:   "conn-any-refusal-ends",
			Breaks: "any refusal passes for the last command's of a pipeline, also a bundle's",
			Edits: []Edit{
				{"single/transport.go", "return e.answer.Kind() != wire.Refusal })", "return false && " +
					"e.answer.Kind() != wire.Refusal })"},
			},
			Tests: in("single", "TestHazard95ASurplusReplyIsNoticedByTheRepliesBehindIt"),
		},
		{
			Name:   "conn-ping-refused",
			Breaks: "a batch of who has no right to PING counts for nothing",
			Edits:  []Edit{{"single/transport.go", "if last.Refused(\"NOPERM\") && ", "if false && "}},
			Tests:  in("single", "TestAUserWithoutTheRightToPingGetsBundles"),
		},
		{
			Name:   "conn-guard-ends",
			Breaks: "the guard's questions behind a batch take the place of the last command",
			Edits: []Edit{
				{"single/conns.go", "ended := recheck || callsIn(todo) > 1", "ended := !recheck && callsIn(todo) > 1"},
			},
			Tests: in("single", "TestHazard95ASurplusReplyIsNoticedByTheRepliesBehindIt"),
		},
		{
			Name:   "client-no-end",
			Breaks: "there is no last command in a pipeline that goes through a client which was brought",
			Edits:  []Edit{{"single/transport.go", "if c.exact && callsIn(todo) > 1 {", "if false {"}},
			Tests:  in("single", "TestHazard95ASurplusReplyIsNoticedByTheRepliesBehindIt"),
		},
		{
			Name:   "conn-replica",
			Breaks: "a connection to a server that has become a replica is kept",
			Edits: []Edit{
				{
					"single/conns.go", "\tcase answered(todo, " +
						"IsElsewhere):\n\t\tp.drop(c)\n\t\tp.distrust(time.Now())\n",
					"\tcase answered(todo, IsElsewhere):\n\t\tc.used = c.born\n\t\tp.put(c)\n",
				},
			},
			Tests: in("single", "TestAConnectionToAReplicaIsReplaced"),
		},
		{
			Name: "conn-distrusts-none",
			Breaks: "after a request without an answer every other connection that is as old is tried, each for its " +
				"timeout",
			Edits: []Edit{{"single/conns.go", "\t\tif unanswered(todo) {\n", "\t\tif false {\n"}},
			Tests: in("single", "TestConnectionsThatAreCutTogetherCostOneRequest"),
		},
		{
			Name:   "pool-unlooked",
			Breaks: "an idle connection is used without a look at it",
			Edits:  []Edit{{"single/pool_idle.go", "!p.expired(c, now) && c.Clean()", "!p.expired(c, now)"}},
			Tests:  in("single", "TestConnectionsClosedWhileIdleAreReplacedUnseen"),
		},
		{
			Name:   "pool-one-more",
			Breaks: "one connection more than the pool's size is made",
			Edits: []Edit{
				{"single/pool.go", "p.dialing < p.waiting.Len() && p.all < p.size", "p.dialing < p.waiting.Len() && " +
					"p.all <= p.size"},
			},
			Tests: in("single", "TestThePoolSizeCountsConnectionsThatAreBeingMade"),
		},
		{
			Name:   "guard-half",
			Breaks: "a master that has restarted votes after half the guard time",
			Edits:  []Edit{{"single/guard.go", "g.guard-(s.answered-g.born))", "g.guard/2-(s.answered-g.born))"}},
			Tests:  in("single", "TestTheGuardTrustsWhatItObservedMoreThanUptime"),
		},
		{
			Name:   "guard-uptime-whole",
			Breaks: "an uptime that may be a second too great is not reduced",
			Edits: []Edit{
				{"single/guard.go", "age := s.uptime - uptimeGrain - max(0, ahead) - drift", "age := s.uptime - " +
					"max(0, ahead) - drift"},
			},
			Tests: in("single", "TestTheGuardIsNeverFooledByAStepOfTheServersClock"),
		},
		{
			Name:   "guard-clock-step",
			Breaks: "a server's clock that was set forward makes it older",
			Edits: []Edit{
				{"single/guard.go", "age := s.uptime - uptimeGrain - max(0, ahead) - drift", "age := s.uptime - " +
					"uptimeGrain - max(0, min(0, ahead)) - drift"},
			},
			Tests: in("single", "TestTheGuardIsNeverFooledByAStepOfTheServersClock"),
		},
		{
			Name:   "guard-believes",
			Breaks: "a server that says to have run before its predecessor ended is believed",
			Edits:  []Edit{{"single/guard.go", "if age > s.answered-alive {", "if false {"}},
			Tests:  in("single", "TestAStandbyServerCountsAsJustBorn"),
		},
		{
			Name:   "guard-overlapping",
			Breaks: "of two runs that were seen at a time the one seen last counts as the later one",
			Edits:  []Edit{{"single/guard.go", "\t\treturn g.guard // which", "\t\t// which"}},
			Tests:  in("single", "TestTheGuardIgnoresWhichOfTwoOverlappingChecksCameFirst"),
		},
		{
			Name:   "guard-followed",
			Breaks: "a master that has followed another one counts as if it had its data",
			Edits: []Edit{
				{"single/guard.go", "case known == s.runID && s.followed && !g.last.followed:", "case false:"},
			},
			Tests: in("single", "TestAMasterThatWasAReplicaMeanwhileIsGuarded"),
		},
		{
			Name:   "guard-replica",
			Breaks: "a replica that takes over is excused by the data that it was sent",
			Edits: []Edit{
				{"single/guard_ask.go", "return role == \"master\" && second != \"\" && unset, role", "return role " +
					"== \"master\", role"},
			},
			Tests: in("single", "TestAReplicaThatTakesOverIsGuarded"),
		},
		{
			Name:   "guard-any-mark",
			Breaks: "the mark of a shorter guard excuses a master",
			Edits: []Edit{
				{
					"single/guard_ask.go", "return err == nil && passed >= g.guard.Milliseconds(), err == nil",
					"return err == nil && passed >= 0, err == nil",
				},
			},
			Tests: in("single", "TestTheMarkOfAShorterGuardDoesNotExcuseFromALongerOne"),
		},
		{
			Name:   "guard-no-mark",
			Breaks: "an emptied master that fsyncs always votes at once",
			Edits: []Edit{
				{"single/guard.go", "return s.durable && s.marked && s.original", "return s.durable && s.original"},
			},
			Tests: in("single", "TestAMasterThatFsyncsAlwaysAndLostItsDiskDoesNotVoteForOneGuardTime"),
		},
		{
			Name:   "guard-everysec",
			Breaks: "a master that may lose a second of writes is excused",
			Edits: []Edit{
				{"single/guard_ask.go", "len(fsync) == 2 && fsync[1].Str() == \"always\" && ", "len(fsync) == 2 && "},
			},
			Tests: in("single", "TestAMasterThatMayLoseASecondOfWritesIsGuarded"),
		},
		{
			Name:   "guard-no-recheck",
			Breaks: "a master that has become less careful is not noticed",
			Edits:  []Edit{{"single/guard_ask.go", "if !g.last.durable || now < g.recheckAt {", "if true {"}},
			Tests:  in("single", "TestHazard58ALessCarefulServerIsNoticedOnAConnectionInUse"),
		},
		{
			Name:   "guard-dials-on",
			Breaks: "connections are made to a guarded master by every request",
			Edits:  []Edit{{"single/guard.go", "\tif now >= g.lookAt {", "\tif true {"}},
			Tests:  in("single", "TestHazard44AGuardedMasterGetsFewConnections"),
		},
		{
			Name:   "guard-silent-is-old",
			Breaks: "a master that does not say how old it is votes",
			Edits:  []Edit{{"single/guard_ask.go", "\t\tcase i < 3:\n", "\t\tcase i < 0:\n"}},
			Tests:  in("single", "TestAMasterThatDoesNotSayHowOldItIsDoesNotVote"),
		},
	}
}
