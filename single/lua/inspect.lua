-- Reads who holds the first of the keys that is held. Changes nothing.
-- KEYS: the keys. Returns {1, ttl in ms, owner, key, holds}, or {0} when all are free.
-- Of a key that several hold, the one that holds it longest is named, and holds counts them all.

-- include kind.lua

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 1, #KEYS do
	local is, err = kind(KEYS[i])
	if err then
		return err
	elseif is == 'string' then
		return {1, redis.call('PTTL', KEYS[i]), told(redis.call('GET', KEYS[i])), KEYS[i], 1}
	elseif is == 'holds' then
		local holds = redis.call('ZCOUNT', KEYS[i], '(' .. now, '+inf')
		if holds > 0 then
			local last = redis.call('ZREVRANGE', KEYS[i], 0, 0, 'WITHSCORES')
			local owner = string.match(last[1], '^[rw]:(.*):[^:]*$') or ''
			return {1, tonumber(last[2]) - now, owner, KEYS[i], holds}
		end
	end
end
return {0}
