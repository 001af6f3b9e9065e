package mutant

// waiting are mutants of the notifications while locks are passed on, and of the positions in the masters' queues.
func waiting() []Mutant {
	return []Mutant{
		{
			Name:   "lost-reminder",
			Breaks: "a waiter that becomes first during the reminder of the one before is not reminded",
			Edits: []Edit{
				{
					"internal/waitqueue/take.go", "\tif key := e.want.Keys[0]; q.ours.get(key).until <= 0 {",
					"\tif key := e.want.Keys[0]; key == \"\" {",
				},
			},
			Tests: in("internal/waitqueue", "TestNoWaiterIsForgotten"),
		},
		{
			Name: "patient-once-more",
			Breaks: "the receiver of a passed lock has the waiters behind it wait for the end of a window after " +
				"their reminder",
			Edits: []Edit{{"internal/waitqueue/take.go", "(!e.taken || ours.until > 0)", "true"}},
			Tests: in("internal/waitqueue", "TestNoWaiterIsForgotten"),
		},
		{
			Name:   "quiet-for-nothing",
			Breaks: "who has a lock that can't be passed on leaves the queue as if it could be",
			Edits: []Edit{
				{"internal/waitqueue/take.go", "\tcase until <= 0:\n\t\tq.remindLocked(key)\n", "\tcase until <= 0:\n"},
			},
			Tests: in("internal/waitqueue", "TestNoWaiterIsForgotten"),
		},
		{
			Name:   "favour-passed-over",
			Breaks: "a key that is favoured for an older waiter is passed on",
			Edits:  []Edit{{"internal/waitqueue/take.go", "q.favoursLocked(key, l.first) > now ||", ""}},
			Tests:  in("internal/waitqueue", "TestAFavouredKeyIsNotPassedOnToAYoungerEntry"),
		},
		{
			Name:   "cancelled-waiter-asks",
			Breaks: "a waiter asks the masters after its context has ended, when it becomes the first of its process",
			Edits: []Edit{
				{"wait.go", "\t\tcase ctx.Err() == nil:\n\t\tcase w.last", "\t\tcase true:\n\t\tcase w.last"},
			},
			Tests: in(".", "TestHazard101AWaiterWhoseContextHasEndedAsksNothing"),
		},
		{
			Name:   "heirs-ask-at-once",
			Breaks: "each of many cancelled waiters has the next one ask the masters",
			Edits:  []Edit{{"wait.go", "heirAfter = contend.MaxPause / 2", "heirAfter = 0"}},
			Tests:  in(".", "TestHazard101ManyCancelledWaitersCostTheMastersAsMuchAsOne"),
		},
		{
			Name: "departure-takes-the-next",
			Breaks: "a waiter that begins while its process leaves the masters' queues does not look whether it was " +
				"removed, too",
			Edits: []Edit{{"internal/contend/depart.go", "crowd.Dequeued(d.request.Keys)", "_ = d"}},
			Tests: in(".", "TestACancelledWaiterTakesNoPositionFromTheNextOfItsProcess"),
		},
		{
			Name: "departure-late-takes-the-next",
			Breaks: "who begins to wait while its process leaves the masters' queues does not look again when the " +
				"last master has been left",
			Edits: []Edit{
				{
					"internal/contend/depart.go", "last || left(before|1<<c.Index) && !left(before)",
					"left(before|1<<c.Index) && !left(before)",
				},
			},
			Tests: in(".", "TestADepartureThatIsLateOnOneMasterTakesNoPositionFromTheNext"),
		},
		{
			Name: "release-takes-the-next",
			Breaks: "who begins to wait while its process releases the key does not look whether it was taken out of " +
				"the masters' queues",
			Edits: []Edit{{"internal/contend/crowd.go", "c.Left(g.Keys, true)", "c.outrun(g.Keys)"}},
			Tests: in(".", "TestAReleaseTakesNoPositionFromTheNextOfItsProcess"),
		},
		{
			Name: "repeated-release-takes-the-next",
			Breaks: "who waits when its process releases the key again on masters that have not confirmed does not " +
				"look whether it is free, or was left",
			Edits: []Edit{{"host.go", "{ l.crowd.Left(c.Request.Keys, c.Reply.Called) }", "{}"}},
			Tests: in(".", "TestARepeatedReleaseTakesNoPositionFromTheNextOfItsProcess"),
		},
		{
			Name:   "repeated-release-races",
			Breaks: "a waiter whose process a release took out of the masters' queues races the notified one",
			Edits:  []Edit{{"internal/contend/crowd.go", "\tif notified {\n", "\tif false {\n"}},
			Tests:  in(".", "TestARepeatedReleaseTakesNoPositionFromTheNextOfItsProcess"),
		},
		{
			Name: "handed-over-in-the-queues",
			Breaks: "a process that hands a lock over stays in the masters' queues, and is notified in the place of " +
				"another one",
			Edits: []Edit{{
				"internal/hold/hold.go", "len(unclaimed) > 0 && queued {",
				"len(unclaimed) < 0 && queued {",
			}},
			Tests: in(".", "TestALockThatWasPassedOnAndHandedOverLeavesNoQueueEntry"),
		},
		{
			Name:   "plain-claims-nothing",
			Breaks: "readers who keep coming starve a waiter for a plain lock, and all behind it",
			Edits:  []Edit{{"single/lua/acquire.lua", "waiter ~= '' and claimTo(i))", "false)"}},
			Tests:  in("single", "TestAWaiterForAPlainLockKeepsNewReadersOut"),
		},
		{
			Name: "claims-beside-another-holder",
			Breaks: "a waiter for several keys keeps readers out of one while another owner has another one, without " +
				"a limit",
			Edits: []Edit{
				{"single/lua/acquire.lua", "\t\t\treturn false\n\t\telseif hold and i", "\t\telseif hold and i"},
			},
			Tests: in("single", "TestAWaiterForSeveralKeysClaimsWhereOnlyReadersAreInItsWay"),
		},
		{
			Name: "claims-behind-readers",
			Breaks: "a waiter for several keys keeps readers out of one while others read the key before it, without " +
				"a limit",
			Edits: []Edit{{"single/lua/acquire.lua", "elseif hold and i <= first then", "elseif hold then"}},
			Tests: in("single", "TestAWaiterForSeveralKeysClaimsWhereOnlyReadersAreInItsWay"),
		},
		{
			Name:   "moves-without-claims",
			Breaks: "a waiter for several keys loses its claims when it moves from one queue to another",
			Edits: []Edit{
				{
					"internal/contend/depart.go", "newDeparture(c, t, stays, true, after)",
					"newDeparture(c, t, stays, false, after)",
				},
			},
			Tests: in(".", "TestHazard97TheFirstWaiterDoesNotStarveOthersWhileReadersOverlap"),
		},
		{
			Name:   "leaves-once",
			Breaks: "a waiter that leaves the queue of a silent master stays there",
			Edits:  []Edit{{"internal/contend/depart.go", "if c.Err != nil {", "if false {"}},
			Tests:  in(".", "TestHazard110AfterCloseNoMasterKnowsTheProcess"),
		},
		{
			Name:   "stays-where-it-has-nothing",
			Breaks: "a lock that other masters granted stays in the queue of the one that refused it",
			Edits:  []Edit{{"internal/hold/send.go", "if s.queued && r.request.Waiter != \"\" {", "if false {"}},
			Tests:  in(".", "TestHazard110ALockLeavesTheQueueWhereItWasRefused"),
		},
		{
			Name:   "strays-stay",
			Breaks: "a lost release of such a lock leaves its entry in the queue",
			Edits:  []Edit{{"internal/hold/round.go", "if strays(&h.states[c.Index], c) {", "if false {"}},
			Tests:  in(".", "TestHazard110ALostReleaseLeavesNoEntry"),
		},
		{
			Name:   "strays-without-answer-stay",
			Breaks: "an attempt without an answer arrives after the request that leaves the queue, and stays there",
			Edits:  []Edit{{"internal/janitor/leave.go", "if !p.landing || ", "if p.landing || "}},
			Tests:  in(".", "TestHazard110AfterCloseNoMasterKnowsTheProcess"),
		},
		{
			Name:   "release-keeps-claim",
			Breaks: "a release leaves its claim on the master that refused the lock",
			Edits:  []Edit{{"single/lua/release.lua", "\t\tunclaim(key, waiter or '', sets[i])\n", ""}},
			Tests:  in("single", "TestAReleaseTakesTheClaimOfItsWaiterAway"),
		},
		{
			Name:   "claims-keep-others-out",
			Breaks: "a key with nothing but claims is free for writers only",
			Edits:  []Edit{{"single/lua/kind.lua", "return false, nil, HOLDS, nil, now", "return ''"}},
			Tests:  in("single", "TestClaimsKeepOnlyReadersOut"),
		},
		{
			Name:   "claim-lapses",
			Breaks: "a writer that asks seldom lets readers in between its attempts",
			Edits:  []Edit{{"internal/contend/next.go", "case p.Claims:", "case false:"}},
			Tests:  in(".", "TestHazard98AWriterWithALongRetryEveryKeepsNewReadersOut"),
		},
		{
			Name:   "claim-outlives-its-writer",
			Breaks: "the claim of a cancelled writer keeps readers of its process out",
			Edits: []Edit{
				{"internal/waitqueue/waitqueue.go", "&& l.writers == 0 && q.roaming", "&& l.writers < 0 && q.roaming"},
			},
			Tests: in(".", "TestHazard49AWriterThatGivesUpLeavesNoClaimToItsOwnReaders"),
		},
		{
			Name:   "owners-are-not-let-in",
			Breaks: "who enters a lock again waits behind those who wait for that very lock",
			Edits:  []Edit{{"internal/waitqueue/waitqueue.go", "\t\tchosen.wake(Enters)\n", ""}},
			Tests:  in(".", "TestHazard99AReentrantOwnerGetsInBehindWaiters"),
		},
		{
			Name:   "owners-all-ask",
			Breaks: "each of those who might enter a lock again asks the masters",
			Edits: []Edit{
				{"wait.go", "if turn || final || step.Enters {", "if turn || final || step.Enters || w.spec.owner != " +
					"\"\" {"},
			},
			Tests: in(".", "TestHazard99And101ManyWaitersCostAsMuchAsOne"),
		},
		{
			Name:   "each-goes-over-alone",
			Breaks: "each of those who wait for the same keys asks the masters which one is in its way",
			Edits: []Edit{
				{"internal/waitqueue/waitqueue.go", "if len(other.want.Keys) > 1 && slices.", "if false && slices."},
			},
			Tests: in(".", "TestHazard99And101ManyWaitersCostAsMuchAsOne"),
		},
		{
			Name:   "each-leaves",
			Breaks: "each of many cancelled waiters sends a message to the masters",
			Edits: []Edit{
				{
					"internal/waitqueue/waitqueue.go", "e.attempts > 0 || e.inherited && (own == nil || own.key " +
						"== key)",
					"e.mayBeQueued()",
				},
			},
			Tests: in(".", "TestHazard99And101ManyWaitersCostAsMuchAsOne"),
		},
		{
			Name:   "surplus-is-kept",
			Breaks: "free permits are kept from others",
			Edits:  []Edit{{"internal/hold/release.go", "|| h.unused || !h.state", "|| !h.state"}},
			Tests:  in("semaphore", "TestHazard102MinHoldDoesNotKeepSurplusSlots"),
		},
		{
			Name:   "passed-late-ends-the-wait",
			Breaks: "a wait ends when it was passed a lock that is over by then",
			Edits:  []Edit{{"wait.go", "\t\tif !f.is(failPassedLate) {", "\t\tif w != nil {"}},
			Tests:  in(".", "TestAnEndedLockIsNotPassedOn"),
		},
	}
}
