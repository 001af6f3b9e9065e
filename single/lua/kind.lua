-- What is at a key. 'none'; 'string', a plain lock, whoever made it, or one hold alone; 'holds', a sorted set made by share.lua. Everything else
-- is somebody's data and comes back as an error: a sorted set of ours has a member of its own, the mark, with the least
-- score of all, which nobody else's has, and no script writes to a key before it has looked for that.
local LEAST, HOLDS = '-9007199254740991', 'redlock:holds'

-- A hold that has a shared key to itself is a plain string: LONE and what its member in the sorted set would be. No plain lock's owner
-- begins with that. See hold.lua.
local LONE = '[hold]'

local function marked(key, mark)
	return tonumber(redis.pcall('ZSCORE', key, mark)) == tonumber(LEAST)
end

local function kind(key)
	local is = redis.call('TYPE', key).ok
	if is == 'none' or is == 'string' then
		return is
	elseif is == 'zset' and marked(key, HOLDS) then
		return 'holds'
	end
	return nil, {err = 'WRONGTYPE a ' .. is .. ' of somebody else is no lock: ' .. string.sub(key, 1, 64)}
end

-- What a plain key holds as a reply may tell it: it can be somebody's data, of any size.
local function told(held)
	return string.sub(held, 1, 16384)
end

-- The hold that a string is, as its member would be; nil of any other string.
local function lone(held)
	return string.sub(held, 1, #LONE) == LONE and string.match(held, '^[rw]:.*:[^:]*$', #LONE + 1) or nil
end

-- The owner of a plain key; false when the key is free, '' when it is held by locks of another kind: then the third result is the hold that ends
-- last, the fourth in how many ms it does, and the fifth what time it is. Of a key that is free although there is a sorted set, of which only
-- claims are left (share.lua), the third result is the mark.
local function holder(key)
	local held = redis.pcall('GET', key)
	if type(held) ~= 'table' then
		local hold = held and lone(held)
		return hold and '' or held, nil, hold, hold and redis.call('PTTL', key)
	end
	local is, err = kind(key)
	if is ~= 'holds' then
		return nil, err or held
	end
	local last, time = redis.pcall('ZREVRANGE', key, 0, 0, 'WITHSCORES'), redis.pcall('TIME')
	if not last[2] or not time[1] then -- for want of a right
		return ''
	end
	local now = time[1] * 1000 + math.floor(time[2] / 1000)
	if tonumber(last[2]) > now then
		return '', nil, last[1], tonumber(last[2]) - now, now
	end
	return false, nil, HOLDS, nil, now
end
