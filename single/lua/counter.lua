-- A fencing counter is a sorted set with one member, because ZADD GT can raise it without a script.
local TOKEN = 'redlock:token'

-- The value of a counter, 0 if there is none; nil and an error if foreign data is in its place.
local function reached(counter)
	local score = redis.pcall('ZSCORE', counter, TOKEN)
	if type(score) == 'table' then
		return nil, score
	elseif score then
		return tonumber(score)
	elseif redis.call('EXISTS', counter) == 0 then
		return 0
	end
	return nil, {err = 'WRONGTYPE a sorted set of somebody else is no fencing counter: ' .. string.sub(counter, 1, 80)}
end

-- Raises a counter and makes it live for keep ms. PEXPIRE comes first for two reasons. A user without the right to it
-- must not make a counter that lives for ever. And after PEXPIRE a full master does not refuse to raise an existing
-- counter.
local function raise(counter, from, to, keep)
	local there = redis.call('PEXPIRE', counter, keep)
	if to > from then
		redis.call('ZADD', counter, 'GT', string.format('%.0f', to), TOKEN)
		if there == 0 then
			redis.call('PEXPIRE', counter, keep)
		end
	end
end
