-- Takes a key that readers share and a writer has to itself; the same writer may take it again.
--
-- KEYS: key, arrival queue.
-- ARGV: 'r' or 'w', owner, hold id, ttl in ms; the waiter's name ('' when a refused caller does not wait), for how many
--       ms it has waited, for how many ms its place is kept; for how many ms a refused writer keeps readers out; of a
--       reader the hold of the same owner that it is under, or ''.
-- Returns {1, 0, '', '', holds} when granted; {0, ttl in ms of what is in the way, its owner, its key} when refused.
--
-- The key is a sorted set, so one key is all there is. A hold is 'mode:owner:id' with the time at which it ends as its
-- score; holds end each by itself, and adding one twice is adding it once. Holds of both modes never stand together,
-- and all writers' holds are one owner's. A waiting writer is 'c:owner' with minus the time at which its claim ends:
-- while there is one, no reader gets in, so readers who keep coming can't starve it; but a reader that is one already
-- does, since the writer waits for it.
local mode, owner, id, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local waiter, waited, keep, claim = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local within = ARGV[9]
local key, queue = KEYS[1], KEYS[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function refuse(left, holder)
	if waiter ~= '' then
		redis.pcall('ZADD', queue, now - waited, waiter)
		redis.pcall('ZREMRANGEBYRANK', queue, 256, -1)
		redis.pcall('PEXPIRE', queue, keep)
	end
	return {0, left, holder, key}
end

local function live(atLeast)
	redis.call('PEXPIRE', key, math.max(atLeast, redis.call('PTTL', key)))
end

local kind = redis.call('TYPE', key).ok
if kind == 'none' then
	redis.call('ZADD', key, now + ttl, mode .. ':' .. owner .. ':' .. id)
	redis.call('PEXPIRE', key, ttl)
	if waiter ~= '' then
		redis.pcall('ZREM', queue, waiter, '!' .. waiter)
	end
	return {1, 0, '', '', 1}
elseif kind == 'string' then
	return refuse(redis.call('PTTL', key), redis.call('GET', key))
elseif kind ~= 'zset' then
	return refuse(redis.call('PTTL', key), '')
end
redis.call('ZREMRANGEBYSCORE', key, -now, now) -- holds and claims that have ended

local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
local held = last[1] and tonumber(last[2]) > 0
local holder = held and string.match(last[1], '^[rw]:(.*):[^:]*$')
if held then
	local writer = string.sub(last[1], 1, 1) == 'w'
	local compatible = mode == 'r' and not writer or mode == 'w' and writer and holder == owner
	if not compatible then
		if mode == 'w' and waiter ~= '' then
			redis.call('ZADD', key, -(now + claim), 'c:' .. waiter)
			live(claim)
		end
		return refuse(tonumber(last[2]) - now, holder)
	end
end
local reads = redis.call('ZSCORE', key, 'r:' .. owner .. ':' .. id) or redis.call('ZSCORE', key, 'r:' .. owner .. ':' .. within)
if mode == 'r' and not reads then
	local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
	if first[1] and tonumber(first[2]) < 0 then
		return refuse(-tonumber(first[2]) - now, '')
	end
end

local member = mode .. ':' .. owner .. ':' .. id
local ends = math.max(now + ttl, tonumber(redis.call('ZSCORE', key, member) or 0))
redis.call('ZADD', key, ends, member)
if waiter ~= '' then
	redis.call('ZREM', key, 'c:' .. waiter)
	redis.pcall('ZREM', queue, waiter, '!' .. waiter)
end
live(ttl)
return {1, 0, '', '', redis.call('ZCOUNT', key, '(0', '+inf')}
