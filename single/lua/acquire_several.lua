-- Takes many locks of several keys each: does for every one of them what acquire.lua does where nothing is there and nobody waits, with a few
-- commands for all.
--
-- KEYS: the keys, as many for each lock, and behind all of them their wait queues. ARGV: ttl in ms, and for each lock its owner.
-- Returns for each 1 when it was granted, or -1 when it has to be asked for alone, because something is there: then nothing was done for it.
-- With an error nothing was done for any.
local keys, call, ttl, locks, all = KEYS, redis.call, ARGV[1], #ARGV - 1, #KEYS / 2
local n = all / locks
local free = call('EXISTS', unpack(keys)) == 0 -- the usual case
local results, taken = {}, {} -- two of them may want the same key
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
			if reply.err then -- if not of the first one, then of a user with selectors, who may SET some of the keys only: see acquire.lua
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
