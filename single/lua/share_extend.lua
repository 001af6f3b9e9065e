-- Lets one hold of a shared key live for at least ttl from now, never less than it had. Holds are as in share.lua.
-- KEYS: key. ARGV: 'r' or 'w', owner, hold id, ttl in ms, 1 to add the hold again if it has ended and nothing is in its
-- way. Returns {1} when it was there, or 1 where nothing else was; {2} when it was added again; {0, ttl in ms of what is in
-- the way, its owner, key} when it is gone: 0 and '' when nothing is, be it that others hold the key beside it.
local mode, owner, id, ttl, repair = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5] == '1'
local key, member = KEYS[1], mode .. ':' .. owner .. ':' .. id
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- The usual case in as few steps as can be: behind the mark there is this hold, which has not ended, and nothing else. What is
-- written is what is written below; that has nothing to remove.
local all = redis.pcall('ZRANGE', key, 0, 2, 'WITHSCORES')
if all[1] == 'redlock:holds' and tonumber(all[2]) == -9007199254740991 and all[3] == member and not all[5]
	and tonumber(all[4]) > now then
	redis.call('PEXPIRE', key, math.max(ttl, tonumber(all[4]) - now, redis.call('PTTL', key)))
	redis.call('ZADD', key, 'XX', 'GT', now + ttl + 1, member)
	return 1
end

-- include kind.lua

local is, err = kind(key)
if err then
	return err
elseif is == 'string' then
	return {0, redis.call('PTTL', key), told(redis.call('GET', key)), key}
end

local mine, longest = false, 0
if is == 'holds' then
	mine = tonumber(redis.call('ZSCORE', key, member) or 0) > now
	local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
	longest = tonumber(last[2]) - now
	if not mine and longest > 0 then
		local writer, held = string.sub(last[1], 1, 1) == 'w', string.match(last[1], '^[rw]:(.*):[^:]*$')
		local compatible = mode == 'r' and not writer or mode == 'w' and writer and held == owner
		if not compatible then
			return {0, longest, held, key}
		end
	end
end
if not mine then
	if not repair then
		return {0, 0, '', key}
	end
	redis.call('ZADD', key, 'XX', 'GT', now + ttl + 1, member) -- as in share.lua
end
-- Behind PEXPIRE a full master does not refuse the ZADD of a hold that is there.
local there = redis.call('PEXPIRE', key, math.max(ttl, longest, redis.call('PTTL', key))) -- as in share.lua
redis.call('ZADD', key, 'GT', LEAST, HOLDS, now + ttl + 1, member)
if there == 0 then
	redis.call('PEXPIRE', key, ttl)
else
	redis.pcall('ZREMRANGEBYSCORE', key, -now, now)
end
return {mine and 1 or 2}
