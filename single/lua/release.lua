-- Removes the keys that the owner holds and no other, and notifies whoever has waited longest for one of them.
--
-- KEYS: n keys and their n wait queues. ARGV: owner, for how many ms a key is reserved for the waiter that is notified,
-- the name under which the caller itself had queued up (left out if it had not).
-- Returns 0 when not all keys were the owner's; 1 when they were; 3 when they were and somebody was notified.
local owner, waiter, n = ARGV[1], ARGV[3], #KEYS / 2
-- One that waited for a single key mostly leaves others waiting. That it waited for several says nothing of each.
local mine = owner ~= '' and (n > 1 or not waiter) -- '' is what holder says of other kinds
for i = 1, n do
	mine = mine and redis.pcall('GET', KEYS[i]) == owner
end
-- The usual case in as few steps as can be: all keys are there, and nobody waits. A user with selectors may be allowed each of the keys and not all.
if mine and redis.pcall('EXISTS', unpack(KEYS, n + 1)) == 0 and type(redis.pcall('DEL', unpack(KEYS, 1, n))) == 'number' then
	return 1
end

-- include kind.lua
-- include queue.lua

local held = {}
for i = 1, n do -- before anything is removed
	local err
	held[i], err = holder(KEYS[i])
	if err then
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
		leave(key, queue, waiter or '', held[i], ARGV[2])
	end
end
return result
