-- Instead of removing them, has the keys that the owner holds, and no other, live for no longer than some ms from now, as nobody's: their
-- owner is replaced, so that nothing which comes late prolongs or removes them. Whoever has waited longest for one is told that it is
-- kept, and remains in the queue: it looks for how long, and tries when that is over. Of a key that is not the owner's the caller only leaves the
-- queue, as release.lua has it.
-- KEYS: n keys and their n wait queues. ARGV: owner, ms, what replaces the owner, for how many ms a key that turns out to be free is reserved for the
-- waiter that is notified, the name under which the caller itself had queued up (left out if it had not). Returns 0 when not all keys were the
-- owner's; 1 when they were, or are kept by it already: then for no longer than that.
local owner, keep, kept, reserve, waiter = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5] or ''

-- include kind.lua
-- include queue.lua

local n, held, result = #KEYS / 2, {}, 1
for i = 1, n do -- before anything is changed
	local err
	held[i], err = holder(KEYS[i])
	if err then
		return err
	end
end
for i = 1, n do
	if held[i] == owner or held[i] == kept then
		local left = redis.call('PTTL', KEYS[i])
		redis.call('PEXPIRE', KEYS[i], left == -1 and keep or math.max(1, math.min(left, keep))) -- first: a full master does not refuse it
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
		leave(KEYS[i], KEYS[n + i], waiter, held[i], reserve)
	end
end
return result
