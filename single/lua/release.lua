-- Removes the keys that the owner holds and no other, and notifies whoever has waited longest for one of them. Without an
-- owner it only takes a waiter out of the queues, and notifies the next one where it had been notified itself.
--
-- KEYS: n keys and their n wait queues. ARGV: owner, for how many ms a key is reserved for the waiter that is notified,
-- the name under which the caller itself had queued up (left out if it had not).
-- Returns 0 when not all keys were the owner's; 1 when they were; 3 when they were and somebody was notified.
local owner, waiter = ARGV[1], ARGV[3]
if not waiter and not KEYS[3] and owner ~= '' and redis.pcall('GET', KEYS[1]) == owner and redis.call('EXISTS', KEYS[2]) == 0 then
	redis.call('DEL', KEYS[1]) -- the usual case in as few steps as can be: one key, and nobody waits
	return 1
end

-- include kind.lua
-- include queue.lua

local n, held = #KEYS / 2, {}
for i = 1, n do -- before anything is removed
	local err
	held[i], err = holder(KEYS[i])
	if err and owner ~= '' then -- who only leaves does nothing to the key, whatever it is
		return err
	end
end
local result = 1
for i = 1, n do
	local key, queue = KEYS[i], KEYS[n + i]
	if owner ~= '' and held[i] == owner then
		local waited = redis.call('EXISTS', queue) == 1
		redis.call('DEL', key)
		if waited then
			dequeue(queue, waiter or '')
			if notify(key, queue, ARGV[2]) and result == 1 then
				result = 3
			end
		end
	else
		result = 0
		if dequeue(queue, waiter or '') and held[i] == false then
			notify(key, queue, ARGV[2])
		end
	end
end
return result
