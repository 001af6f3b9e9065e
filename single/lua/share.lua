-- Takes a key that readers share and a writer has to itself; the same writer may take it again.
--
-- KEYS: key, wait queue.
-- ARGV: 'r' or 'w', owner, hold id, ttl in ms; the waiter's name ('' when a refused caller does not wait), for how many
--       ms it has waited, for how many ms its entry is kept; for how many ms a refused writer keeps readers out; of a
--       reader the hold of the same owner that it is under, or ''.
-- Returns {1, 0, '', '', holds} when granted, or 1 where it is the only hold; {0, ttl in ms of what is in the way, its owner,
-- its key} when refused.
--
-- The key is a sorted set, so one key is all there is. A hold is 'mode:owner:id' with the time at which it ends as its
-- score; holds end each by itself, and adding one twice is adding it once. Holds of both modes never stand together,
-- and all writers' holds are one owner's. A hold's time is a millisecond later than now and its ttl, because now is what is
-- left of the time when the fraction is cut off: so it never ends before its ttl. A waiting writer is 'c:owner' with minus the time at which its claim ends:
-- while there is one, no reader gets in, so readers who keep coming can't starve it; but a reader that is one already
-- does, since the writer waits for it. The mark of kind.lua comes first of all. Holds and claims that have ended count for
-- nothing, and are removed when something is written anyway.
local mode, owner, id, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local waiter, waited, keep, claim = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local within = ARGV[9]
local key, queue = KEYS[1], KEYS[2]
local member = mode .. ':' .. owner .. ':' .. id
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- The usual case in as few steps as can be: nothing is there, so no hold, no claim and nobody's data either, and nobody waits,
-- so there is no entry to remove. What is written is what is written below, in the same order and for the same reasons: the
-- first ZADD does nothing but fail on a full master, which refuses no ZADD behind another write, or for want of the right.
if redis.pcall('EXISTS', key, queue) == 0 then
	redis.call('ZADD', key, 'XX', now + ttl + 1, member)
	redis.call('PEXPIRE', key, ttl)
	redis.call('ZADD', key, '-9007199254740991', 'redlock:holds', now + ttl + 1, member)
	redis.call('PEXPIRE', key, ttl)
	return 1
end

-- include kind.lua
-- include queue.lua

local function refuse(left, held)
	enqueue(queue, waiter, waited, keep)
	return {0, left, held, key}
end

-- The key lives as long as the longest hold in it, also if somebody took its end away (PERSIST), so that PTTL tells none.
local longest = 0
local function live(atLeast)
	return redis.call('PEXPIRE', key, math.max(atLeast, longest, redis.call('PTTL', key)))
end

local function stands(member)
	return tonumber(redis.call('ZSCORE', key, member) or 0) > now
end

local is, err = kind(key)
if err then
	return err
elseif is == 'string' then
	return refuse(redis.call('PTTL', key), told(redis.call('GET', key)))
end
local others = 0
if is == 'holds' then
	others = redis.call('ZCOUNT', key, '(' .. now, '+inf') - (stands(member) and 1 or 0)
	local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
	longest = tonumber(last[2]) - now
	if longest > 0 then
		local writer, held = string.sub(last[1], 1, 1) == 'w', string.match(last[1], '^[rw]:(.*):[^:]*$')
		local compatible = mode == 'r' and not writer or mode == 'w' and writer and held == owner
		if not compatible then
			-- PEXPIRE first, as everywhere: whoever lacks a right leaves nothing that lives for ever.
			if mode == 'w' and waiter ~= '' and redis.pcall('PEXPIRE', key, math.max(claim, longest, redis.call('PTTL', key))) == 1 then
				redis.pcall('ZREMRANGEBYSCORE', key, -now, now)
				redis.pcall('ZADD', key, -(now + claim), 'c:' .. waiter)
			end
			return refuse(longest, held)
		end
	end
	if mode == 'r' and not stands(member) and not stands('r:' .. owner .. ':' .. within) then
		local first = redis.call('ZRANGE', key, 1, 1, 'WITHSCORES') -- behind the mark
		if first[1] and -tonumber(first[2]) > now then
			return refuse(-tonumber(first[2]) - now, '')
		end
	end
end

-- The first ZADD does nothing to a hold that is not there but fail where the second one would, for want of a right or of
-- memory; likewise the first PEXPIRE. So nothing is ever there without an end, and whoever gets an error has got nothing.
redis.call('ZADD', key, 'XX', 'GT', now + ttl + 1, member)
local there = live(ttl)
redis.call('ZADD', key, 'GT', LEAST, HOLDS, now + ttl + 1, member)
if there == 0 then
	live(ttl)
else
	redis.pcall('ZREMRANGEBYSCORE', key, -now, now)
	if waiter ~= '' then
		redis.pcall('ZREM', key, 'c:' .. waiter)
	end
end
dequeue(queue, waiter)
return {1, 0, '', '', others + 1}
