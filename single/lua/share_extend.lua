-- Makes one hold of a shared key live for at least ttl from now; it never shortens. For the form of holds see
-- share.lua.
-- KEYS: key. ARGV: the hold as a string, ttl in ms, 1 to add the hold again if it has ended and no other hold is in
-- its way.
-- Returns {1} if the hold was there, or 1 if it is alone; {2} if it was added again; {0, ttl in ms of the hold in the
-- way, its owner, key} if it is missing. The ttl is 0 and the owner '' if no hold is in its way, even if other holds
-- share the key.
local key, ttl, repair = KEYS[1], tonumber(ARGV[2]), ARGV[3] == '1'

-- The usual case, in few steps: there is this hold, and no other member.
local held, left = redis.pcall('GET', key), nil
if type(held) == 'string' then
	left = redis.call('PTTL', key) -- before TIME, as in share.lua
end
if held == ARGV[1] then
	if left < ttl and left ~= -1 then
		redis.call('PEXPIRE', key, ttl)
	end
	return 1
end

-- include kind.lua
-- include hold.lua

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local member = lone(ARGV[1])
local mode, owner = string.sub(member, 1, 1), ownerOf(member)
local is, err = kind(key)
if err or type(held) == 'table' and is ~= 'holds' then
	return err or held
elseif left then
	local there = lone(held)
	if not there then
		return {0, left, told(held), key}
	elseif not beside(mode, owner, there) or left == -1 and repair then
		return {0, left == -1 and -1 or left + 1, named(there), key}
	elseif not repair then
		return {0, 0, '', key}
	end
	err = spread(key, there, left, now)
	if err then
		return err
	end
elseif is == 'none' then
	if not repair then
		return {0, 0, '', key}
	end
	redis.call('SET', key, ARGV[1], 'PX', ttl)
	return {2}
end

local mine = tonumber(redis.call('ZSCORE', key, member) or 0) > now
local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
local longest = tonumber(last[2] or 0) - now
if not mine and longest > 0 and not beside(mode, owner, last[1]) then
	return {0, longest, named(last[1]), key}
end
if not mine then
	if not repair then
		return {0, 0, '', key}
	end
	redis.call('ZADD', key, 'XX', 'GT', now + ttl + 1, member) -- a full master refuses this before anything is written
end
-- After PEXPIRE a full master does not refuse the ZADD of an existing hold.
local life = math.max(ttl, longest, redis.call('PTTL', key))
redis.call('PEXPIRE', key, life)
if redis.call('ZADD', key, 'GT', LEAST, HOLDS, now + ttl + 1, member) == 2 then -- as in share.lua
	redis.call('PEXPIRE', key, life)
end
redis.pcall('ZREMRANGEBYSCORE', key, -now, now)
return {mine and 1 or 2}
