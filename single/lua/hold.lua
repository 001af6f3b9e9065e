-- Holds of a shared key. A hold is 'mode:owner:id' with the mode 'r' for a reader or 'w' for a writer. A key never
-- has holds of both modes, and all writers' holds belong to one owner.
local function ownerOf(hold)
	return string.match(hold, '^[rw]:(.*):[^:]*$')
end

-- The owner in a form for replies. A string that looks like a hold may be foreign data of any size.
local function named(hold)
	return told(ownerOf(hold) or '')
end

-- Whether a hold of this mode and owner can be added to an existing hold.
local function beside(mode, owner, there)
	local writer = string.sub(there, 1, 1) == 'w'
	return mode == 'r' and not writer or mode == 'w' and writer and ownerOf(there) == owner
end

-- Replaces a hold that is a string by a sorted set, so that other holds or claims can be added. left is the string's
-- PTTL, read at now or earlier. In the set the hold ends at the same time, or up to a few milliseconds later if time
-- has passed between the two.
--
-- Every command that may be refused is tried before the string is deleted. ZADD of a string is always an error, but a
-- different one for a user without the right to ZADD and on a full master, which refuses nothing behind a write.
-- Returns an error if the hold still is the string. PEXPIRE deletes a key that would end at once, even in the
-- millisecond in which it ends, so the hold gets one millisecond more. If the hold has ended, the key may now be
-- missing.
local function spread(key, hold, left, now)
	local may = redis.pcall('ZADD', key, 'XX', now, hold)
	if type(may) == 'table' and not string.find(may.err, 'WRONGTYPE', 1, true) then
		return may
	end
	for _, command in ipairs({{'PEXPIRE', key, left + 1}, {'DEL', key}}) do
		local done = redis.pcall(unpack(command))
		if type(done) == 'table' then
			return done
		end
	end
	redis.call('ZADD', key, LEAST, HOLDS, now + left + 1, hold)
	redis.call('PEXPIRE', key, left + 1)
end

-- For how many ms a refused waiter keeps new readers out; WriterClaim in names.go. Each further attempt renews the
-- claim.
local CLAIM = 2500

-- Keeps new readers out of a sorted set for a while, for a waiter. longest is for how many ms the set's holds last.
local function claim(key, waiter, longest, now)
	-- PEXPIRE comes first, as everywhere: a user without a right leaves no data that lives for ever.
	if redis.pcall('PEXPIRE', key, math.max(CLAIM, longest, redis.call('PTTL', key))) == 1 then
		redis.pcall('ZREMRANGEBYSCORE', key, -now, now)
		redis.pcall('ZADD', key, -(now + CLAIM), 'c:' .. waiter)
	end
end

-- Removes a hold or a claim from a sorted set, and makes the set live as long as its remaining members. Returns the
-- member's score, the last remaining hold with its score, and whether a claim remains. It reads everything before it
-- writes.
local function drop(key, member, now)
	local score = tonumber(redis.call('ZSCORE', key, member))
	local top = redis.call('ZREVRANGE', key, 0, 1, 'WITHSCORES')
	local low = redis.call('ZRANGE', key, 1, 2, 'WITHSCORES') -- behind the mark
	local t, l = top[1] == member and 3 or 1, low[1] == member and 3 or 1
	local hold, last = top[t], tonumber(top[t + 1])
	if score and hold == HOLDS then -- nothing else is left
		redis.call('ZREM', key, member, HOLDS)
	elseif score then
		redis.call('ZREM', key, member)
		redis.pcall('ZREMRANGEBYSCORE', key, -now, now)
		redis.pcall('PEXPIRE', key, math.max(last, -tonumber(low[l + 1])) - now)
	end
	return score, hold, last, -tonumber(low[l + 1] or 0) > now
end

-- Takes back a waiter's claim on a key that is a sorted set. now is nil if the key is anything else. Returns whether
-- waiters may get in that the claim kept out: it was the last one, and the key is free or readers have it. If a right
-- is missing, the claim lapses by itself, and nothing else fails.
local function unclaim(key, waiter, now)
	if not now or waiter == '' then
		return false
	end
	local done, score, hold, last, claimed = pcall(drop, key, 'c:' .. waiter, now)
	return done and score and not claimed and (last <= now or string.sub(hold, 1, 2) == 'r:')
end

-- Removes a waiter from the queue of a key that it has not got, and its claim. Perhaps no other waiter knows that the
-- key is free, or until when it is kept, so the script tells another one. The queue does not show which waiter knows,
-- because attempts change the order. If it was another one than the leaving waiter, this costs one needless look. Needs
-- queue.lua.
local function depart(key, queue, waiter, held, now, reserve)
	local queued = dequeue(queue, waiter)
	if unclaim(key, waiter, now) then
		notifySome(key, queue)
	elseif queued and held == false and reserved(queue, waiter) <= 0 then
		notify(key, queue, reserve)
	elseif queued and type(held) == 'string' and string.find(held, '^[^{}]+{}/%x+$') then -- set by keep.lua
		tell(key, queue)
	end
end
