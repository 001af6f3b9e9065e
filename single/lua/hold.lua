-- Holds of a shared key. A hold is 'mode:owner:id', the mode 'r' of a reader or 'w' of a writer. Those of both modes never stand together,
-- and all writers' holds are one owner's.
local function ownerOf(hold)
	return string.match(hold, '^[rw]:(.*):[^:]*$')
end

-- The owner as a reply may tell it: a string that looks like a hold can be somebody's data, of any size, too.
local function named(hold)
	return told(ownerOf(hold) or '')
end

-- Whether a hold of this mode and owner can stand beside one that is there.
local function beside(mode, owner, there)
	local writer = string.sub(there, 1, 1) == 'w'
	return mode == 'r' and not writer or mode == 'w' and writer and ownerOf(there) == owner
end

-- Makes the sorted set of a hold that has been a string, for others beside it, or for claims. The hold ends when it did; up to a few
-- milliseconds later if time has passed since left, what PTTL had said of the string, was asked for, which is before now. What may be
-- refused later is tried before anything is deleted: ZADD of a string is an error, but another one for who may not ZADD, and on a full
-- master, which refuses nothing behind a write. Returns an error if the hold is still the string. If the hold ends
-- meanwhile nothing may be there: PEXPIRE deletes what would end before it is done, even in the millisecond in which it ends, so it gets one more.
local function spread(key, hold, left, now)
	local may = redis.pcall('ZADD', key, 'XX', now, hold)
	if type(may) == 'table' and not string.find(may.err, 'WRONGTYPE', 1, true) then
		return may
	end
	for _, command in ipairs({{'PEXPIRE', key, left + 1}, {'DEL', key}}) do
		local done = redis.pcall(unpack(command))
		if type(done) == 'table' then
			return done
		end
	end
	redis.call('ZADD', key, LEAST, HOLDS, now + left + 1, hold)
	redis.call('PEXPIRE', key, left + 1)
end
