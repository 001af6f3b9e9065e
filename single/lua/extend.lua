-- Makes every key that the owner holds live for at least ttl from now. It never shortens, because a late or smaller
-- request must not take away time that the holder relies on.
--
-- KEYS: n keys and, for a fenced lock, its counter.
-- ARGV: n, owner, ttl in ms, 1 to set missing keys again, the lock's token (0: not fenced), the counter's retention in
-- ms.
-- Returns {1} if all keys were there; {2} if some were missing and have been set again; {0, ttl in ms of the hold in
-- the way, its owner, its key} if a key is missing or another owner's: then nothing was changed.
--
-- An existing key is kept by PEXPIRE, which a full master does not refuse. The script raises a fenced lock's counter
-- to its token, so a master that lost the counter, or never had it, will not give out a smaller token. With foreign
-- data in the counter's place the extension fails: a lock with a token that no master defends must end.
local n, owner, ttl = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local repair, token = ARGV[4] == '1', tonumber(ARGV[5])

-- include kind.lua
-- include counter.lua

local gone, short, claims = {}, {}, {}
for i = 1, n do
	local held, err, hold, left = holder(KEYS[i])
	if err then
		return err
	elseif not held and not repair then
		return {0, 0, '', KEYS[i]}
	elseif not held then
		gone[#gone + 1], claims[KEYS[i]] = KEYS[i], hold
	else
		left = left or redis.call('PTTL', KEYS[i])
		if held ~= owner then
			return {0, left, told(held), KEYS[i]}
		elseif left < ttl and left ~= -1 then
			short[#short + 1] = KEYS[i]
		end
	end
end
local counter, err = 0, nil
if token > 0 then
	counter, err = reached(KEYS[n + 1])
	if err then
		return err
	end
end

if token > 0 or n > 1 then -- as in acquire.lua: after an error nothing was set
	for _, key in ipairs(gone) do
		redis.call('SET', key, owner, claims[key] and 'NX' or 'XX', 'PX', ttl)
	end
end
if token > 0 then
	raise(KEYS[n + 1], counter, token, ARGV[6])
end
for _, key in ipairs(short) do
	redis.call('PEXPIRE', key, ttl)
end
for _, key in ipairs(gone) do
	redis.call('SET', key, owner, 'PX', ttl)
end
return {gone[1] and 2 or 1}
