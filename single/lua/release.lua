-- Removes the keys that the owner holds, and no other keys. For each it notifies the waiter that has waited longest.
--
-- KEYS: n keys and their n wait queues. ARGV: owner, for how many ms a key is reserved for the notified waiter, the
-- caller's own name in the queues (omitted if it was not queued).
-- Returns 0 if not all keys were the owner's; 1 if they were; 3 if they were and a waiter was notified.
local owner, waiter, n = ARGV[1], ARGV[3], #KEYS / 2
-- A caller that waited for a single key mostly leaves other waiters. For several keys nothing is known about each
-- queue.
local mine = owner ~= '' and (n > 1 or not waiter) -- holder returns '' for other kinds
for i = 1, n do
	mine = mine and redis.pcall('GET', KEYS[i]) == owner
end
-- The usual case, in few steps: all keys are the owner's, and no queue exists. A user with selectors may be allowed
-- DEL for each key but not for all together.
if mine and redis.pcall('EXISTS', unpack(KEYS, n + 1)) == 0 and type(redis.pcall('DEL', unpack(KEYS, 1, n))) == 'number' then
	return 1
end

-- include kind.lua
-- include queue.lua
-- include hold.lua

local held, sets = {}, {}
for i = 1, n do -- before any removal
	local err, _
	held[i], err, _, _, sets[i] = holder(KEYS[i])
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
		depart(key, queue, waiter or '', held[i], sets[i], ARGV[2])
	end
end
return result
