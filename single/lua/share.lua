-- Takes a key that readers share and a writer has to itself; the same writer may take it again.
--
-- KEYS: key, wait queue.
-- ARGV: the hold as a string (LONE in kind.lua), ttl in ms; the waiter's name ('' if a refused caller does not wait),
-- for how many ms
--       it has waited, for how many ms its queue entry is kept; for a reader, the id of the same owner's hold that it
--       is within, or ''.
-- Returns {1, 0, '', '', holds} when granted, or 1 if it is the only hold;
--       {0, ttl in ms of the hold in the way, its owner, its key, 1 for a reader's hold or else 0} when refused, with
--       a further 1 if the waiter has left a claim.
--
-- A lone hold is a string, like a plain lock, and ends at its ttl. Taking it needs no script: a single command does
-- it when the key may be free. When a second hold or a claim comes, the key becomes a sorted set, so one key holds
-- everything. The score of a hold is the time at which it ends. Holds end independently, and adding a hold twice is
-- the same as adding it once. A hold's score is now plus ttl plus one millisecond, because now is rounded down to
-- whole milliseconds: so a hold never ends before its ttl.
--
-- A waiting writer is the member 'c:waiter', with minus the time at which its claim ends. A waiter for a plain lock
-- (acquire.lua) is the same. While there is a claim, no new reader gets in, so readers that keep coming cannot starve
-- the waiter. But an owner that already is a reader gets in, because the writer has to wait for it anyway. The mark
-- of kind.lua comes before all members. Ended holds and claims count for nothing; the next write removes them.
local key, queue = KEYS[1], KEYS[2]
local ttl, waiter = tonumber(ARGV[2]), ARGV[3]
-- A full master refuses this SET in any case. The waiter's queue entry then remains until its release, as it does
-- when no script is needed.
if redis.call('SET', key, ARGV[1], 'NX', 'PX', ttl) then
	return 1
end

-- include kind.lua
-- include queue.lua
-- include hold.lua

local member = lone(ARGV[1])
local mode, owner = string.sub(member, 1, 1), ownerOf(member)
local is, err = kind(key)
if err then
	return err
elseif is == 'none' then -- possible if the server's time moves while a script runs
	redis.call('SET', key, ARGV[1], 'PX', ttl)
	return 1
end
local held = is == 'string' and redis.call('GET', key)
-- It is read before TIME, which may be a moment later: their sum must not be too early.
local left = held and redis.call('PTTL', key)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function refuse(left, held, hold, claimed)
	enqueue(queue, waiter, tonumber(ARGV[4]), tonumber(ARGV[5]))
	return {0, left, held, key, hold and string.sub(hold, 1, 1) == 'r' and 1 or 0, claimed and 1 or nil}
end

if held == ARGV[1] then -- a repeated request
	if left < ttl and left ~= -1 then
		redis.call('PEXPIRE', key, ttl)
	end
	dequeue(queue, waiter)
	return 1
elseif held then
	local there = lone(held)
	if not there then
		return refuse(left, told(held))
	elseif left == -1 then -- its expiry was removed (PERSIST), so it is unknown how long its owner relies on it
		return refuse(left, named(there), there)
	end
	local may = beside(mode, owner, there)
	if may or mode == 'w' and waiter ~= '' then -- a claim needs the set, too
		err = spread(key, there, left, now)
	end
	if not may and (err or mode == 'r' or waiter == '') then
		return refuse(left + 1, named(there), there)
	elseif err then
		return err
	end
end

-- The key lives as long as its longest hold, even if a PERSIST has removed its expiry, so that PTTL shows none.
local longest = 0
local function live(atLeast)
	redis.call('PEXPIRE', key, math.max(atLeast, longest, redis.call('PTTL', key)))
end

local function stands(member)
	return tonumber(redis.call('ZSCORE', key, member) or 0) > now
end

local others = redis.call('ZCOUNT', key, '(' .. now, '+inf') - (stands(member) and 1 or 0)
local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
longest = tonumber(last[2] or 0) - now
if longest > 0 and not beside(mode, owner, last[1]) then
	local claims = mode == 'w' and waiter ~= ''
	if claims then
		claim(key, waiter, longest, now)
	end
	return refuse(longest, named(last[1]), last[1], claims)
end
if mode == 'r' and not stands(member) and not stands('r:' .. owner .. ':' .. ARGV[6]) then
	local first = redis.call('ZRANGE', key, 1, 1, 'WITHSCORES') -- behind the mark
	if first[1] and -tonumber(first[2]) > now then
		return refuse(-tonumber(first[2]) - now, '')
	end
end

-- The key exists and has an expiry. So an owner that gets an error has got nothing, and leaves no data without an
-- expiry. If the mark is new, the key has ended just now.
live(ttl)
if redis.call('ZADD', key, 'GT', LEAST, HOLDS, now + ttl + 1, member) == 2 then
	live(ttl)
end
redis.pcall('ZREMRANGEBYSCORE', key, -now, now)
if waiter ~= '' then
	redis.pcall('ZREM', key, 'c:' .. waiter)
end
dequeue(queue, waiter)
return {1, 0, '', '', others + 1}
