-- Removes the keys that the owner holds and no other, and calls whoever has waited longest for one of them. Without an
-- owner it only takes a waiter out of the queues, and calls the next one where it had been called itself.
--
-- KEYS: n keys and their n arrival queues. ARGV: owner, for how many ms a key is reserved for the waiter that is called,
-- the name under which the caller itself had queued up (left out if it had not).
-- Returns 0 when not all keys were the owner's; 1 when they were; 3 when they were and somebody was called.
--
-- The waiter called leaves the queue, so one that has died is called once. Calls and reservations are hints: they may
-- fail, for want of a right or for a foreign key in the queue's place, and cost the waiter its next backoff.
local owner, waiter = ARGV[1], ARGV[3]
local deleted = not waiter and not KEYS[3] and owner ~= '' and redis.pcall('GET', KEYS[1]) == owner
if deleted then -- the usual case in as few steps as can be: one key, and nobody waits
	redis.call('DEL', KEYS[1])
	if redis.call('EXISTS', KEYS[2]) == 0 then
		return 1
	end
end

local result = 1
local function call(key, queue)
	redis.pcall('ZREMRANGEBYSCORE', queue, '-inf', 0)
	local next = redis.pcall('ZPOPMIN', queue)[1]
	if not next then
		return
	end
	local time = redis.call('TIME')
	local ends = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2]
	redis.pcall('ZADD', queue, -ends, '!' .. next)
	redis.pcall('PEXPIRE', queue, math.max(tonumber(ARGV[2]), redis.call('PTTL', queue)))
	redis.pcall('PUBLISH', 'redlock:free:' .. next, key)
	if result == 1 then
		result = 3
	end
end

if deleted then
	call(KEYS[1], KEYS[2])
	return result
end
local n = #KEYS / 2
for i = 1, n do
	local key, queue = KEYS[i], KEYS[n + i]
	local held = redis.pcall('GET', key)
	if owner ~= '' and held == owner then
		redis.call('DEL', key)
		if redis.call('EXISTS', queue) == 1 then
			if waiter then
				redis.pcall('ZREM', queue, waiter)
			end
			call(key, queue)
		end
	else
		result = 0
		if waiter then
			redis.pcall('ZREM', queue, waiter)
			if redis.pcall('ZREM', queue, '!' .. waiter) == 1 and not held then
				call(key, queue)
			end
		end
	end
end
return result
