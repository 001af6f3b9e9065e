-- Takes every key for one owner, or none.
--
-- KEYS: n keys, their n wait queues and, for a fenced lock, its counter.
-- ARGV: n, owner, ttl in ms;
--       the waiter's name ('' if a refused caller does not wait), for how many ms it has waited, for how many ms its
--       queue entry is kept, 1 to leave a key to the waiter it is reserved for;
--       the proposed token (0: not fenced; negative: exactly this token without the sign, or none), the counter's
--       retention in ms, the number of spare tokens behind its own (0 if missing).
-- Returns the token, or 1 for a lock that is not fenced, when granted;
--       {0, ttl in ms of the hold in the way, its owner, its key, the counter} when refused, with a further 1 if the
--       waiter has left a claim.
--
-- An owner that finds its own value has either repeated a request with a lost reply, or taken the key with SET NX and
-- found the counter ahead of its proposal. It is granted, and the key lives at least ttl from now. The token of a
-- granted request is greater than the counter was, also for a repeated request, so no two acquisitions have the same
-- token.
local n, owner, ttl = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local waiter, waited, keep = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local polite, proposal = ARGV[7] == '1', math.abs(tonumber(ARGV[8]))
local fenced, exact, counter = proposal > 0, tonumber(ARGV[8]) < 0, 0
local spare = tonumber(ARGV[10] or 0)

-- The usual case of several keys, in few steps: no key and no queue exists. Memory, disk and role do not change
-- during a script, so they refuse the first SET or none. But a user with selectors may be allowed SET for some of the
-- keys only.
if n > 1 and not fenced and redis.pcall('EXISTS', unpack(KEYS)) == 0 then
	for i = 1, n do
		local reply = redis.pcall('SET', KEYS[i], owner, 'PX', ttl)
		if reply.err then
			for set = 1, i - 1 do -- one by one, as they were set: no selector may allow all of them
				redis.call('DEL', KEYS[set])
			end
			return reply
		end
	end
	return 1
end

-- include kind.lua
-- include queue.lua
-- include counter.lua
-- include hold.lua

if fenced then
	local err
	counter, err = reached(KEYS[2 * n + 1])
	if err then
		return err
	elseif math.max(counter + 1, proposal) > 9007199254740991 - spare then
		return {err = 'ERR there is no greater fencing token than ' .. string.format('%.0f', counter)}
	end
end

-- Without claims, new readers could keep a waiter out for ever. As a waiting writer does (share.lua), this waiter
-- lets no new readers in. It claims the first key that readers have, and the keys before it that readers may come
-- back to. It leaves the keys behind that one alone, because it can't have them while the first readers stay. It
-- claims nothing while another kind of hold is in the way, which may last long. Returns whether it has claimed.
local function claimTo(first)
	local reads = {}
	for i = 1, n do
		local held, _, hold, left, now = holder(KEYS[i])
		if held and (string.sub(hold or '', 1, 2) ~= 'r:' or left == -1) then
			return false
		elseif hold and i <= first then
			reads[#reads + 1] = {KEYS[i], hold, left or 0, now}
		end
	end
	for _, read in ipairs(reads) do
		local key, hold, left, now = unpack(read)
		if now then
			if type(redis.pcall('ZADD', key, 'XX', now, '')) == 'table' then -- the master is full, or the right is missing
				return false
			end
		else -- a lone hold is a string
			now = milliseconds()
			if not now or spread(key, hold, left, now) then
				return false
			end
		end
		claim(key, waiter, left, now)
	end
	return true
end

local function refuse(left, held, i, claimed)
	enqueue(KEYS[n + i], waiter, waited, keep)
	return {0, left, told(held), KEYS[i], counter, claimed and 1 or nil}
end

local free, short, claims = {}, {}, {}
for i = 1, n do
	local held, err, hold, left = holder(KEYS[i])
	if err then
		return err
	elseif not held then
		local wait = polite and reserved(KEYS[n + i], waiter) or 0
		if wait > 0 then
			return refuse(wait, '', i)
		end
		free[#free + 1], claims[KEYS[i]] = KEYS[i], hold
	elseif hold then
		local writer = string.sub(hold, 1, 2) == 'w:' -- a writer may wait here to enter again; there are many readers
		return refuse(left, writer and named(hold) or '', i, not writer and waiter ~= '' and claimTo(i))
	else
		left = redis.call('PTTL', KEYS[i])
		if held ~= owner then
			return refuse(left, held, i)
		elseif left < ttl and left ~= -1 then
			short[#short + 1] = KEYS[i]
		end
	end
	if exact and counter >= proposal and not (held and counter == proposal) then
		return {0, 0, '', KEYS[i], counter} -- a hold here is the owner's; it has exactly this token if it was granted before
	end
end

-- An owner that gets an error has got no key. Every command behind the first write that may be refused to this user,
-- or by a full master, is first tried in a form that does nothing. A free key may exist with the claims of other
-- waiters.
if fenced or n > 1 then
	for _, key in ipairs(free) do
		redis.call('SET', key, owner, claims[key] and 'NX' or 'XX', 'PX', ttl)
	end
end
if fenced then
	local before = counter
	counter = exact and proposal or math.max(counter + 1, proposal)
	raise(KEYS[2 * n + 1], before, counter + spare, ARGV[9])
end
for _, key in ipairs(short) do
	redis.call('PEXPIRE', key, ttl)
end
for _, key in ipairs(free) do
	redis.call('SET', key, owner, 'PX', ttl)
end
for i = 1, n do
	dequeue(KEYS[n + i], waiter)
end
return fenced and counter or 1
