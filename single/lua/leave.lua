-- Removes a waiter from the queues of keys that it has not got. If the waiter may know that a key is free or kept, the
-- next waiter is told. Removes its claims (share.lua), too, unless it goes on waiting for other keys together with
-- these. The script changes nothing else, whatever the keys hold.
-- KEYS: n keys and their n wait queues. ARGV: the waiter, for how many ms a key is reserved for the next one, 1 if it
-- goes on waiting. Returns 0.

-- include kind.lua
-- include queue.lua
-- include hold.lua

local waiter, n = ARGV[1], #KEYS / 2
for i = 1, n do
	local held, _, _, _, now = holder(KEYS[i])
	depart(KEYS[i], KEYS[n + i], waiter, held, ARGV[3] ~= '1' and now, ARGV[2])
end
return 0
