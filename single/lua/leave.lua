-- Removes a waiter and its claims (share.lua) from keys that it has not got. If the waiter may know that a key is
-- free or kept, the next waiter is told. The script changes nothing else, whatever the keys hold.
-- KEYS: n keys and their n wait queues. ARGV: the waiter, for how many ms a key is reserved for the next one. Returns
-- 0.

-- include kind.lua
-- include queue.lua
-- include hold.lua

local waiter, n, claimed = ARGV[1], #KEYS / 2, {}
for i = 1, n do
	local held, _, hold, _, now = holder(KEYS[i])
	claimed[i] = hold and now
	leave(KEYS[i], KEYS[n + i], waiter, held, ARGV[2])
end
for i = 1, n do -- last, because a missing right ends the script
	if claimed[i] then
		drop(KEYS[i], 'c:' .. waiter, claimed[i])
	end
end
return 0
