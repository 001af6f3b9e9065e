-- Takes a key that readers share and a writer has to itself; the same writer may take it again.
--
-- KEYS: key, wait queue.
-- ARGV: the hold as it is a string (LONE in kind.lua), ttl in ms; the waiter's name ('' when a refused caller does not wait), for how many
--       ms it has waited, for how many ms its entry is kept; of a reader the id of the hold of the same owner that it is under, or ''.
-- Returns {1, 0, '', '', holds} when granted, or 1 where it is the only hold; {0, ttl in ms of what is in the way, its owner,
-- its key, 1 if it is a reader's hold or else 0} when refused, with 1 behind it where it has left a claim.
--
-- A hold that finds nothing is a string, as a plain lock is, which ends at its ttl. That takes no script, and comes as a command of its own
-- where the key may be free. As soon as there is something beside it, the key is a sorted set, so one key is all there is. A hold in it has
-- the time at which it ends as its score; holds end each by itself, and adding one twice is adding it once.
-- A hold's time is a millisecond later than now and its ttl, because now is what is
-- left of the time when the fraction is cut off: so it never ends before its ttl. A waiting writer is 'c:waiter' with minus the time at which its claim ends,
-- and so is who waits for a plain lock (acquire.lua): while there is one, no reader gets in, so readers who keep coming can't starve it; but a reader that
-- is one already does, since the writer waits for it. The mark of kind.lua comes first of all. Holds and claims that have ended count for
-- nothing, and are removed when something is written anyway.
local key, queue = KEYS[1], KEYS[2]
local ttl, waiter = tonumber(ARGV[2]), ARGV[3]
-- A full master refuses this, whatever is there. A waiter's entry remains until its release, as when no script is needed.
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
elseif is == 'none' then -- on a server whose time goes on while a script runs
	redis.call('SET', key, ARGV[1], 'PX', ttl)
	return 1
end
local held = is == 'string' and redis.call('GET', key)
local left = held and redis.call('PTTL', key) -- before TIME, which may be a moment later: what is made of both must not end too early
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function refuse(left, held, hold, claimed)
	enqueue(queue, waiter, tonumber(ARGV[4]), tonumber(ARGV[5]))
	return {0, left, held, key, hold and string.sub(hold, 1, 1) == 'r' and 1 or 0, claimed and 1 or nil}
end

if held == ARGV[1] then -- asked twice
	if left < ttl and left ~= -1 then
		redis.call('PEXPIRE', key, ttl)
	end
	dequeue(queue, waiter)
	return 1
elseif held then
	local there = lone(held)
	if not there then
		return refuse(left, told(held))
	elseif left == -1 then -- somebody took its end away (PERSIST), and nobody knows how long its owner counts on it
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

-- The key lives as long as the longest hold in it, also if somebody took its end away, so that PTTL tells none.
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

-- The key is there, and has an end: so whoever gets an error has got nothing, and leaves nothing that stays. If the mark is new, the key
-- has ended meanwhile.
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
