package mutant

// luaScripts are the mutants of the scripts that run on masters.
func luaScripts() []Mutant {
	return []Mutant{
		{
			Name:   "acquire-overwrites",
			Breaks: "an acquisition takes a key that another owner has",
			Edits:  []Edit{{"single/lua/acquire.lua", "if held ~= owner then", "if false then"}},
			Tests:  in("single", "TestARefusedAcquireTellsForHowLongAndByWhomTheKeyIsHeld"),
		},
		{
			Name:   "acquire-takes-some",
			Breaks: "of several keys those are taken that are free, and left there when another one is not",
			Edits: []Edit{
				{"single/lua/acquire.lua", "\t\tfree[#free + 1], claims[KEYS[i]] = KEYS[i], hold", "\t\tfree[#free + " +
					"1], claims[KEYS[i]] = KEYS[i], hold\n\t\tredis.call('SET', KEYS[i], owner, 'PX', ttl)"},
			},
			Tests:  in("single", "TestSeveralKeysAreTakenAllOrNone"),
			Sample: true,
		},
		{
			Name:   "acquire-quick-forgets-waiters",
			Breaks: "several free keys are taken, even if one is reserved for another",
			Edits: []Edit{
				{"single/lua/acquire.lua", "redis.pcall('EXISTS', unpack(KEYS)) == 0", "redis.pcall('EXISTS', " +
					"unpack(KEYS, 1, n)) == 0"},
			},
			Tests: in("single", "TestAReservedKeyOfSeveralKeepsThePoliteOut"),
		},
		{
			Name:   "acquire-not-prolonged",
			Breaks: "a repeated acquisition leaves its key the ttl of the first",
			Edits: []Edit{
				{"single/lua/acquire.lua", "\t\telseif left < ttl and left ~= -1 then\n\t\t\tshort[#short + 1] = " +
					"KEYS[i]\n", ""},
			},
			Tests: in("single", "TestARepeatedAcquireRecognisesItsOwnOwner"),
		},
		{
			Name:   "acquire-token-again",
			Breaks: "a token is given out that the counter has reached already",
			Edits: []Edit{
				{
					"single/lua/acquire.lua", "counter = exact and proposal or math.max(counter + 1, proposal)",
					"counter = exact and proposal or math.max(counter, proposal)",
				},
			},
			Tests: in("single", "TestATokenIsTheProposalOrAboveTheCounter"),
		},
		{
			Name:   "acquire-inexact",
			Breaks: "a lock that publishes its token is granted with a counter that is at it already",
			Edits: []Edit{
				{"single/lua/acquire.lua", "if exact and counter >= proposal and", "if exact and counter > " +
					"proposal and"},
			},
			Tests: in("single", "TestAnExactTokenIsGivenOrRefused"),
		},
		{
			Name:   "acquire-impolite",
			Breaks: "a key that is reserved for a waiter is given to one that would leave it",
			Edits:  []Edit{{"single/lua/acquire.lua", "polite and reserved(", "false and reserved("}},
			Tests:  in("single", "TestAReservationKeepsOnlyThePoliteOut"),
		},
		{
			Name:   "acquire-stays-in-queue",
			Breaks: "a new holder stays in the key's queue",
			Edits:  []Edit{{"single/lua/acquire.lua", "\tdequeue(KEYS[n + i], waiter)\n", ""}},
			Tests:  in("single", "TestAWaiterThatGetsTheKeyLeavesTheQueue"),
		},
		{
			Name:   "acquire-half-set",
			Breaks: "a user without the right to give a key its end makes a key, where a counter belongs to it",
			Edits: []Edit{
				{"single/lua/acquire.lua", "\t\tredis.call('SET', key, owner, claims[key] and 'NX' or 'XX', 'PX', " +
					"ttl)\n", ""},
			},
			Tests: in("single", "TestHazard36AFullMasterGrantsNothingAndSaysWhy"),
		},
		{
			Name:   "extend-shortens",
			Breaks: "an extension by less than is left takes time away",
			Edits: []Edit{
				{"single/lua/extend.lua", "elseif left < ttl and left ~= -1 then", "elseif left ~= -1 then"},
			},
			Tests: in("single", "TestExtendProlongsOnlyItsOwnersKeys"),
		},
		{
			Name:   "extend-anybodys",
			Breaks: "an extension prolongs another owner's key",
			Edits:  []Edit{{"single/lua/extend.lua", "if held ~= owner then", "if false then"}},
			Tests:  in("single", "TestExtendProlongsOnlyItsOwnersKeys"),
		},
		{
			Name:   "extend-sets-again",
			Breaks: "every extension sets a key again that is gone",
			Edits:  []Edit{{"single/lua/extend.lua", "elseif not held and not repair then", "elseif false then"}},
			Tests:  in("single", "TestExtendProlongsOnlyItsOwnersKeys"),
		},
		{
			Name:   "extend-repair-is-there",
			Breaks: "a key that was set again passes for one that was there",
			Edits:  []Edit{{"single/lua/extend.lua", "return {gone[1] and 2 or 1}", "return {1}"}},
			Tests:  in("single", "TestExtendProlongsOnlyItsOwnersKeys"),
		},
		{
			Name:   "extend-some",
			Breaks: "an extension of several keys prolongs some when one is gone",
			Edits: []Edit{
				{"single/lua/extend.lua", "\t\t\tshort[#short + 1] = KEYS[i]", "\t\t\tshort[#short + 1] = " +
					"KEYS[i]\n\t\t\tredis.call('PEXPIRE', KEYS[i], ttl)"},
			},
			Tests: in("single", "TestAnExtensionOfSeveralKeysIsRefusedWithoutChangingAny"),
		},
		{
			Name:   "extend-lost-counter",
			Breaks: "a counter that a master has lost is not brought back by the hold's extension",
			Edits:  []Edit{{"single/lua/extend.lua", "\traise(KEYS[n + 1], counter, token, ARGV[6])\n", ""}},
			Tests:  in("single", "TestAnExtensionRaisesTheCounter"),
		},
		{
			Name:   "release-anybodys",
			Breaks: "a release removes another owner's key",
			Edits: []Edit{
				{"single/lua/release.lua", "if owner ~= '' and held[i] == owner then", "if owner ~= '' and " +
					"held[i] then"},
			},
			Tests: in("single", "TestReleaseRemovesOnlyItsOwnersKeys"),
		},
		{
			Name:   "release-quick-anybodys",
			Breaks: "without waiters a release removes another owner's key",
			Edits: []Edit{
				{"single/lua/release.lua", "mine = mine and redis.pcall('GET', KEYS[i]) == owner", "mine = mine and " +
					"redis.pcall('GET', KEYS[i])"},
			},
			Tests: in("single", "TestReleaseRemovesOnlyItsOwnersKeys"),
		},
		{
			Name:   "release-quick-forgets-waiters",
			Breaks: "a release notifies no waiter, although one waits",
			Edits: []Edit{
				{
					"single/lua/release.lua", "if mine and redis.pcall('EXISTS', unpack(KEYS, n + 1)) == 0 and ",
					"if mine and ",
				},
			},
			Tests: in("single", "TestAReleaseNotifiesTheLongestWaiterAndReservesTheKey"),
		},
		{
			Name:   "release-says-ours",
			Breaks: "a release of a missing key says that it was there",
			Edits:  []Edit{{"single/lua/release.lua", "\t\tresult = 0\n", "\t\tresult = 1\n"}},
			Tests:  in("single", "TestReleaseRemovesOnlyItsOwnersKeys"),
		},
		{
			Name:   "leave-keeps-call",
			Breaks: "one that leaves and was notified does not pass that on",
			Edits: []Edit{
				{
					"single/lua/queue.lua", "\telseif held == false and reserved(queue, waiter) <= 0 then",
					"\telseif false then",
				},
			},
			Tests: in("single", "TestANotifiedWaiterThatLeavesNotifiesTheNext"),
		},
		{
			Name:   "leave-keeps-kept",
			Breaks: "one that leaves and knew until when the key is kept does not have another one told",
			Edits: []Edit{
				{"single/lua/queue.lua", "\telseif type(held) == 'string' and string.find(", "\telseif false and " +
					"string.find("},
			},
			Tests: in("single", "TestAWaiterThatLeavesTheQueueOfAKeptKeyNotifiesTheNext"),
		},
		{
			Name:   "leave-tells-of-all",
			Breaks: "a leaving waiter has the next one told also of a held key",
			Edits: []Edit{
				{
					"single/lua/queue.lua", "\telseif type(held) == 'string' and string.find(held, " +
						"'^[^{}]+{}/%x+$') then",
					"\telseif held then",
				},
			},
			Tests: in("single", "TestAWaiterThatLeavesSendsNoNeedlessMessages"),
		},
		{
			Name: "leave-tells-twice",
			Breaks: "a key that is reserved for a waiter that was notified is offered to the next one when a third " +
				"leaves",
			Edits: []Edit{
				{"single/lua/queue.lua", "held == false and reserved(queue, waiter) <= 0 then", "held == false then"},
			},
			Tests: in("single", "TestAWaiterThatLeavesSendsNoNeedlessMessages"),
		},
		{
			Name: "keep-leaves-silently",
			Breaks: "a release that keeps its keys leaves the queue of one that it has not got without a word to " +
				"the next",
			Edits: []Edit{
				{"single/lua/keep.lua", "leave(KEYS[i], KEYS[n + i], waiter, held[i], reserve)", "dequeue(KEYS[n + " +
					"i], waiter)"},
			},
			Tests: in("single", "TestKeepingAnotherOwnersKeyNotifiesTheNextWaiter"),
		},
		{
			Name:   "bundle-anybodys",
			Breaks: "a bundle removes other owners' keys",
			Edits: []Edit{
				{"single/lua/release_bundle.lua", "if held[i] == ARGV[1 + i] and not gone[key] then", "if held[i] " +
					"and not gone[key] then"},
			},
			Tests: in("single", "TestABundleDoesWhatItsReleasesDoOneByOne"),
		},
		{
			Name:   "bundle-quick-anybodys",
			Breaks: "a bundle removes all its keys if the first is its owner's",
			Edits: []Edit{
				{"single/lua/release_bundle.lua", "\t\tall = false\n\t\tbreak", "\t\tall = i > 1\n\t\tbreak"},
			},
			Tests: in("single", "TestUnusualReleasesInABundleAreHandledOneByOne"),
		},
		{
			Name:   "bundle-twice",
			Breaks: "a key that is released twice in one bundle notifies two waiters",
			Edits:  []Edit{{"single/lua/release_bundle.lua", " and not gone[key] then", " then"}},
			Tests:  in("single", "TestABundleDoesWhatItsReleasesDoOneByOne"),
		},
		{
			Name:   "several-overwritten",
			Breaks: "a bundle of acquisitions takes keys that are held",
			Edits: []Edit{
				{"single/lua/acquire_several.lua", "local free = call('EXISTS', unpack(keys)) == 0", "local free " +
					"= true"},
			},
			Tests: in("single", "TestABundleOfSeveralKeysDoesWhatItsLocksDoOneByOne"),
		},
		{
			Name:   "several-overtakes",
			Breaks: "a bundle of acquisitions takes keys that have waiters",
			Edits: []Edit{
				{
					"single/lua/acquire_several.lua", " and call('EXISTS', unpack(keys, all + first, all + last)) == 0",
					"",
				},
			},
			Tests: in("single", "TestABundleOfSeveralKeysDoesWhatItsLocksDoOneByOne"),
		},
		{
			Name:   "several-granted-twice",
			Breaks: "two acquisitions of one bundle get the same key",
			Edits:  []Edit{{"single/lua/acquire_several.lua", "mine = mine and not taken[keys[k]]", "mine = mine"}},
			Tests:  in("single", "TestUnusualLocksOfSeveralKeysAreHandledOneByOne"),
		},
		{
			Name:   "several-granted-behind-the-first",
			Breaks: "two acquisitions of one bundle get the same key, if neither is the first",
			Edits:  []Edit{{"single/lua/acquire_several.lua", "taken[key] = true", "taken[key] = i == 1"}},
			Tests:  in("single", "TestUnusualLocksOfSeveralKeysAreHandledOneByOne"),
		},
		{
			Name:   "several-half-taken",
			Breaks: "an acquisition of several keys that is refused in the middle leaves its keys",
			Edits:  []Edit{{"single/lua/acquire.lua", "\t\t\t\tredis.call('DEL', KEYS[set])\n", ""}},
			Tests:  in("single", "TestAUserWithSelectorsGetsAWholeLockOrNone"),
		},
		{
			Name:   "several-taken-back-together",
			Breaks: "a refused acquisition's keys are removed by one command, which no selector may allow",
			Edits: []Edit{{
				"single/lua/acquire.lua", "\t\t\tfor set = 1, i - 1 do -- one by one, as they were set: no selector " +
					"may allow all of them\n\t\t\t\tredis.call('DEL', KEYS[set])\n",
				"\t\t\tif i > 1 then\n\t\t\t\tredis.call('DEL', unpack(KEYS, 1, i - 1))\n",
			}},
			Tests: in("single", "TestAUserWithTwoSelectorsLeavesNothing"),
		},
		{
			Name:   "release-all-or-nothing",
			Breaks: "keys that no selector allows together are not released",
			Edits: []Edit{
				{
					"single/lua/release.lua", "type(redis.pcall('DEL', unpack(KEYS, 1, n))) == 'number'",
					"redis.call('DEL', unpack(KEYS, 1, n))",
				},
			},
			Tests: in("single", "TestAUserWithTwoSelectorsLeavesNothing"),
		},
		{
			Name:   "several-half-taken-together",
			Breaks: "a bundle of acquisitions that is refused in the middle leaves its keys",
			Edits:  []Edit{{"single/lua/acquire_several.lua", "call('DEL', set)", "call('GET', set)"}},
			Tests:  in("single", "TestAUserWithSelectorsGetsAWholeLockOrNone"),
		},
		{
			Name:   "several-removes-anybodys",
			Breaks: "a bundle of releases of several keys removes other owners' keys",
			Edits:  []Edit{{"single/lua/release_several.lua", "held[k] == owner", "held[k]"}},
			Tests:  in("single", "TestUnusualLocksOfSeveralKeysAreHandledOneByOne"),
		},
		{
			Name:   "several-tells-nobody",
			Breaks: "a bundle of releases of several keys removes some with waiters, and notifies none",
			Edits: []Edit{
				{"single/lua/release_several.lua", "if found and not (waited and call('EXISTS', unpack(keys, all + " +
					"first, all + last)) > 0) then", "if found then"},
			},
			Tests: in("single", "TestAReleaseOfSeveralKeysNotifiesAWaiterForAnyOfThem"),
		},
		{
			Name:   "several-tells-the-first",
			Breaks: "a bundle of releases of several keys looks for waiters of each release's first key only",
			Edits: []Edit{
				{"single/lua/release_several.lua", "(keys, all + first, all + last)", "(keys, all + first, all + " +
					"first)"},
			},
			Tests: in("single", "TestAReleaseOfSeveralKeysNotifiesAWaiterForAnyOfThem"),
		},
		{
			Name:   "several-released-twice",
			Breaks: "a lock of several keys that is released twice in one bundle is released both times",
			Edits:  []Edit{{"single/lua/release_several.lua", " and not gone[keys[k]]", ""}},
			Tests:  in("single", "TestUnusualLocksOfSeveralKeysAreHandledOneByOne"),
		},
		{
			Name:   "raise-to-the-same",
			Breaks: "a master accepts a token that it has given out already",
			Edits:  []Edit{{"single/lua/raise.lua", "elseif counter >= token then", "elseif counter > token then"}},
			Tests:  in("single", "TestRaiseLiftsTheCounterOfAHeldKey"),
		},
		{
			Name:   "raise-without-key",
			Breaks: "a master accepts a token for a hold that has lost its key there",
			Edits:  []Edit{{"single/lua/raise.lua", "elseif held ~= ARGV[1] then", "elseif false then"}},
			Tests:  in("single", "TestRaiseLiftsTheCounterOfAHeldKey"),
		},
		{
			Name:   "counter-falls",
			Breaks: "a counter is set back",
			Edits: []Edit{
				{"single/lua/counter.lua", "redis.call('ZADD', counter, 'GT', ", "redis.call('ZADD', counter, "},
			},
			Equivalent: "a script is one step, and before ZADD it has compared what it wants to set with what it has " +
				"just read",
		},
		{
			Name:   "counter-for-ever",
			Breaks: "a counter is made without an end",
			Edits: []Edit{
				{"single/lua/counter.lua", "\t\tif there == 0 then\n\t\t\tredis.call('PEXPIRE', counter, " +
					"keep)\n\t\tend\n", ""},
			},
			Tests: in("single", "TestHazard28ACounterOutlivesItsLockByFarAndNotForEver"),
		},
		{
			Name:   "counter-dies",
			Breaks: "a counter is not kept by the acquisitions that follow the first",
			Edits: []Edit{
				{"single/lua/counter.lua", "local there = redis.call('PEXPIRE', counter, keep)", "local there = " +
					"redis.call('EXISTS', counter)"},
			},
			Tests: in("single", "TestHazard28ACounterOutlivesItsLockByFarAndNotForEver"),
		},
		{
			Name:   "counter-of-somebody",
			Breaks: "foreign data in a counter's place is taken for an empty counter",
			Edits:  []Edit{{"single/lua/counter.lua", "elseif redis.call('EXISTS', counter) == 0 then", "else"}},
			Tests:  in("single", "TestForeignDataInACountersPlaceGrantsNothing"),
		},
		{
			Name:   "kind-any-set",
			Breaks: "a foreign sorted set is taken for a shared lock",
			Edits: []Edit{
				{"single/lua/kind.lua", "elseif is == 'zset' and marked(key, HOLDS) then", "elseif is == 'zset' then"},
			},
			Tests: in("single", "TestHazard35ASharedLockLeavesALeaderboardAlone"),
		},
		{
			Name:   "kind-wrong-type-is-free",
			Breaks: "a foreign list is taken for a free key",
			Edits:  []Edit{{"single/lua/kind.lua", "\treturn nil, err or held\n", "\treturn false\n"}},
			Tests:  in("single", "TestAKeyOfAnotherTypeIsAnError"),
		},
		{
			Name:   "queue-last-first",
			Breaks: "a release notifies who has waited shortest",
			Edits: []Edit{
				{"single/lua/queue.lua", "local first = redis.pcall('ZRANGE', queue, 1, 2)", "local first = " +
					"redis.pcall('ZRANGE', queue, -1, -1)"},
			},
			Tests: in("single", "TestAReleaseNotifiesTheLongestWaiterAndReservesTheKey"),
		},
		{
			Name:   "queue-by-arrival",
			Breaks: "waiters are in the order of their latest attempt",
			Edits:  []Edit{{"single/lua/queue.lua", "now - waited, waiter)", "now, waiter)"}},
			Tests:  in("single", "TestWaitersQueueByTheTimeTheyHaveWaited"),
		},
		{
			Name:   "queue-one-more",
			Breaks: "a queue keeps one waiter more than its bound",
			Edits: []Edit{
				{
					"single/lua/queue.lua", "redis.pcall('ZREMRANGEBYRANK', queue, 257, -1)",
					"redis.pcall('ZREMRANGEBYRANK', queue, 258, -1)",
				},
			},
			Tests: in("single", "TestTheQueueIsBoundedAndKeepsThoseWhoWaitedLongest"),
		},
		{
			Name:   "queue-keeps-out-its-own",
			Breaks: "a reservation keeps its waiter out, too",
			Edits:  []Edit{{"single/lua/queue.lua", " and first[3] ~= '!' .. waiter then", " then"}},
			Tests:  in("single", "TestAReservationKeepsOnlyThePoliteOut"),
		},
		{
			Name:   "queue-reserves-for-ever",
			Breaks: "a reservation does not end",
			Edits: []Edit{
				{"single/lua/queue.lua", "return now and -tonumber(first[4]) - now or 0", "return now and 1000 or 0"},
			},
			Tests: in("single", "TestAReservationEndsByItself"),
		},
		{
			Name:   "queue-silent",
			Breaks: "a release reserves the key for a waiter and does not tell it",
			Edits: []Edit{
				{"single/lua/queue.lua", "redis.pcall('PUBLISH', 'redlock:free:' .. next, message) ~= 0", "true"},
			},
			Tests: in("single", "TestAReleaseNotifiesTheLongestWaiterAndReservesTheKey"),
		},
		{
			Name:   "queue-notifies-the-dead",
			Breaks: "a dead waiter is notified, and the waiters behind it wait",
			Edits:  []Edit{{"single/lua/queue.lua", "next, message) ~= 0 then", "next, message) then"}},
			Tests: append(in("single", "TestHazard108AMessageGoesToAWaiterThatListens"),
				in("internal/store", "TestTheStoreAnswersLikeARealServer")...),
		},
		{
			Name:   "queue-in-memory-notifies-the-dead",
			Breaks: "masters in memory notify a waiter that does not listen",
			Edits:  []Edit{{"internal/store/queue.go", "s.Listens != nil && s.Listens(next)", "true"}},
			Tests: append(in("internal/store", "TestTheStoreAnswersLikeARealServer"),
				in(".", "TestHazard108DeadWaitersCostNoHandoff")...),
		},
		{
			Name:   "store-claim-keeps-the-key",
			Sample: true,
			Breaks: "the masters in memory grant a key without setting it, where a claim outlives the ttl",
			Edits:  []Edit{{"internal/store/plain.go", "v != nil && v.what == holds || left < ttl", "left < ttl"}},
			Tests:  in("internal/store", "TestTheStoreAnswersLikeARealServer"),
		},
		{
			Name:   "share-reader-beside-writer",
			Breaks: "a reader gets in with a writer",
			Edits:  []Edit{{"single/lua/hold.lua", "return mode == 'r' and not writer or", "return mode == 'r' or"}},
			Tests:  in("single", "TestReadersShareAKeyAndWritersExcludeOthers"),
		},
		{
			Name:   "share-writer-beside-writer",
			Breaks: "a writer gets in with another owner's",
			Edits: []Edit{
				{"single/lua/hold.lua", "mode == 'w' and writer and ownerOf(there) == owner", "mode == 'w' and writer"},
			},
			Tests: in("single", "TestReadersShareAKeyAndWritersExcludeOthers"),
		},
		{
			Name:   "share-ignores-claims",
			Breaks: "readers who keep coming starve a writer that waits",
			Edits:  []Edit{{"single/lua/share.lua", "if first[1] and -tonumber(first[2]) > now then", "if false then"}},
			Tests:  in("single", "TestAWaitingWriterKeepsNewReadersOut"),
		},
		{
			Name:   "share-millisecond-early",
			Breaks: "a hold ends up to a millisecond before its ttl",
			Edits: []Edit{
				{
					"single/lua/share.lua", "redis.call('ZADD', key, 'GT', LEAST, HOLDS, now + ttl + 1, member)",
					"redis.call('ZADD', key, 'GT', LEAST, HOLDS, now + ttl, member)",
				},
			},
			Tests: in("single", "TestNoHoldOfASharedKeyEndsBeforeItsTTL"),
		},
		{
			Name:   "share-ended-still-counts",
			Breaks: "a hold that has ended keeps others out",
			Edits:  []Edit{{"single/lua/share.lua", "\nif longest > 0 and ", "\nif longest > -1e12 and "}},
			Tests:  in("single", "TestAnEndedHoldBlocksNoOtherOwner"),
		},
		{
			Name:   "share-extend-shortens",
			Breaks: "an extension of a shared hold takes time away",
			Edits: []Edit{
				{
					"single/lua/share_extend.lua", "redis.call('ZADD', key, 'GT', LEAST, HOLDS, now + ttl + 1, member)",
					"redis.call('ZADD', key, LEAST, HOLDS, now + ttl + 1, member)",
				},
			},
			Tests: in("single", "TestAHoldIsNeverShortened"),
		},
		{
			Name:   "share-extend-repair-is-there",
			Breaks: "a shared hold that was added again passes for one that was there",
			Edits:  []Edit{{"single/lua/share_extend.lua", "return {mine and 1 or 2}", "return {1}"}},
			Tests:  in("single", "TestExtendingASharedHoldNeedsThatHoldUnlessItRepairs"),
		},
		{
			Name:   "share-extend-beside",
			Breaks: "a shared hold is added again although another hold excludes it",
			Edits: []Edit{
				{"single/lua/share_extend.lua", "elseif not beside(mode, owner, there) or", "elseif"},
				{"single/lua/share_extend.lua", "longest > 0 and not beside(mode, owner, last[1])", "longest > 0 and " +
					"false"},
			},
			Tests: in("single", "TestExtendingASharedHoldNeedsThatHoldUnlessItRepairs"),
		},
		{
			Name:   "share-release-all",
			Breaks: "the release of one reader's hold removes the key from all",
			Edits: []Edit{
				{"single/lua/hold.lua", "\tif score and hold == HOLDS then -- nothing", "\tif score then -- nothing"},
			},
			Tests: in("single", "TestS4AReleaseRemovesItsOwnHoldAndNoOther"),
		},
		{
			Name:   "share-release-silent",
			Breaks: "the last release of a shared key notifies no waiter",
			Edits: []Edit{
				{"single/lua/share_release.lua", "if removed and free and marked(queue, QUEUE) then", "if false then"},
			},
			Tests: in("single", "TestTheLastReleaseOfASharedKeyNotifiesItsWaiters"),
		},
		{
			Name:   "hold-string-early",
			Breaks: "a hold that becomes a member of a set ends a millisecond sooner",
			Edits:  []Edit{{"single/lua/hold.lua", "now + left + 1, hold)", "now + left, hold)"}},
			Tests:  in("single", "TestAStringBecomesASetThatKeepsItsHold"),
		},
		{
			Name:   "hold-deleted-untried",
			Breaks: "a hold is deleted by who may not make a set of it",
			Edits: []Edit{
				{"single/lua/hold.lua", "if type(may) == 'table' and not string.find(may.err, 'WRONGTYPE', 1, " +
					"true) then", "if false then"},
			},
			Tests: in("single", "TestAMissingRightLosesNoHold"),
		},
		{
			Name:   "hold-set-for-ever",
			Breaks: "a set is made of a hold by who may not give it an end",
			Edits:  []Edit{{"single/lua/hold.lua", "{{'PEXPIRE', key, left + 1}, {'DEL', key}}", "{{'DEL', key}}"}},
			Tests:  in("single", "TestAMissingRightLosesNoHold"),
		},
		{
			Name:   "hold-any-string",
			Breaks: "a foreign string is taken for a hold",
			Edits: []Edit{
				{"single/lua/kind.lua", "string.sub(held, 1, #LONE) == LONE and string.match(held, " +
					"'^[rw]:.*:[^:]*$', #LONE + 1)", "string.match(held, '[rw]:.*:[^:]*$')"},
			},
			Tests: in("single", "TestAStringThatIsNotAHoldWithAnExpiryIsNotChanged"),
		},
		{
			Name:   "hold-without-an-end",
			Breaks: "a hold without an end counts as over when another one comes",
			Edits:  []Edit{{"single/lua/share.lua", "elseif left == -1 then", "elseif false then"}},
			Tests:  in("single", "TestAStringThatIsNotAHoldWithAnExpiryIsNotChanged"),
		},
		{
			Name:   "hold-extend-shortens",
			Breaks: "an extension of a hold that is a string takes time away",
			Edits: []Edit{
				{"single/lua/share_extend.lua", "\tif left < ttl and left ~= -1 then", "\tif left ~= -1 then"},
			},
			Tests: in("single", "TestAHoldIsNeverShortened"),
		},
		{
			Name:   "hold-again-shortens",
			Breaks: "an acquisition that is repeated takes time away from its hold",
			Edits:  []Edit{{"single/lua/share.lua", "\tif left < ttl and left ~= -1 then", "\tif left ~= -1 then"}},
			Tests:  in("single", "TestAHoldIsNeverShortened"),
		},
		{
			Name:   "hold-release-anybodys",
			Breaks: "the release of a hold removes any string",
			Edits: []Edit{
				{"single/lua/share_release.lua", "if held == ARGV[1] and redis.pcall(", "if type(held) == 'string' " +
					"and redis.pcall("},
			},
			Tests: in("single", "TestAReleaseOfASharedHoldLeavesOtherKindsOfKeys"),
		},
		{
			Name:   "hold-bundled-in-silence",
			Breaks: "a bundle removes a hold, and notifies one of its waiters, or none",
			Edits: []Edit{
				{"single/lua/release_bundle.lua", "if waited and held[i] == ARGV[1 + i] and lone(held[i])", "if false"},
			},
			Tests: in("single", "TestReleasesOfHoldsAreBundled"),
		},
		{
			Name:   "hold-inspected-as-plain",
			Breaks: "who asks for the holder of a hold that is a string is shown its owner and id as an owner",
			Edits:  []Edit{{"single/lua/inspect.lua", "\t\tif hold then", "\t\tif false then"}},
			Tests:  in("single", "TestInspectReportsALoneHoldLikeOneInASet"),
		},
	}
}
