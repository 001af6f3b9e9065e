-- Removes the keys that the owner holds and no other, and calls whoever has waited longest for one of them. Without an
-- owner it only takes a waiter out of the queues, and calls the next one where it had been called itself.
--
-- KEYS: n keys and their n arrival queues. ARGV: owner, for how many ms a key is reserved for the waiter that is called,
-- the name under which the caller itself had queued up (left out if it had not).
-- Returns 0 when not all keys were the owner's; 1 when they were; 3 when they were and somebody was called.
local owner, waiter = ARGV[1], ARGV[3]
if not waiter and not KEYS[3] and owner ~= '' and redis.pcall('GET', KEYS[1]) == owner then
	local waited = redis.call('EXISTS', KEYS[2]) == 1 -- the usual case in as few steps as can be: one key, and nobody waits
	redis.call('DEL', KEYS[1])
	if waited and call(KEYS[1], KEYS[2], ARGV[2]) then
		return 3
	end
	return 1
end

local result = 1
local n = #KEYS / 2
for i = 1, n do
	local key, queue = KEYS[i], KEYS[n + i]
	local held = redis.pcall('GET', key)
	if owner ~= '' and held == owner then
		local waited = redis.call('EXISTS', queue) == 1
		redis.call('DEL', key)
		if waited then
			if waiter then
				redis.pcall('ZREM', queue, waiter)
			end
			if call(key, queue, ARGV[2]) and result == 1 then
				result = 3
			end
		end
	else
		result = 0
		if waiter then
			redis.pcall('ZREM', queue, waiter)
			if redis.pcall('ZREM', queue, '!' .. waiter) == 1 and not held then
				call(key, queue, ARGV[2])
			end
		end
	end
end
return result
