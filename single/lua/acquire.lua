-- Takes every key for one owner, or none.
--
-- KEYS: n keys, their n arrival queues and, for a fenced lock, its counter.
-- ARGV: n, owner, ttl in ms; the waiter's name ('' when a refused caller does not wait), for how many ms it has waited,
--       for how many ms its place is kept, 1 to leave a key to the waiter it is reserved for; the proposed token (0: not
--       fenced), the counter's retention in ms.
-- Returns the token, or 1 when not fenced, when granted; {0, ttl in ms of what is in the way, its owner, its key, the counter}
-- when refused.
--
-- An owner that finds its own value is a repeated request, whose first reply was lost, or one that took the key with SET NX
-- and found the counter ahead of its proposal. It is granted, and the key lives at least ttl from now. A granted request's
-- token is above what the counter was, also when it is repeated: so no two acquisitions can have it.
--
-- The counter is a sorted set with one member, because ZADD GT can raise it without a script. A key of another type is
-- another kind of lock, and in the way.
local n, owner, ttl = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local waiter, waited, keep = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local polite, proposal = ARGV[7] == '1', tonumber(ARGV[8])
local fenced, counter = proposal > 0, 0
if fenced then -- checked before anything is written: whoever gets an error has got nothing else
	counter = redis.pcall('ZSCORE', KEYS[2 * n + 1], 'token')
	counter = type(counter) ~= 'table' and tonumber(counter or 0)
	if not counter or math.max(counter + 1, proposal) > 9007199254740991 then
		return redis.error_reply('ERR ' .. KEYS[2 * n + 1] .. ' holds no fencing counter, or there is no greater one')
	end
end

local function now()
	local time = redis.call('TIME')
	return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- A queue is a sorted set: waiters by the time at which they began to wait, and at most one reservation, '!' and the
-- name of the waiter whose turn it is, with a negative score: minus the time at which it ends. The queue decides who
-- should try, never who holds: whoever does not look at it just takes the key. Nothing depends on its commands to succeed.
local function reserved(queue)
	local first = redis.pcall('ZRANGE', queue, 0, 0, 'WITHSCORES')
	if first[1] and tonumber(first[2]) < 0 and first[1] ~= '!' .. waiter then
		return -tonumber(first[2]) - now()
	end
	return 0
end

local function refuse(left, holder, i)
	if waiter ~= '' then
		local queue = KEYS[n + i]
		redis.pcall('ZADD', queue, now() - waited, waiter)
		redis.pcall('ZREMRANGEBYRANK', queue, 256, -1)
		redis.pcall('PEXPIRE', queue, keep)
	end
	return {0, left, holder, KEYS[i], counter}
end

for i = 1, n do
	local held = redis.pcall('GET', KEYS[i])
	if type(held) == 'table' then
		held = ''
	end
	if held ~= owner then
		if held then
			return refuse(redis.call('PTTL', KEYS[i]), held, i)
		end
		if polite then
			local wait = reserved(KEYS[n + i])
			if wait > 0 then
				return refuse(wait, '', i)
			end
		end
	end
end

if fenced then
	counter = math.max(counter + 1, proposal)
	redis.call('ZADD', KEYS[2 * n + 1], string.format('%.0f', counter), 'token')
	redis.call('PEXPIRE', KEYS[2 * n + 1], ARGV[9])
end
for i = 1, n do
	local left = redis.call('PTTL', KEYS[i])
	if left < ttl and left ~= -1 then
		redis.call('SET', KEYS[i], owner, 'PX', ttl)
	end
	if waiter ~= '' then
		redis.pcall('ZREM', KEYS[n + i], waiter, '!' .. waiter)
	end
end
return fenced and counter or 1
