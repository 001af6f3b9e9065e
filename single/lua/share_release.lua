-- Removes one hold of a shared key, and notifies those who wait when the last one is gone. Holds are as in share.lua.
-- KEYS: key, wait queue. ARGV: the hold as it is a string; the name under which the caller itself had queued up, left out if it had not.
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
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local is, err = kind(key)
if err or type(held) == 'table' and is ~= 'holds' then
	return err or held
end
local removed, free, last, holder, holds = false, is == 'none', 0, '', 0
if held == ARGV[1] then
	redis.call('DEL', key)
	removed, free = true, true
elseif is == 'holds' then
	local score
	holds = redis.call('ZCOUNT', key, '(' .. now, '+inf')
	score, holder, last = drop(key, member, now)
	free = last <= now
	if score then
		removed, holds = true, score > now and holds - 1 or holds
	end
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
