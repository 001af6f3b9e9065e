package sim

import (
	"fmt"
	"reflect"
	"strings"
)

// Row is an interleaving that docs/evidence/interleavings.md has a row for. It happens in simulated runs and is
// counted, or it is of a part of the library that the simulator does not run, and there are tests of it. A test
// compares this list with the document.
type Row struct {
	Part  string   // the heading it stands under
	What  string   // how its first cell begins
	Count string   // the JSON name of the count that shows it happened
	Tests []string // what shows it instead
}

// Seen says how often the row's interleaving has happened, and whether it is one that is counted.
func (r *Row) Seen(c *Counts) (n int, counted bool) {
	if r.Count == "" {
		return 0, false
	}
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if countName(v.Type().Field(i)) == r.Count {
			return int(v.Field(i).Int()), true
		}
	}
	return 0, true // a test finds the name that is none
}

func countName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Unseen are the rows that have not happened though they are counted.
func Unseen(c *Counts) (unseen []Row) {
	for _, r := range Rows() {
		if n, counted := r.Seen(c); counted && n == 0 {
			unseen = append(unseen, r)
		}
	}
	return unseen
}

// String names the row as a reader of the document finds it.
func (r *Row) String() string { return fmt.Sprintf("%s: %s (%s)", r.Part, r.What, r.Count) }

// counted and tested make rows of one part.
func counted(part string, pairs ...string) (rows []Row) {
	for i := 0; i+1 < len(pairs); i += 2 {
		rows = append(rows, Row{Part: part, What: pairs[i], Count: pairs[i+1]})
	}
	return rows
}

func tested(part, what string, tests ...string) Row { return Row{Part: part, What: what, Tests: tests} }

// Rows returns all rows.
func Rows() []Row {
	rows := counted(
		"Acquire",
		"The round is decided while an acquire is still on its way", "stragglers",
		"The caller's context ends in the middle of a round", "cut_short",
		"A decided round cancels what is still in flight", "late_grants",
		"The acquire timed out", "late_served",
		"The client library repeats a SET", "repeated",
		"The round takes longer than the validity", "expired",
		"Two of four masters grant to each of two clients", "split",
		"Callers that do not wait split the votes", "tried_again",
		"A master refused", "refused",
		"Some masters refuse while others do not answer", "mixed",
		"One set of masters has decided, the other has not", "one_set",
	)
	rows = append(rows, tryRows()...)
	rows = append(rows, connectionRows()...)
	rows = append(rows, counted(
		"Extend",
		"The answers come after the old bound", "extended_late",
		"An extension by less than what is left arrives", "shorter",
		"A master restarted and lost the key", "repaired",
		"A majority says \"not there\"", "majority_gone",
		"Three of five lost the key", "partly_gone",
		"A master does not answer to its repair", "repair_silent",
		"Too few masters answer", "kept_on",
		"Two extensions are asked for at once", "joined",
		"A release begins while a repair is under way", "released_amid",
	)...)
	rows = append(rows, bundleRows()...)
	rows = append(rows, holdRows()...)
	rows = append(rows, counted(
		"Renew",
		"The hold is released on the masters when `Done` closes", "graced",
		"An extension or a renewal is won between `Done` and the bound", "won_in_grace",
		"The timer is late, and an extension is won", "late_timer",
		"A renewal is under way at the bound", "at_bound",
		"An acquisition is granted with less than its grace left", "graceless",
		"The holder extends, again and again, by less than a renewal would", "put_off",
	)...)
	rows = append(rows, tested("Renew", "The Locker is closed in between", "TestHazard53WhatComesWithinTheGrace"))
	rows = append(rows, counted("Who is told, and when", "A call ends before `Send` has returned", "down_at_once")...)
	rows = append(
		rows,
		tested("Who is told, and when", "The Observer takes 700 ms", "TestHazard77ASlowObserverDelaysNobody",
			"TestHazard77AnObserverMayAskTheLockAndBlock"),
		tested("Who is told, and when", "A context is cancelled, and what descends",
			"TestHazard77TheObserverIsCalledWithoutAnyMutexAndAfterDone"),
	)
	rows = append(rows, fenceRows()...)
	rows = append(rows, otherRows()...)
	return append(rows, waitRows()...)
}

// tryRows are acquisitions that the simulator cannot tell from others.
func tryRows() []Row {
	const part = "Acquire"
	return []Row{
		tested(part, "Two masters are slower than callers come", "TestMastersThatAreFarBehindAreSparedAndStillVote"),
		tested(part, "One master of five has stopped, and two callers",
			"TestATryWaitsForMastersThatAreFarAwayAndNotForStoppedOnes"),
		tested(part, "A lost round's key is still there", "TestATryIsNotRefusedByItsOwnEarlierRound"),
		tested(part, "Readers hold a key, and each master names another",
			"TestHazard103AVoteThatStaysSplitIsNoRefusal"),
		tested(part, "A few masters keep keys that others have left", "TestHazard103AVoteThatStaysSplitIsNoRefusal"),
	}
}

// connectionRows concern packages single and wire: the simulator's masters take requests, not bytes.
func connectionRows() []Row {
	const part = "A vote, and the connection it comes over"
	rows := []Row{
		tested(part, "The set-up of a connection is answered with an error",
			"TestHazard59ABatchOnARefusedConnectionGrantsNothing"),
		tested(part, "A reply comes in another form", "TestHazard43And63OnlyTheExactReplyGrants", "TestGarbledReplies"),
		tested(part, "More comes than was asked for", "TestHazard42ASurplusReplyAnswersNoRequest"),
		tested(part, "The master is idle or was restarted", "TestConnectionsClosedWhileIdleAreReplacedUnseen"),
		tested(part, "Anything at all comes from an odd server", "TestOddServersCostTimeAndNothingElse",
			"TestDrawnDisorders"),
		tested(part, "A master answers a question of the guard with LOADING or BUSY",
			"TestHazard38AQuestionAnsweredWithLoadingIsAskedAgain"),
		tested(part, "`CONFIG SET appendfsync everysec`", "TestHazard58ALessCarefulServerIsNoticedOnAConnectionInUse"),
	}
	return append(rows, counted(
		part,
		"A reply comes after its batch's deadline", "unanswered",
		"Requests with less time than their master is away", "read_late",
		"A packet of a batch is lost", "overtook",
		"A connection can't be made in time", "redialled",
		"A guarded master refuses, and callers come again and again", "guarded",
	)...)
}

// bundleRows concern package single, which combines the releases of one batch, and acquisitions of several keys.
func bundleRows() []Row {
	const part = "Release"
	return []Row{
		tested(part, "The bundle is first in its pipeline", "TestOtherReleasesAreNotBundled"),
		tested(part, "One of the keys is forbidden to the user",
			"TestOneForbiddenKeyDoesNotKeepTheOthersFromBeingReleased",
			"TestABundleOfKeysInDifferentSlotsIsTakenApart"),
		tested(part, "One release reserves its key for the waiter it notifies", "TestABundleReservesAsItsReleasesDo",
			"TestReleasesThatReserveForOtherTimesGoTogether"),
		tested(part, "One call of a batch has no call like it",
			"TestADifferentFirstCallDoesNotKeepOthersFromGoingTogether"),
		tested(part, "A key is released twice in one bundle", "TestABundleDoesWhatItsReleasesDoOneByOne"),
		tested(part, "A release's own process is in the queue", "TestAWaitersReleaseIsBundledOnlyIfItIsNotQueued"),
		tested(part, "Something is at one of the keys of a lock", "TestABundleOfSeveralKeysDoesWhatItsLocksDoOneByOne"),
		tested(part, "Two acquisitions of one bundle want the same key",
			"TestUnusualLocksOfSeveralKeysAreHandledOneByOne"),
		tested(part, "The master refuses a write in the middle", "TestAFullMasterGivesAWholeLockOrNone",
			"TestAUserWithSelectorsGetsAWholeLockOrNone"),
		tested(part, "The master refuses a bundle because of one call",
			"TestHazard94AMasterThatCannotWriteAnswersEachCallOfABundle",
			"TestHazard94ASlotWithoutANodeDoesNotFailOtherCallsOfABundle"),
		tested(part, "A reply too many comes before that to a bundle", "TestHazard95ASurplusReplyDoesNotGrantABundle",
			"TestHazard95ASurplusReplyIsNoticedByTheRepliesBehindIt"),
		tested(part, "A bundle's reply has an impossible form",
			"TestHazard95AnImpossibleReplyDiscardsTheRestOfItsBatch"),
		tested(part, "An acquisition overtakes an earlier one of the same batch",
			"TestUnusualLocksOfSeveralKeysAreHandledOneByOne"),
		tested(part, "A bundle of acquisitions is answered with anything but one result",
			"TestOnlyItsOwnResultsGrantABundleOfAcquisitions"),
		tested(part, "Two acquisitions of one batch have different ttls", "TestABundleTakesKeysForOneTTL"),
	}
}

// holdRows concern package single, too: the simulator's masters have one form for shared holds.
func holdRows() []Row {
	const part = "Shared, exclusive and reentrant locks"
	return append(
		counted(part, "A `SET NX` arrives after the release of its hold", "late_served",
			"Readers come and go during a wait", "kept_out"),
		tested(part, "`SET NX` is refused, and by the time the script comes",
			"TestAKeyWithSeveralHoldsIsRequestedByTheScript"),
		tested(part, "An acquisition is sent twice", "TestReadersShareAKeyAndWritersExcludeOthers",
			"TestAStringBecomesASetThatKeepsItsHold"),
		tested(part, "A release is bundled, and its hold has become part of a set", "TestReleasesOfHoldsAreBundled"),
		tested(part, "The user may delete a string and may not add to a set", "TestAMissingRightLosesNoHold"),
		tested(part, "The master is full", "TestAFullMasterKeepsAHoldThatIsAString"),
		tested(part, "A hold is made a member in the millisecond in which it ends",
			"TestAHoldThatIsAboutToEndIsNotCutShortByAnother"),
		tested(part, "An extension asks for less than is left", "TestAHoldIsNeverShortened"),
		tested(part, "Another client took the end of a string away",
			"TestAHoldThatLostItsExpiryStillBelongsToItsOwner"),
		tested(part, "A foreign string looks like a hold", "TestAStringThatIsNotAHoldWithAnExpiryIsNotChanged",
			"TestNoPlainLockLooksLikeAHold"),
	)
}

func fenceRows() []Row {
	const part = "Fence"
	rows := counted(
		part,
		"Failed attempts have left the masters' counters apart", "raised",
		"Others try to acquire the key during that round", "raise_refused",
		"Two rounds ask for the same number", "same_number",
		"The acquisition is repeated after a lost reply", "fenced_again",
		"Another's SET or ZADD comes between", "between_two",
		"The server is stopped between the two", "stood_still",
		"The connection breaks between the two", "broken_between",
		"Every acquisition keeps the counter", "retained",
		"A master that need not keep the counter has lost it", "counter_lost",
		"With two sets of masters, a quorum of one has returned the same number", "raised_both",
		"A straggler grants a greater number", "late_tokens",
		"A repaired master has lost its counter", "counter_repaired",
	)
	return append(
		rows,
		tested(part, "A lock says its token in its owner value", "TestAnExactTokenIsGivenOrRefused",
			"TestARefusedExactTokenSetsNothing"),
		tested(part, "A lock goes on in another process", "TestOneOfThoseWhoAttachHasTheLock",
			"TestNeverTwoHoldersWhenLocksAreHandedOver"),
		tested(part, "The ZADD would come first", "TestCommandsBetweenAKeyAndItsCounterDoNoHarm"),
		tested(part, "A foreign sorted set is under the counter's name",
			"TestForeignDataInACountersPlaceGrantsNothing"),
	)
}

// otherRows are about foreign keys on a server, and about permissions.
func otherRows() []Row {
	const part = "What others keep, and masters that refuse"
	return append(
		counted(part, "A master is full", "denied"),
		tested(part, "A key holds a list, a hash, a stream", "TestAKeyOfAnotherTypeIsAnError"),
		tested(part, "A shared key is a foreign sorted set", "TestHazard35ASharedLockLeavesALeaderboardAlone"),
		tested(part, "Something else is stored where a queue should be", "TestHazard35NoOperationChangesForeignData"),
		tested(part, "Two keys share a queue and a counter",
			"TestHazard57NamesThatBelongToAKeyAreInItsSlotAndBelongToNoOtherKey"),
		tested(part, "A client locks a queue or a counter", "TestHazard64NamesOfTheLibrarysOwnAreNoKeys"),
		tested(part, "The user may not PEXPIRE", "TestHazard39WithoutPExpireNoKeyStaysLockedForEver",
			"TestHazard39AUserWithoutRightsLeavesNoLastingData"),
	)
}

func waitRows() []Row {
	const part = "Wait"
	return append(
		counted(
			part,
			"The release happens before the waiter listens", "unheard",
			"The waiter notified dies before it has tried", "notified_dead",
			"Masters notify different waiters", "divided",
			"A waiter leaves the queue while one of its attempts", "left_queue",
			"A Locker that has notified another one by a release tries", "gave_way",
			"The holder releases and acquires again at once", "polite",
		),
		tested(part, "The first waiter in the queue has died", "TestHazard108DeadWaitersCostNoHandoff"),
		tested(part, "A waiter with a long `RetryEvery`", "TestHazard45AWaiterThatAsksSeldomDoesNotHoldUpOthers"),
		tested(part, "A key is kept after its release", "TestAWaiterThatLeavesTheQueueOfAKeptKeyNotifiesTheNext"),
		// No process asks so seldom in simulated runs that it would show.
		tested(part, "A waiter gives up, and at once another one",
			"TestWhoGivesUpTakesNoPositionFromTheNextOfItsProcess", "TestWhoeverWaitsStandsInTheMastersQueues"),
		tested(part, "The same with a release", "TestAReleaseTakesNoPositionFromTheNextOfItsProcess"),
		tested(part, "A release that takes its process out of the queues",
			"TestARepeatedReleaseTakesNoPositionFromTheNextOfItsProcess"),
	)
}
