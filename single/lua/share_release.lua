-- Removes one hold of a shared key, and tells those who wait when the last one is gone. Holds are as in share.lua. With an
-- empty hold id it only takes a waiter, and its claim, out of the way.
-- KEYS: key, arrival queue. ARGV: 'r' or 'w', owner, hold id, the prefix of the channels, the name
-- under which the caller itself had queued up ('' if it had not).
-- Returns {1, 0, '', '', holds left} when it was there; {0, ttl in ms, owner of what holds the key} when not: the
-- owner is the caller's own if its other holds remain.
local key, queue = KEYS[1], KEYS[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local kind = redis.call('TYPE', key).ok
if kind == 'string' then
	return {0, redis.call('PTTL', key), redis.call('GET', key), key}
elseif kind ~= 'zset' then
	return {0}
end
redis.call('ZREMRANGEBYSCORE', key, -now, now)
local waiter = ARGV[5]
local removed = redis.call('ZREM', key, ARGV[1] .. ':' .. ARGV[2] .. ':' .. ARGV[3])
if waiter ~= '' then
	redis.pcall('ZREM', queue, waiter)
	if ARGV[3] == '' then
		redis.call('ZREM', key, 'c:' .. waiter)
	end
end

-- The key lives as long as what is left in it.
local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
if not last[1] then
	last = nil
else
	local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
	redis.call('PEXPIRE', key, math.max(tonumber(last[2]), -tonumber(first[2])) - now)
	if tonumber(last[2]) < 0 then
		last = nil
	end
end
if removed == 1 and not last and redis.call('EXISTS', queue) == 1 then
	local called = redis.pcall('ZPOPMIN', queue, 8) -- some may be readers, who can all have it
	for i = 1, #called, 2 do
		redis.pcall('PUBLISH', ARGV[4] .. called[i], key)
	end
end
if removed == 1 then
	return {1, 0, '', '', redis.call('ZCOUNT', key, '(0', '+inf')}
elseif not last then
	return {0}
end
return {0, tonumber(last[2]) - now, string.match(last[1], '^[rw]:(.*):[^:]*$'), key}
