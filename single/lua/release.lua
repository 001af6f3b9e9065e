-- Removes the keys that the owner holds and no other, and calls whoever has waited longest for one of them. Without an
-- owner it only takes a waiter out of the queues, and calls the next one where it had been called itself.
--
-- KEYS: n keys and their n arrival queues. ARGV: n, owner, the prefix of the channels, for how many ms a key is reserved
-- for the waiter that is called, the name under which the caller itself had queued up ('' if it had not).
-- Returns 0 when not all keys were the owner's; 1 when they were; 3 when they were and somebody was called.
--
-- The waiter called leaves the queue, so one that has died is called once. Calls and reservations are hints: they may
-- fail, for want of a right or for a foreign key in the queue's place, and cost the waiter its next backoff.
local n, owner, channel, reserve = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local waiter = ARGV[5]
local result = 1

local function call(key, queue)
	redis.pcall('ZREMRANGEBYSCORE', queue, '-inf', 0)
	local next = redis.pcall('ZPOPMIN', queue)[1]
	if not next then
		return
	end
	local time = redis.call('TIME')
	local ends = time[1] * 1000 + math.floor(time[2] / 1000) + reserve
	redis.pcall('ZADD', queue, -ends, '!' .. next)
	redis.pcall('PEXPIRE', queue, math.max(reserve, redis.call('PTTL', queue)))
	redis.pcall('PUBLISH', channel .. next, key)
	if result == 1 then
		result = 3
	end
end

for i = 1, n do
	local key, queue = KEYS[i], KEYS[n + i]
	local held = redis.pcall('GET', key)
	if owner ~= '' and held == owner then
		redis.call('DEL', key)
		if redis.call('EXISTS', queue) == 1 then
			if waiter ~= '' then
				redis.pcall('ZREM', queue, waiter)
			end
			call(key, queue)
		end
	else
		result = 0
		if waiter ~= '' then
			redis.pcall('ZREM', queue, waiter)
			if redis.pcall('ZREM', queue, '!' .. waiter) == 1 and not held then
				call(key, queue)
			end
		end
	end
end
return result
