-- In front of the scripts that release. Calls whoever has waited longest for a key that has become free, and keeps the key
-- for it for some ms; reports whether there was anybody.
--
-- The waiter called leaves the queue, so one that has died is called once. Calls and reservations are hints: they may
-- fail, for want of a right or for a foreign key in the queue's place, and cost the waiter its next backoff.
local function call(key, queue, reserve)
	redis.pcall('ZREMRANGEBYSCORE', queue, '-inf', 0)
	local next = redis.pcall('ZPOPMIN', queue)[1]
	if not next then
		return false
	end
	local time, left = redis.pcall('TIME'), redis.pcall('PTTL', queue)
	if not time.err and type(left) == 'number' then
		local ends = time[1] * 1000 + math.floor(time[2] / 1000) + reserve
		redis.pcall('ZADD', queue, -ends, '!' .. next)
		redis.pcall('PEXPIRE', queue, math.max(tonumber(reserve), left))
	end
	redis.pcall('PUBLISH', 'redlock:free:' .. next, key)
	return true
end

