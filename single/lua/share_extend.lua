-- Lets one hold of a shared key live for at least ttl from now, never less than it had. Holds are as in share.lua.
-- KEYS: key. ARGV: 'r' or 'w', owner, hold id, ttl in ms, 1 to add the hold again if it has ended and nothing is in its
-- way. Returns {1} when it was there; {2} when it was added again; {0, ttl in ms, owner} when it is gone.
local mode, owner, id, ttl, repair = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5] == '1'
local key = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local kind = redis.call('TYPE', key).ok
if kind == 'string' then
	return {0, redis.call('PTTL', key), redis.call('GET', key), key}
elseif kind ~= 'none' and kind ~= 'zset' then
	return {0, redis.call('PTTL', key), '', key}
end
redis.call('ZREMRANGEBYSCORE', key, -now, now)

local member = mode .. ':' .. owner .. ':' .. id
local ends = redis.call('ZSCORE', key, member)
if not ends then
	local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
	local free = not last[1] or tonumber(last[2]) < 0
	local holder = not free and string.match(last[1], '^[rw]:(.*):[^:]*$') or ''
	local writer = not free and string.sub(last[1], 1, 1) == 'w'
	local compatible = free or mode == 'r' and not writer or mode == 'w' and writer and holder == owner
	if not repair or not compatible then
		return {0, free and 0 or tonumber(last[2]) - now, holder, key}
	end
end
redis.call('ZADD', key, math.max(now + ttl, tonumber(ends or 0)), member)
redis.call('PEXPIRE', key, math.max(ttl, redis.call('PTTL', key)))
return {ends and 1 or 2}
