-- Takes many locks of several keys each. For each lock it does the same as acquire.lua when none of its keys and
-- queues exists, with a few commands for all.
--
-- KEYS: the keys of all locks, the same number for each lock, then their wait queues. ARGV: ttl in ms, and each lock's
-- owner.
-- Returns for each lock 1 if it was granted, or -1 if it needs a separate request, because a key or queue exists.
-- Nothing was done for a lock with -1. After an error nothing was done for any lock.
local keys, call, ttl, locks, all = KEYS, redis.call, ARGV[1], #ARGV - 1, #KEYS / 2
local n = all / locks
local free = call('EXISTS', unpack(keys)) == 0 -- the usual case
local results, taken = {}, {} -- two locks may want the same key
for i = 1, locks do
	local first, last = n * i - n + 1, n * i
	local mine = free or
		call('EXISTS', unpack(keys, first, last)) == 0 and call('EXISTS', unpack(keys, all + first, all + last)) == 0
	for k = first, last do
		mine = mine and not taken[keys[k]]
	end
	if mine then
		local owner = ARGV[1 + i]
		for k = first, last do
			local key = keys[k]
			local reply = redis.pcall('SET', key, owner, 'PX', ttl)
			if reply.err then -- not the first SET: a user with selectors may SET only some of the keys, see acquire.lua
				for set in pairs(taken) do
					call('DEL', set)
				end
				return reply
			end
			taken[key] = true
		end
		results[i] = 1
	else
		results[i] = -1
	end
end
return results
