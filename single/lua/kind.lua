-- The kind of data at a key: 'none'; 'string', which is a plain lock of any client or one lone hold; 'holds', a
-- sorted set made by share.lua. All other data is foreign and gives an error. A sorted set of ours has a special
-- member, the mark, with the least score of all, which foreign sets do not have. No script writes to a key before it
-- has looked for the mark.
local LEAST, HOLDS = '-9007199254740991', 'redlock:holds'

-- A hold that has a shared key to itself is a plain string: LONE and then the text of the member that it would be in
-- the sorted set. No plain lock's owner begins with LONE. See hold.lua.
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

-- The value of a plain key in a form for replies. It may be foreign data of any size.
local function told(held)
	return string.sub(held, 1, 16384)
end

-- The hold in a string, in the form of a member of a set; nil if the string is not a hold.
local function lone(held)
	return string.sub(held, 1, #LONE) == LONE and string.match(held, '^[rw]:.*:[^:]*$', #LONE + 1) or nil
end

-- The owner of a plain key; false if the key is free. If locks of another kind hold the key, it is '', and three more
-- results follow the error: the hold that ends last, in how many ms it ends, and the current time. If the key is free
-- but has a sorted set that contains only claims (share.lua), the third result is the mark.
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
	if not last[2] or not time[1] then -- a right is missing
		return ''
	end
	local now = time[1] * 1000 + math.floor(time[2] / 1000)
	if tonumber(last[2]) > now then
		return '', nil, last[1], tonumber(last[2]) - now, now
	end
	return false, nil, HOLDS, nil, now
end
