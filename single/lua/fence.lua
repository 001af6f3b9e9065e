-- Takes one free key for a fenced lock, with as few commands as can be. When the key is not free, acquire.lua finds out
-- the rest.
--
-- KEYS: key, counter. ARGV: owner, ttl in ms, the proposed token, the counter's retention in ms.
-- Returns the token, or 0 when the key is not free.
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
	return 0
end
local token = tonumber(ARGV[3])
local was = redis.pcall('SET', KEYS[2], ARGV[3], 'PX', ARGV[4], 'GET')
if not was then
	return token
end
local last = type(was) == 'string' and tonumber(was)
if last and last < token then -- the usual case: the wall clock has moved on
	return token
elseif last and last < 9007199254740991 then
	redis.call('SET', KEYS[2], string.format('%.0f', last + 1), 'PX', ARGV[4])
	return last + 1
end
redis.call('DEL', KEYS[1]) -- whoever gets an error has got nothing else
if type(was) == 'string' then
	redis.call('SET', KEYS[2], was, 'PX', ARGV[4])
end
return redis.error_reply('ERR ' .. KEYS[2] .. ' holds no fencing counter, or there is no greater one')
