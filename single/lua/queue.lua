-- A wait queue is a sorted set. It contains the waiters by the time at which they began to wait; at most one
-- reservation, '!' and the name of the next waiter, with minus the time at which it ends; and a mark as in kind.lua.
-- The queue decides who should try, never who holds. So its commands may fail, because a right is missing or foreign
-- data is in the queue's place, which stays unchanged. That only costs a waiter its next backoff.
local QUEUE = 'redlock:queue'

local function milliseconds()
	local time = redis.pcall('TIME')
	return time[1] and time[1] * 1000 + math.floor(time[2] / 1000)
end

-- For how many ms the queue's key is reserved for another waiter; 0 or less if it is not.
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

-- Removes the mark of a queue that has no other member.
local function tidy(queue)
	if redis.pcall('ZCOUNT', queue, '-inf', '+inf') == 1 then
		redis.pcall('ZREM', queue, QUEUE)
	end
end

-- Removes a waiter from a queue. Returns whether it was queued, or the key was reserved for it.
local function dequeue(queue, waiter)
	if waiter == '' or not marked(queue, QUEUE) then
		return false
	end
	local removed = redis.pcall('ZREM', queue, waiter, '!' .. waiter)
	tidy(queue)
	return type(removed) == 'number' and removed > 0
end

-- Publishes a message to the waiter that has waited longest, and returns its name; nil if no waiter listens. A waiter
-- without a subscription, for example of a dead process, leaves the queue, and the next one gets the message, for up
-- to 32 waiters. If it is about to subscribe again, it enters the queue with its next attempt, at its position. In a
-- Cluster, PUBLISH counts the subscribers of this node only, so waiters that listen at other nodes leave the queue,
-- but still receive the message.
local function tellNext(queue, message)
	for _ = 1, 32 do
		local first = redis.pcall('ZRANGE', queue, 1, 2)
		local next = first[1]
		if next and string.sub(next, 1, 1) == '!' then -- a reservation
			next = first[2]
		end
		local heard = next and redis.pcall('PUBLISH', 'redlock:free:' .. next, message)
		if type(heard) ~= 'number' then -- nobody waits, or the right is missing
			return nil
		elseif heard > 0 then
			return next
		elseif redis.pcall('ZREM', queue, next) ~= 1 then
			return nil
		end
	end
end

-- Notifies the waiter that has waited longest that the key has become free, and reserves the key for it for some ms.
-- The waiter leaves the queue. Returns whether there was one.
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

-- Notifies the waiters that have waited longest for a shared key, up to 8: some may be readers, who can all have it.
-- They leave the queue.
local function notifySome(key, queue)
	if not marked(queue, QUEUE) then
		return
	end
	redis.pcall('ZREMRANGEBYSCORE', queue, '(' .. LEAST, 0)
	for _ = 1, 8 do
		local next = tellNext(queue, key)
		if not next or redis.pcall('ZREM', queue, next) ~= 1 then
			break
		end
	end
	tidy(queue)
end

-- Tells the waiter that has waited longest that its key was released and is kept for a while. It remains in the
-- queue, looks for how long the key is kept, and tries when that time is over.
local function tell(key, queue)
	if marked(queue, QUEUE) then
		tellNext(queue, 'redlock:kept:' .. key)
		tidy(queue)
	end
end
