-- Lets every key that the owner holds live for at least ttl from now; never less than it had, because a late or
-- smaller request must not take away what the holder counts on.
--
-- KEYS: n keys and, for a fenced lock, its counter.
-- ARGV: n, owner, ttl in ms, 1 to set keys again that are gone and free, the lock's token (0: not fenced), the
--       counter's retention in ms.
-- Returns {1} when all keys were there; {2} when some were gone and free and have been set again; {0, ttl in ms of
-- what is in the way, its owner, its key} when a key is gone or somebody else's: then nothing was changed.
--
-- A fenced lock's counter is raised to its token, so that a master that lost it, or never got so far, will not give
-- out a smaller one.
local n, owner, ttl = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local repair, token = ARGV[4] == '1', tonumber(ARGV[5])
local gone = false
for i = 1, n do
	local held = redis.pcall('GET', KEYS[i])
	if type(held) == 'table' then
		held = ''
	end
	if not held then
		if not repair then
			return {0, 0, '', KEYS[i]}
		end
		gone = true
	elseif held ~= owner then
		return {0, redis.call('PTTL', KEYS[i]), held, KEYS[i]}
	end
end
if token > 0 then -- first of all: whoever gets an error has changed nothing
	redis.call('ZADD', KEYS[n + 1], 'GT', ARGV[5], 'token')
	redis.call('PEXPIRE', KEYS[n + 1], ARGV[6])
end
for i = 1, n do
	local left = redis.call('PTTL', KEYS[i])
	if left < ttl and left ~= -1 then
		redis.call('SET', KEYS[i], owner, 'PX', ttl)
	end
end
return {gone and 2 or 1}
