-- Raises the fencing counter of a key that the owner still holds to token.
-- KEYS: key, counter. ARGV: owner, token, the counter's retention in ms.
-- Returns {1, 0, '', '', token}; {0, 0, '', '', counter} when the counter is at token or above, because somebody may have
-- been given that one; {0} when the key is not the owner's.
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then
	return {0}
end
local token, counter = tonumber(ARGV[2]), tonumber(redis.call('ZSCORE', KEYS[2], 'token') or 0)
if counter >= token then
	return {0, 0, '', '', counter}
end
redis.call('ZADD', KEYS[2], ARGV[2], 'token')
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return {1, 0, '', '', token}
