-- A wait queue is a sorted set: waiters by the time at which they began to wait, at most one reservation, '!' and the name
-- of the waiter whose turn it is with minus the time at which it ends, and a mark as in kind.lua. It decides who should
-- try, never who holds. So nothing depends on its commands: they may fail, for want of a right or for somebody's data in
-- the queue's place, which is left as it is, and cost a waiter its next backoff.
local QUEUE = 'redlock:queue'

local function milliseconds()
	local time = redis.pcall('TIME')
	return time[1] and time[1] * 1000 + math.floor(time[2] / 1000)
end

-- For how many ms the queue's key is reserved for another waiter.
local function reserved(queue, waiter)
	local first, now = redis.pcall('ZRANGE', queue, 0, 1, 'WITHSCORES'), nil
	if first[1] == QUEUE and first[4] and tonumber(first[4]) < 0 and first[3] ~= '!' .. waiter then
		now = milliseconds()
	end
	return now and -tonumber(first[4]) - now or 0
end

local function enqueue(queue, waiter, waited, keep)
	if waiter == '' or not marked(queue, QUEUE) and redis.pcall('EXISTS', queue) ~= 0 then
		return
	end
	local there, now = redis.pcall('PEXPIRE', queue, keep), milliseconds()
	if type(there) ~= 'number' or not now then -- without this right the queue would live for ever
		return
	end
	redis.pcall('ZADD', queue, LEAST, QUEUE, now - waited, waiter)
	redis.pcall('ZREMRANGEBYRANK', queue, 257, -1)
	if there == 0 then
		redis.pcall('PEXPIRE', queue, keep)
	end
end

-- Removes the mark of a queue that has nothing else.
local function tidy(queue)
	if redis.pcall('ZCOUNT', queue, '-inf', '+inf') == 1 then
		redis.pcall('ZREM', queue, QUEUE)
	end
end

-- Takes a waiter out of a queue; reports whether it stood there, or the key was reserved for it.
local function dequeue(queue, waiter)
	if waiter == '' or not marked(queue, QUEUE) then
		return false
	end
	local removed = redis.pcall('ZREM', queue, waiter, '!' .. waiter)
	tidy(queue)
	return type(removed) == 'number' and removed > 0
end

-- Publishes a message to whoever has waited longest, and returns its name. A waiter that nobody listens for, as when its process has died,
-- leaves the queue, and the next one is told, up to 32. One that is about to listen again enters the queue with its next attempt, at its position.
-- PUBLISH in a cluster counts who listens at this node, so those at others are told, too. Returns nil if nobody listens.
local function tellNext(queue, message)
	for _ = 1, 32 do
		local first = redis.pcall('ZRANGE', queue, 1, 2)
		local next = first[1]
		if next and string.sub(next, 1, 1) == '!' then -- a reservation
			next = first[2]
		end
		if not next or redis.pcall('PUBLISH', 'redlock:free:' .. next, message) ~= 0 then
			return next
		elseif redis.pcall('ZREM', queue, next) ~= 1 then
			return nil
		end
	end
end

-- Notifies whoever has waited longest for a key that has become free, and reserves the key for it for some ms; reports
-- whether there was anybody. The waiter leaves the queue.
local function notify(key, queue, reserve)
	if not marked(queue, QUEUE) then
		return false
	end
	redis.pcall('ZREMRANGEBYSCORE', queue, '(' .. LEAST, 0)
	local next = tellNext(queue, key)
	if not next then
		tidy(queue)
		return false
	end
	redis.pcall('ZREM', queue, next)
	local now, left = milliseconds(), redis.pcall('PTTL', queue)
	if now and type(left) == 'number' then
		reserve = tonumber(reserve)
		local alone = redis.pcall('ZCOUNT', queue, '(0', '+inf') == 0
		redis.pcall('ZADD', queue, -(now + reserve), '!' .. next)
		redis.pcall('PEXPIRE', queue, alone and reserve or math.max(reserve, left))
	end
	return true
end

-- Tells whoever has waited longest for a key that it was released and is kept for a while. It remains in the queue: it looks
-- for how long, and tries when that is over.
local function tell(key, queue)
	if marked(queue, QUEUE) then
		tellNext(queue, 'redlock:kept:' .. key)
		tidy(queue)
	end
end

-- Takes a waiter out of the queue of a key that it has not got. It may be the only one that knows that the key is free, or
-- until when it is kept: so another one is told. Which one knows can't be seen from the queue, whose order changes with the
-- attempts; where it was another one than has left, this costs a look.
local function leave(key, queue, waiter, held, reserve)
	if not dequeue(queue, waiter) then
		return
	elseif held == false and reserved(queue, waiter) <= 0 then
		notify(key, queue, reserve)
	elseif type(held) == 'string' and string.find(held, '^[^{}]+{}/%x+$') then -- what keep.lua has put there
		tell(key, queue)
	end
end
