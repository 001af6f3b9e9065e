package mutant

import "time"

// oneMaster are the mutants of what speaks to one master, and of the guard.
func oneMaster() []Mutant {
	return []Mutant{
		{
			Name:   "reply-any-number",
			Breaks: "any number grants an acquisition",
			Edits:  []Edit{{"single/reply.go", "(n == 1 || r.Fence && n > 1 && n <= MaxToken)", "(n >= 0)"}},
			Tests:  in("single", "TestANumberGrantsOnlyWhatItStandsFor"),
		},
		{
			Name:   "reply-unknown-grants",
			Breaks: "a number that no script returns grants",
			Edits:  []Edit{{"single/reply.go", "\tdefault:\n\t\treturn Refused\n", "\tdefault:\n\t\treturn Granted\n"}},
			Tests:  in("single", "TestANumberGrantsOnlyWhatItStandsFor"),
		},
		{
			Name:   "reply-repair-is-grant",
			Breaks: "a key that was set again counts as one that was there",
			Edits:  []Edit{{"single/reply.go", "\t\treturn Repaired\n", "\t\treturn Granted\n"}},
			Tests:  in("single", "TestExtend"),
		},
		{
			Name:   "reply-great-token",
			Breaks: "a token beyond the greatest is taken from a reply",
			Edits:  []Edit{{"single/reply.go", "case i == 4 && isNumber && number >= 0 && number <= MaxToken:", "case i == 4 && isNumber && number >= 0:"}},
			Tests:  in("single", "TestANumberGrantsOnlyWhatItStandsFor"),
		},
		{
			Name:   "call-refused-was-sent",
			Breaks: "of an acquisition that was refused it is said that it may have set the key",
			Edits:  []Edit{{"single/batch.go", "c.Sent = !m.exact || c.Err != nil || c.Request.Op != Acquire && c.Request.Op != Transfer || c.Reply.Outcome != Refused", "c.Sent = true"}},
			Tests:  in(".", "TestWhatWasRefusedIsNotReleased"),
		},
		{
			Name:   "call-broken-was-not-sent",
			Breaks: "of a request whose connection broke it is said that it was never sent",
			Edits:  []Edit{{"single/batch.go", "\tif !m.exact {\n\t\treturn false\n\t}\n\tif _, unsent", "\tif !m.exact {\n\t\treturn false\n\t}\n\tif errors.As(err, new(net.Error)) {\n\t\treturn true\n\t}\n\tif _, unsent"}},
			Tests:  in("single", "TestAConnectionThatBreaksMayHaveCarriedTheRequest"),
		},
		{
			Name:   "call-script-forgotten",
			Breaks: "a script that a master has forgotten is not sent in full",
			Edits:  []Edit{{"single/batch.go", "more = append(more, e.next(e.stage, !sourced[p]))", "more = append(more, e.next(e.stage, e.stage == stageFirst && sourced[p]))"}},
			Tests:  []Tests{{Package: "single", Names: []string{"TestScriptsAreSentAgainWhenTheServerForgotThem"}, Crash: "test timed out", Within: 20 * time.Second}},
		},
		{
			Name:   "call-any-token",
			Breaks: "a proposal that the counter was ahead of is given out as a token",
			Edits:  []Edit{{"single/batch.go", "case counted.Int() == 1:", "case counted.Int() >= 0:"}},
			Tests:  in("single", "TestARetainedCounter"),
		},
		{
			Name:   "call-taken-is-held",
			Breaks: "a key that is taken by a lost request of the same owner is refused",
			Edits:  []Edit{{"single/batch.go", "case e.stage == stageFirst && c.Request.quick() && taken(&e.answer):", "case false:"}},
			Tests:  in("single", "TestARepeatedAcquireRecognisesItsOwnOwner"),
		},
		{
			Name:   "command-polite-sets",
			Breaks: "a polite acquisition takes the key without a look at whom it is reserved for",
			Edits:  []Edit{{"single/command.go", "len(r.Keys) == 1 && !r.Polite && (", "len(r.Keys) == 1 && ("}},
			Tests:  in("single", "TestAReservationKeepsOnlyThePoliteOut"),
		},
		{
			Name:   "command-reserved-names",
			Breaks: "keys that the library keeps for itself are locked",
			Edits:  []Edit{{"single/command.go", "case slices.ContainsFunc(r.Keys, Reserved):", "case false:"}},
			Tests:  in("single", "TestHazard64NamesOfTheLibrarysOwnAreNoKeys"),
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
			Edits:  []Edit{{"single/command.go", "case r.Kind == Plain && slices.ContainsFunc([]string{r.Owner, r.From, r.KeepAs}, isHold):", "case false:"}},
			Tests:  in("single", "TestNoPlainLockLooksLikeAHold"),
		},
		{
			Name:   "crowd-of-one",
			Breaks: "a key that is entered again each time is asked for twice each time",
			Edits:  []Edit{{"single/crowd.go", "crowdMemory = 8", "crowdMemory = 1"}},
			Tests:  in("single", "TestAKeyThatSeveralHoldIsAskedForByTheScript"),
		},
		{
			Name:   "bundle-hold-is-gone",
			Breaks: "a hold that a bundle has not found counts as gone, though it is in a set",
			Edits:  []Edit{{"single/bundle.go", " || a.Int() == 0 && c.Request.Kind != Plain)", ")"}},
			Tests:  in("single", "TestReleasesOfHoldsAreBundled"),
		},
		{
			Name:   "bundle-mixes-reserves",
			Breaks: "a release goes in a bundle that reserves its key for another time",
			Edits:  []Edit{{"single/bundle.go", " && c.Request.Reserve.Milliseconds() == reserve {", " && reserve >= 0 {"}},
			Tests:  in("single", "TestABundleReservesAsItsReleasesDo"),
		},
		{
			Name:   "bundle-waiters",
			Breaks: "a release whose waiter may stand in the queue goes in a bundle",
			Edits:  []Edit{{"single/bundle.go", "r.Keep == 0 && (r.Waiter == \"\" || c.Unqueued)", "r.Keep == 0"}},
			Tests:  in("single", "TestAWaitersReleaseIsBundledOnlyIfItIsNotQueued"),
		},
		{
			Name:   "bundle-all-or-none",
			Breaks: "a bundle that a master refuses is given up",
			Edits:  []Edit{{"single/bundle.go", "\tcase concernsBundle(&head.answer):", "\tcase false:"}},
			Tests:  in("single", "TestOneForbiddenKeyDoesNotKeepTheOthersFromBeingReleased"),
		},
		{
			Name:   "conn-late-sent",
			Breaks: "a batch whose deadline has passed is sent",
			Edits:  []Edit{{"single/conns.go", "if !deadline.IsZero() && !time.Now().Before(deadline) {", "if false {"}},
			Tests:  in("single", "TestARequestThatIsLateCostsNoConnection"),
		},
		{
			Name:   "conn-overfull",
			Breaks: "a batch with one reply too many counts",
			Edits:  []Edit{{"single/conns.go", "if overfull || c.Overfull() {", "if false {"}},
			Tests:  in("single", "TestHazard42APipelineIsReadToItsEndToFindAReplyTooMany"),
		},
		{
			Name:   "conn-replica",
			Breaks: "a connection to a server that has become a replica is kept",
			Edits:  []Edit{{"single/conns.go", "\tcase readOnly(todo):\n", "\tcase false:\n"}},
			Tests:  in("single", "TestAConnectionToAReplicaIsGivenUp"),
		},
		{
			Name:   "conn-distrusts-none",
			Breaks: "after a request without an answer every other connection that is as old is tried, each for its timeout",
			Edits:  []Edit{{"single/conns.go", "\t\tif unanswered(todo) {\n", "\t\tif false {\n"}},
			Tests:  in("single", "TestConnectionsThatAreCutTogetherCostOneRequest"),
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
			Edits:  []Edit{{"single/pool.go", "p.dialing < p.waiting.Len() && p.all < p.size", "p.dialing < p.waiting.Len() && p.all <= p.size"}},
			Tests:  in("single", "TestThePoolSizeCountsConnectionsThatAreBeingMade"),
		},
		{
			Name:   "guard-half",
			Breaks: "a master that has restarted votes after half the guard time",
			Edits:  []Edit{{"single/guard.go", "g.guard-(s.answered-g.born))", "g.guard/2-(s.answered-g.born))"}},
			Tests:  in("single", "TestTheGuardTrustsWhatItObservedMoreThanUptime"),
		},
		{
			Name:   "guard-uptime-whole",
			Breaks: "the second by which an uptime may be too great is not taken off",
			Edits:  []Edit{{"single/guard.go", "age := s.uptime - uptimeGrain - max(0, ahead) - drift", "age := s.uptime - max(0, ahead) - drift"}},
			Tests:  in("single", "TestTheGuardIsNeverFooledByAStepOfTheServersClock"),
		},
		{
			Name:   "guard-clock-step",
			Breaks: "a server's clock that was set forward makes it older",
			Edits:  []Edit{{"single/guard.go", "age := s.uptime - uptimeGrain - max(0, ahead) - drift", "age := s.uptime - uptimeGrain - max(0, min(0, ahead)) - drift"}},
			Tests:  in("single", "TestTheGuardIsNeverFooledByAStepOfTheServersClock"),
		},
		{
			Name:   "guard-believes",
			Breaks: "a server that says to have run before its predecessor ended is believed",
			Edits:  []Edit{{"single/guard.go", "if age > s.answered-alive {", "if false {"}},
			Tests:  in("single", "TestAServerThatStoodByCountsAsJustBorn"),
		},
		{
			Name:   "guard-overlapping",
			Breaks: "of two runs that were seen at a time the one seen last counts as the later one",
			Edits:  []Edit{{"single/guard.go", "\t\treturn g.guard // which", "\t\t// which"}},
			Tests:  in("single", "TestTheGuardIgnoresWhichOfTwoOverlappingChecksCameFirst"),
		},
		{
			Name:   "guard-followed",
			Breaks: "a master that has followed another one meanwhile counts as if it had its data",
			Edits:  []Edit{{"single/guard.go", "case known == s.runID && s.followed && !g.last.followed:", "case false:"}},
			Tests:  in("single", "TestAMasterThatWasAReplicaMeanwhileIsGuarded"),
		},
		{
			Name:   "guard-replica",
			Breaks: "a replica that takes over is excused by the data that it was sent",
			Edits:  []Edit{{"single/guard_ask.go", "return role == \"master\" && second != \"\" && unset, role", "return role == \"master\", role"}},
			Tests:  in("single", "TestAReplicaThatTakesOverIsGuarded"),
		},
		{
			Name:   "guard-any-mark",
			Breaks: "the mark of a shorter guard excuses a master",
			Edits:  []Edit{{"single/guard_ask.go", "return err == nil && passed >= g.guard.Milliseconds(), err == nil", "return err == nil && passed >= 0, err == nil"}},
			Tests:  in("single", "TestTheMarkOfAShorterGuardExcusesNobodyFromALongerOne"),
		},
		{
			Name:   "guard-no-mark",
			Breaks: "an emptied master that fsyncs always votes at once",
			Edits:  []Edit{{"single/guard.go", "return s.durable && s.marked && s.original", "return s.durable && s.original"}},
			Tests:  in("single", "TestAMasterThatFsyncsAlwaysAndLostItsDiskDoesNotVoteForOneGuardTime"),
		},
		{
			Name:   "guard-everysec",
			Breaks: "a master that may lose a second of writes is excused",
			Edits:  []Edit{{"single/guard_ask.go", "len(fsync) == 2 && fsync[1].Str() == \"always\" && ", "len(fsync) == 2 && "}},
			Tests:  in("single", "TestAMasterThatMayLoseASecondOfWritesIsGuarded"),
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
			Tests:  in("single", "TestHazard44AGuardedMasterIsLeftInPeace"),
		},
		{
			Name:   "guard-silent-is-old",
			Breaks: "a master that does not say how old it is votes",
			Edits:  []Edit{{"single/guard_ask.go", "\t\tcase i < 3:\n", "\t\tcase i < 0:\n"}},
			Tests:  in("single", "TestAMasterThatDoesNotSayHowOldItIsDoesNotVote"),
		},
	}
}
