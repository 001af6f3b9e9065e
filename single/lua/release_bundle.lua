-- Releases many locks of one key each: does for every one of them what release.lua does, or share_release.lua to a hold that is a string and for
-- which nobody waits, with a few commands for all.
--
-- KEYS: n keys and their n wait queues. ARGV: for how many ms a key is reserved for the waiter that is notified, and n
-- owners.
-- Returns 1 when every key was its owner's and nobody waits for any; otherwise what release.lua returns, for each, or -1
-- for a key that has to be released alone: because that would end in an error, or is a hold for which somebody waits. One that is
-- in a sorted set is not found.
local n = #KEYS / 2
local held = redis.call('MGET', unpack(KEYS, 1, n))
local all = true
for i = 1, n do
	if held[i] ~= ARGV[1 + i] then
		all = false
		break
	end
end
local waited = redis.call('EXISTS', unpack(KEYS, n + 1)) > 0 -- the last that may fail before something is deleted
if all and not waited and redis.call('DEL', unpack(KEYS, 1, n)) == n then
	return 1 -- the usual case in as few steps as can be; DEL counts less where a key is there twice
end

-- include kind.lua
-- include queue.lua

local results, mine, gone = {}, {}, {}
for i = 1, n do
	local key = KEYS[i]
	results[i] = 0
	if waited and held[i] == ARGV[1 + i] and lone(held[i]) and redis.call('EXISTS', KEYS[n + i]) == 1 then
		results[i] = -1
	elseif held[i] == ARGV[1 + i] and not gone[key] then -- asked twice, it is released once
		results[i], gone[key] = 1, true
		mine[#mine + 1] = key
	elseif not held[i] and not kind(key) then -- MGET tells no other type from a key that is free
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
