-- Instead of removing them, has the keys that the owner holds, and no other, live for no longer than some ms from now. Nobody is
-- notified: who waits has been told when the key would be free, or is when it asks again.
-- KEYS: n keys and their n wait queues. ARGV: owner, ms, the name under which the caller itself had queued up (left out if it had
-- not). Returns 0 when not all keys were the owner's; 1 when they were.
local owner, keep, waiter = ARGV[1], tonumber(ARGV[2]), ARGV[3] or ''

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
	if held[i] ~= owner then
		result = 0
	else
		local left = redis.call('PTTL', KEYS[i])
		if left > keep or left == -1 then
			redis.call('PEXPIRE', KEYS[i], keep)
		end
	end
end
for i = 1, n do
	dequeue(KEYS[n + i], waiter)
end
return result
