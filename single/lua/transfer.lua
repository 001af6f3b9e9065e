-- Has a key go over from one owner to another, if it is still the first one's, and gives the new one a fencing token of its own.
-- KEYS: key, counter. ARGV: the owner it is to have, ttl in ms, the proposed token, the counter's retention in ms, the owner that
-- it has.
-- Returns {1, 0, '', '', token}; {0, ttl in ms, owner, key, counter} when the key is another's; {0} when it is free.
--
-- The key lives for ttl from now. An owner that finds its own value is a repeated request, whose first reply was lost: it is granted, with
-- another token, and the key lives at least ttl from now. The counter goes first: where anything is refused to this user, the key
-- has not changed hands. It begins with PEXPIRE, behind which a full master refuses nothing.
local owner, ttl, from = ARGV[1], tonumber(ARGV[2]), ARGV[5]

-- include kind.lua
-- include counter.lua

local held, err = holder(KEYS[1])
if err then
	return err
elseif not held then
	return {0}
end
local counter
counter, err = reached(KEYS[2])
if err then
	return err
end
local left = redis.call('PTTL', KEYS[1])
if held ~= from and held ~= owner then
	return {0, left, told(held), KEYS[1], counter}
end
local token = math.max(counter + 1, tonumber(ARGV[3]))
if token > 9007199254740991 then
	return {err = 'ERR there is no greater fencing token than ' .. string.format('%.0f', counter)}
end
raise(KEYS[2], counter, token, ARGV[4])
if held == from then
	redis.call('SET', KEYS[1], owner, 'XX', 'PX', ttl)
elseif left < ttl and left ~= -1 then
	redis.call('PEXPIRE', KEYS[1], ttl)
end
return {1, 0, '', '', token}
