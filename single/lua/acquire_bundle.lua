-- Takes many locks of several keys each: does for every one of them what acquire.lua does where nothing is there and nobody waits, with a few
-- commands for all.
--
-- KEYS: the keys, n for each lock, and behind all of them their wait queues. ARGV: n, ttl in ms, and for each lock its owner.
-- Returns for each 1 when it was granted, or -1 when it has to be asked for alone, because something is there: then nothing was done for it.
--
-- The first SET is refused, or none, as in acquire.lua: so whoever gets an error has got nothing.
local keys, call, n, ttl, all = KEYS, redis.call, tonumber(ARGV[1]), ARGV[2], #KEYS / 2
local free = call('EXISTS', unpack(keys)) == 0 -- the usual case
local results, taken = {}, {} -- two of them may want the same key
for i = 1, #ARGV - 2 do
	local first, last = n * i - n + 1, n * i
	local mine = free or
		call('EXISTS', unpack(keys, first, last)) == 0 and call('EXISTS', unpack(keys, all + first, all + last)) == 0
	for k = first, last do
		mine = mine and not taken[keys[k]]
	end
	if mine then
		local owner = ARGV[2 + i]
		for k = first, last do
			local key = keys[k]
			taken[key] = true
			call('SET', key, owner, 'PX', ttl)
		end
		results[i] = 1
	else
		results[i] = -1
	end
end
return results
