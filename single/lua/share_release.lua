-- Removes one hold of a shared key, and notifies waiters when the last hold has gone. For the form of holds see
-- share.lua.
-- KEYS: key, wait queue. ARGV: the hold as a string; the caller's own name in the queue, omitted if it was not queued.
-- Returns {1, 0, '', '', remaining holds} if the hold was there, or 1 if nothing remains; {0, ttl in ms, owner of the
-- remaining hold} if it was not there. That owner is the caller's own if it has other holds.
local key, queue = KEYS[1], KEYS[2]

-- The usual case, in few steps: there is only this hold and no queue, so no waiter to notify, and the caller is not
-- queued either. All other cases take the long way, also if a missing right hides them.
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
if is == 'holds' and unclaim(key, waiter, now) or removed and free then
	notifySome(key, queue)
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
