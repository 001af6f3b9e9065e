-- Announces the generation of the configuration of masters that is in use. A master keeps the greatest one, without
-- an expiry.
-- KEYS: where it is kept. ARGV: a generation. Returns {1, 0, '', '', the greatest}.
local known = redis.call('GET', KEYS[1]) or '0'
if not string.match(known, '^%d+$') or tonumber(known) > 9007199254740991 then
	return {err = 'WRONGTYPE something of somebody else is no generation: ' .. KEYS[1]}
end
local greatest = math.max(tonumber(known), tonumber(ARGV[1]))
if greatest > tonumber(known) then
	redis.call('SET', KEYS[1], string.format('%.0f', greatest))
end
return {1, 0, '', '', greatest}
