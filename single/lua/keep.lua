-- Keeps the keys that the owner holds for some ms from now at most, instead of removing them. It replaces their
-- owner, so that no late request prolongs or removes them. The waiter that has waited longest for a key receives a
-- message that the key is kept. It remains in the queue, looks for how long the key is kept, and tries when that time
-- is over. From the queue of another owner's key the caller is only removed, as in release.lua.
-- KEYS: n keys and their n wait queues. ARGV: owner, ms, the new owner, for how many ms a key that proves to be free
-- is reserved for the notified waiter, the caller's own name in the queues (omitted if it was not queued).
-- Returns 0 if not all keys were the owner's; 1 if they were, or if an earlier request of the owner keeps them: then
-- they are kept for these ms at most.
local owner, keep, kept, reserve, waiter = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5] or ''

-- include kind.lua
-- include queue.lua
-- include hold.lua

local n, held, sets, result = #KEYS / 2, {}, {}, 1
for i = 1, n do -- before any change
	local err, _
	held[i], err, _, _, sets[i] = holder(KEYS[i])
	if err then
		return err
	end
end
for i = 1, n do
	if held[i] == owner or held[i] == kept then
		local left = redis.call('PTTL', KEYS[i])
		-- It comes first: a full master does not refuse it.
		redis.call('PEXPIRE', KEYS[i], left == -1 and keep or math.max(1, math.min(left, keep)))
		if held[i] == owner then
			redis.call('SET', KEYS[i], kept, 'XX', 'KEEPTTL')
		end
	elseif held[i] ~= kept then
		result = 0
	end
end
for i = 1, n do
	if held[i] == owner then
		dequeue(KEYS[n + i], waiter)
		tell(KEYS[i], KEYS[n + i])
	else
		depart(KEYS[i], KEYS[n + i], waiter, held[i], sets[i], reserve)
	end
end
return result
