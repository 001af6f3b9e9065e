-- Releases many locks of one key each. For each key it does the same as release.lua, or as share_release.lua for a
-- hold that is a string and has no waiters, with a few commands for all.
--
-- KEYS: n keys and their n wait queues. ARGV: for how many ms a key is reserved for the notified waiter, and n owners.
-- Returns 1 if every key was its owner's and no key has waiters. Otherwise it returns for each key release.lua's
-- result, or -1 for a key that needs a separate release: that release would end in an error, or the key is a hold with
-- waiters. A hold in a sorted set is not found.
local n = #KEYS / 2
local held = redis.call('MGET', unpack(KEYS, 1, n))
local all = true
for i = 1, n do
	if held[i] ~= ARGV[1 + i] then
		all = false
		break
	end
end
local waited = redis.call('EXISTS', unpack(KEYS, n + 1)) > 0 -- the last command that may fail before a key is deleted
if all and not waited and redis.call('DEL', unpack(KEYS, 1, n)) == n then
	return 1 -- the usual case, in few steps; DEL counts less if a key is listed twice
end

-- include kind.lua
-- include queue.lua

local results, mine, gone = {}, {}, {}
for i = 1, n do
	local key = KEYS[i]
	results[i] = 0
	if waited and held[i] == ARGV[1 + i] and lone(held[i]) and redis.call('EXISTS', KEYS[n + i]) == 1 then
		results[i] = -1
	elseif held[i] == ARGV[1 + i] and not gone[key] then -- a key that is listed twice is released once
		results[i], gone[key] = 1, true
		mine[#mine + 1] = key
	elseif not held[i] and not kind(key) then -- MGET does not distinguish another type from a free key
		results[i] = -1
	end
end
if mine[1] then
	redis.call('DEL', unpack(mine))
end
if waited then
	for i = 1, n do
		if results[i] == 1 and notify(KEYS[i], KEYS[n + i], ARGV[1]) then
			results[i] = 3
		end
	end
end
return results
