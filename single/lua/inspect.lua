-- Reads who holds the first held key. Changes nothing.
-- KEYS: the keys. Returns {1, ttl in ms, owner, key, holds}, or {0} if all keys are free.
-- For a key with several holds, the owner is that of the longest hold, and holds counts all. One string with
-- fingerprints follows, with 12 digits for each hold; above 128 holds, only for the 128 that last longest. A hold has
-- the same fingerprint on every master.

-- include kind.lua
-- include hold.lua

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 1, #KEYS do
	local is, err = kind(KEYS[i])
	if err then
		return err
	elseif is == 'string' then
		local held, left = redis.call('GET', KEYS[i]), redis.call('PTTL', KEYS[i])
		local hold = lone(held)
		if hold then
			return {1, left, named(hold), KEYS[i], 1, string.sub(redis.sha1hex(hold), 1, 12)}
		end
		return {1, left, told(held), KEYS[i], 1}
	elseif is == 'holds' then
		local holds = redis.call('ZCOUNT', KEYS[i], '(' .. now, '+inf')
		if holds > 0 then
			local last = redis.call('ZREVRANGE', KEYS[i], 0, 127, 'WITHSCORES')
			local prints = {}
			for n = 1, math.min(holds, #last / 2) do
				prints[n] = string.sub(redis.sha1hex(last[2 * n - 1]), 1, 12)
			end
			return {1, tonumber(last[2]) - now, named(last[1]), KEYS[i], holds, table.concat(prints)}
		end
	end
end
return {0}
