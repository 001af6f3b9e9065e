package mutant

// waiting are mutants of who is told what while locks are passed on, and of the positions in the masters' queues.
func waiting() []Mutant {
	return []Mutant{
		{
			Name:   "lost-reminder",
			Breaks: "whoever becomes first while the reminder comes to the one before is not told",
			Edits:  []Edit{{"internal/waitqueue/take.go", "\tif key := e.want.Keys[0]; q.ours.get(key).until <= 0 {", "\tif key := e.want.Keys[0]; key == \"\" {"}},
			Tests:  in("internal/waitqueue", "TestNobodyIsForgotten"),
		},
		{
			Name:   "patient-once-more",
			Breaks: "who was passed a lock has those behind it wait for the end of a window of which they were reminded before",
			Edits:  []Edit{{"internal/waitqueue/take.go", "(!e.taken || ours.until > 0)", "true"}},
			Tests:  in("internal/waitqueue", "TestNobodyIsForgotten"),
		},
		{
			Name:   "quiet-for-nothing",
			Breaks: "who has a lock that can't be passed on leaves the queue as if it could be",
			Edits:  []Edit{{"internal/waitqueue/take.go", "\tcase until <= 0:\n\t\tq.remindLocked(key)\n", "\tcase until <= 0:\n"}},
			Tests:  in("internal/waitqueue", "TestNobodyIsForgotten"),
		},
		{
			Name:   "favour-passed-over",
			Breaks: "a key that is favoured for somebody older is passed on",
			Edits:  []Edit{{"internal/waitqueue/take.go", "q.favoursLocked(key, l.first) > now || ", ""}},
			Tests:  in("internal/waitqueue", "TestAFavouredKeyIsNotPassedOnToTheYounger"),
		},
		{
			Name:   "departure-takes-the-next",
			Breaks: "who begins to wait while its process leaves the masters' queues does not look whether it was taken out of them, too",
			Edits:  []Edit{{"release.go", "d.locker.queue.Dequeued(d.request.Keys)", "_ = d"}},
			Tests:  in(".", "TestWhoGivesUpTakesNoPositionFromTheNextOfItsProcess", "TestWhoeverWaitsStandsInTheMastersQueues"),
		},
		{
			Name:   "departure-late-takes-the-next",
			Breaks: "who begins to wait while its process leaves the masters' queues does not look again when the last master has been left",
			Edits:  []Edit{{"release.go", "last || left(before|1<<c.Index) && !left(before)", "left(before|1<<c.Index) && !left(before)"}},
			Tests:  in(".", "TestADepartureThatIsLateOnOneMasterTakesNoPositionFromTheNext"),
		},
		{
			Name:   "release-takes-the-next",
			Breaks: "who begins to wait while its process releases the key does not look whether it was taken out of the masters' queues",
			Edits:  []Edit{{"wait.go", "l.dequeued(r.request.Keys, true)", "l.outrun(r.request.Keys)"}},
			Tests:  in(".", "TestAReleaseTakesNoPositionFromTheNextOfItsProcess"),
		},
		{
			Name:   "repeated-release-takes-the-next",
			Breaks: "who waits when its process releases the key again on masters that have not confirmed does not look whether it is free, or was left",
			Edits:  []Edit{{"release.go", "{ l.dequeued(c.Request.Keys, c.Reply.Called) }", "{}"}},
			Tests:  in(".", "TestARepeatedReleaseTakesNoPositionFromTheNextOfItsProcess"),
		},
		{
			Name:   "repeated-release-races",
			Breaks: "who is told that a release took its process out of the masters' queues races whom that release has notified",
			Edits:  []Edit{{"wait.go", "\tif notified {\n", "\tif false {\n"}},
			Tests:  in(".", "TestARepeatedReleaseTakesNoPositionFromTheNextOfItsProcess"),
		},
		{
			Name:   "handed-over-in-the-queues",
			Breaks: "a process that hands a lock over stays in the masters' queues, and is notified in the place of another one",
			Edits:  []Edit{{"handover.go", "if len(unclaimed) > 0 && k.isQueuedLocked() {", "if len(unclaimed) < 0 {"}},
			Tests:  in(".", "TestALockThatWasPassedOnAndHandedOverLeavesNobodyInTheQueues"),
		},
		{
			Name:   "passed-late-ends-the-wait",
			Breaks: "a wait ends when it was passed a lock that is over by then",
			Edits:  []Edit{{"wait.go", "\t\tif err != errPassedLate {", "\t\tif w != nil {"}},
			Tests:  in(".", "TestNoLockIsPassedOnThatIsOver"),
		},
	}
}
