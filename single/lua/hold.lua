-- Holds of a shared key. A hold is 'mode:owner:id', the mode 'r' of a reader or 'w' of a writer. Those of both modes never stand together,
-- and all writers' holds are one owner's.
local function ownerOf(hold)
	return string.match(hold, '^[rw]:(.*):[^:]*$')
end

-- The owner as a reply may tell it: a string that looks like a hold can be somebody's data, of any size, too.
local function named(hold)
	return told(ownerOf(hold) or '')
end

-- Whether a hold of this mode and owner can stand beside one that is there.
local function beside(mode, owner, there)
	local writer = string.sub(there, 1, 1) == 'w'
	return mode == 'r' and not writer or mode == 'w' and writer and ownerOf(there) == owner
end

-- Makes the sorted set of a hold that has been a string, for others beside it, or for claims. The hold ends when it did; up to a few
-- milliseconds later if time has passed since left, what PTTL had said of the string, was asked for, which is before now. What may be
-- refused later is tried before anything is deleted: ZADD of a string is an error, but another one for who may not ZADD, and on a full
-- master, which refuses nothing behind a write. Returns an error if the hold is still the string. If the hold ends
-- meanwhile nothing may be there: PEXPIRE deletes what would end before it is done, even in the millisecond in which it ends, so it gets one more.
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

-- For how many ms a refused waiter keeps new readers out; writerClaim in names.go. Each further attempt renews that.
local CLAIM = 2500

-- Has no new reader get into a sorted set for a while, on behalf of a waiter. longest is for how many ms its holds last.
local function claim(key, waiter, longest, now)
	-- PEXPIRE first, as everywhere: whoever lacks a right leaves nothing that lives for ever.
	if redis.pcall('PEXPIRE', key, math.max(CLAIM, longest, redis.call('PTTL', key))) == 1 then
		redis.pcall('ZREMRANGEBYSCORE', key, -now, now)
		redis.pcall('ZADD', key, -(now + CLAIM), 'c:' .. waiter)
	end
end

-- Removes a hold or a claim from a sorted set, which then lives as long as what is left in it. Returns its score, and the last hold that is left
-- with its own; all that is asked for is asked for before anything is written.
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
	return score, hold, last
end
