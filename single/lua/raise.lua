-- Raises the fencing counter of a key that the owner still holds to token.
-- KEYS: key, counter. ARGV: owner, token, the counter's retention in ms, the number of spare tokens behind it (0 if
-- missing).
-- Returns {1, 0, '', '', token}; {0, 0, '', '', counter} if the counter is at token or above, because another owner
-- may have that token; {0} if the key is not the owner's.

-- include kind.lua
-- include counter.lua

local held, err = holder(KEYS[1])
if err then
	return err
elseif held ~= ARGV[1] then
	return {0}
end
local token, counter = tonumber(ARGV[2]), nil
counter, err = reached(KEYS[2])
if err then
	return err
elseif counter >= token then
	return {0, 0, '', '', counter}
end
raise(KEYS[2], counter, token + tonumber(ARGV[4] or 0), ARGV[3])
return {1, 0, '', '', token}
