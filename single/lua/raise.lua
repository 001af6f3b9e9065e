-- Raises the fencing counter of a key that the owner still holds to at least token.
-- KEYS: key, counter. ARGV: owner, token, the counter's retention in ms.
-- Returns {1, 0, '', '', counter}, or {0} when the key is not the owner's, or the counter is above token already: then
-- somebody may have been given that token.
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then
	return {0}
end
local token = tonumber(ARGV[2])
if tonumber(redis.call('GET', KEYS[2]) or 0) > token then
	return {0}
end
redis.call('SET', KEYS[2], string.format('%.0f', token), 'PX', ARGV[3])
return {1, 0, '', '', token}
