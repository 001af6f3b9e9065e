-- Releases many locks of several keys each. For each lock it does the same as release.lua when all keys are its
-- owner's and no key has waiters, with a few commands for all.
--
-- KEYS: the keys of all locks, the same number for each lock, then their wait queues. ARGV: 0 (other bundles have a
-- time there), and each lock's owner.
-- Returns for each lock 1 if it was released, or -1 if it needs a separate release: then nothing was done for it.
local keys, call, locks, all = KEYS, redis.call, #ARGV - 1, #KEYS / 2
local n = all / locks
local held = call('MGET', unpack(keys, 1, all)) -- does not distinguish another type from a free key
local waited = call('EXISTS', unpack(keys, all + 1)) > 0
local results, mine, gone = {}, {}, {}
for i = 1, locks do
	local first, last, owner, found = n * i - n + 1, n * i, ARGV[1 + i], true
	for k = first, last do
		found = found and held[k] == owner and not gone[keys[k]]
	end
	if found and not (waited and call('EXISTS', unpack(keys, all + first, all + last)) > 0) then
		for k = first, last do
			local key = keys[k]
			mine[#mine + 1], gone[key] = key, true
		end
		results[i] = 1
	else
		results[i] = -1
	end
end
if mine[1] then
	call('DEL', unpack(mine))
end
return results
