-- Instead of removing them, has the keys that the owner holds, and no other, live for no longer than some ms from now, as nobody's: their
-- owner is replaced, so that nothing which comes late prolongs or removes them. Whoever has waited longest for one is told that it is
-- kept, and remains in the queue: it looks for how long, and tries when that is over.
-- KEYS: n keys and their n wait queues. ARGV: owner, ms, what replaces the owner, the name under which the caller itself had queued up
-- (left out if it had not). Returns 0 when not all keys were the owner's; 1 when they were, or are kept by it already: then for no longer than that.
local owner, keep, kept, waiter = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4] or ''

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
	dequeue(KEYS[n + i], waiter)
	if held[i] == owner and marked(KEYS[n + i], QUEUE) then
		local next = redis.pcall('ZRANGE', KEYS[n + i], 1, 2)
		local first = next[1] and string.sub(next[1], 1, 1) == '!' and next[2] or next[1] -- behind a reservation, if there is one
		if first then
			redis.pcall('PUBLISH', 'redlock:free:' .. first, 'redlock:kept:' .. KEYS[i])
		end
	end
end
return result
