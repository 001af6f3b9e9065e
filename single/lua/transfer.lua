-- Transfers a key from one owner to another, if the first one still has it, and gives the new owner a new fencing
-- token.
-- KEYS: key, counter. ARGV: the new owner, ttl in ms, the proposed token, the counter's retention in ms, the old
-- owner.
-- Returns {1, 0, '', '', token}; {0, ttl in ms, owner, key, counter} if the key is another owner's; {0} if it is free.
--
-- The key lives for ttl from now. A new owner that finds its own value has repeated a request with a lost reply. It
-- is granted, with another token, and the key lives at least ttl from now. The counter is raised first: if any
-- command is refused to this user, the key keeps its owner. Raising begins with PEXPIRE, after which a full master
-- refuses nothing.
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
