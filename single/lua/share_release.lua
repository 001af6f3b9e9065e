-- Removes one hold of a shared key, and notifies those who wait when the last one is gone. Holds are as in share.lua. With
-- an empty hold id it only takes a waiter, and its claim, out of the way, and has the next one know what it knew: that the
-- key is free, or is kept.
-- KEYS: key, wait queue. ARGV: the hold as it is a string; the name under which the caller itself had queued up, and for how many ms the key is
-- reserved for the next one, both left out if it had not.
-- Returns {1, 0, '', '', holds left} when it was there, or 1 where nothing is left; {0, ttl in ms, owner of what holds the key}
-- when not: the owner is the caller's own if its other holds remain.
local key, queue = KEYS[1], KEYS[2]

-- The usual case in as few steps as can be: there is this hold and nothing else, and nobody waits, so there is nobody to notify, and the caller
-- has no entry either. What is not so, or can't be told for want of a right, goes the long way.
local held = redis.pcall('GET', key)
if held == ARGV[1] and redis.pcall('EXISTS', queue) == 0 then
	redis.call('DEL', key)
	return 1
end

-- include kind.lua
-- include queue.lua
-- include hold.lua

local member, waiter = lone(ARGV[1]), ARGV[2] or ''
local leaves = string.sub(member, -1) == ':'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local is, err = kind(key)
if not leaves and (err or type(held) == 'table' and is ~= 'holds') then
	return err or held
end
local removed, free, last, holder, holds = false, is == 'none', 0, '', 0
if held == ARGV[1] then
	redis.call('DEL', key)
	removed, free = true, true
elseif is == 'holds' then -- all that is asked for is asked for before anything is written
	local member = leaves and 'c:' .. waiter or member
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

if leaves then
	leave(key, queue, waiter, type(held) == 'string' and not lone(held) and held or not free and '', ARGV[3])
	return {0}
end
dequeue(queue, waiter)
if removed and free and marked(queue, QUEUE) then
	redis.pcall('ZREMRANGEBYSCORE', queue, '(' .. LEAST, 0)
	for _ = 1, 8 do -- some may be readers, who can all have it
		local next = tellNext(queue, key)
		if not next or redis.pcall('ZREM', queue, next) ~= 1 then
			break
		end
	end
	tidy(queue)
end
if removed then
	return {1, 0, '', '', holds}
elseif is == 'string' then
	local left, there = redis.call('PTTL', key), lone(held)
	return {0, there and left ~= -1 and left + 1 or left, there and named(there) or told(held), key}
elseif free then
	return {0}
end
return {0, last - now, named(holder), key}
