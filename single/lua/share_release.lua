-- Removes one hold of a shared key, and notifies those who wait when the last one is gone. Holds are as in share.lua. With
-- an empty hold id it only takes a waiter, and its claim, out of the way, and notifies the next one if the key is free and
-- was reserved for it.
-- KEYS: key, wait queue. ARGV: 'r' or 'w', owner, hold id, for how many ms the key is reserved for the next one, the name
-- under which the caller itself had queued up ('' if it had not).
-- Returns {1, 0, '', '', holds left} when it was there, or 1 where nothing is left; {0, ttl in ms, owner of what holds the key}
-- when not: the owner is the caller's own if its other holds remain.
local key, queue = KEYS[1], KEYS[2]
local id, waiter = ARGV[3], ARGV[5]

-- The usual case in as few steps as can be. Behind the mark, which tells the set from somebody's data, there is this hold and
-- nothing else: no other hold, and no claim. Whether it has ended makes no difference to its removal, so the time is not asked.
-- Nobody waits, so there is nobody to notify, and the caller has no entry either. What is not so, or can't be told for want of
-- a right, goes the long way.
if id ~= '' then
	local member = ARGV[1] .. ':' .. ARGV[2] .. ':' .. id
	local all = redis.pcall('ZRANGE', key, 0, 2, 'WITHSCORES')
	if all[1] == 'redlock:holds' and tonumber(all[2]) == -9007199254740991 and all[3] == member and not all[5]
		and redis.pcall('EXISTS', queue) == 0 then
		redis.call('ZREM', key, member, all[1])
		return 1
	end
end

-- include kind.lua
-- include queue.lua

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local is, err = kind(key)
if err and id ~= '' then
	return err
end
local removed, free, last, holder, holds = false, is == 'none', 0, '', 0
if is == 'holds' then -- all that is asked for is asked for before anything is written
	local member = id == '' and 'c:' .. waiter or ARGV[1] .. ':' .. ARGV[2] .. ':' .. id
	local score = tonumber(redis.call('ZSCORE', key, member))
	local top = redis.call('ZREVRANGE', key, 0, 1, 'WITHSCORES')
	local low = redis.call('ZRANGE', key, 1, 2, 'WITHSCORES') -- behind the mark
	holds = redis.call('ZCOUNT', key, '(' .. now, '+inf')
	local t, l = top[1] == member and 3 or 1, low[1] == member and 3 or 1
	last, holder, free = tonumber(top[t + 1]), top[t], tonumber(top[t + 1]) <= now
	if score then
		removed, holds = true, score > now and holds - 1 or holds
		if holder == HOLDS then -- nothing else is left
			redis.call('ZREM', key, member, HOLDS)
		else -- the key lives as long as what is left in it
			redis.call('ZREM', key, member)
			redis.pcall('ZREMRANGEBYSCORE', key, -now, now)
			redis.pcall('PEXPIRE', key, math.max(last, -tonumber(low[l + 1])) - now)
		end
	end
end

local mine = dequeue(queue, waiter)
if id == '' then
	if mine and free then
		notify(key, queue, ARGV[4])
	end
	return {0}
elseif removed and free and marked(queue, QUEUE) then
	redis.pcall('ZREMRANGEBYSCORE', queue, '(' .. LEAST, 0)
	local waiters = redis.pcall('ZRANGE', queue, 1, 8) -- some may be readers, who can all have it
	for i = 1, #waiters do
		redis.pcall('ZREM', queue, waiters[i])
		redis.pcall('PUBLISH', 'redlock:free:' .. waiters[i], key)
	end
	tidy(queue)
end
if removed then
	return {1, 0, '', '', holds}
elseif is == 'string' then
	return {0, redis.call('PTTL', key), told(redis.call('GET', key)), key}
elseif free then
	return {0}
end
return {0, last - now, string.match(holder, '^[rw]:(.*):[^:]*$'), key}
