// Package redisfence shows how a Redis server that holds the data checks fencing tokens: a script compares and writes
// in one step. Any Redis server can do this. It need not be one of the lock's masters, and usually is not.
//
// The token is in the same hash as the data and lives as long. If the data expires, is evicted or is deleted, its token
// is gone too, and the server accepts an old holder again.
package redisfence

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/fence"
)

// set writes a value unless the hash has a greater token. It returns {1} or {0, the greater token}. Lua's numbers are
// exact up to 2^53, and so are this library's tokens.
//
// KEYS: the hash. ARGV: token, value.
var set = redis.NewScript(`
local seen = redis.call('HGET', KEYS[1], 'token')
if seen and tonumber(seen) > tonumber(ARGV[1]) then
	return {0, tonumber(seen)}
end
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', ARGV[2])
return {1}
`)

// Set writes the value of key under the token of the lock that protects it. The error is a [*fence.StaleError] if
// another holder has written the value since; then nothing was changed.
func Set(ctx context.Context, client redis.Scripter, key, value string, token uint64) error {
	if token == 0 {
		return fence.ErrNoToken
	}
	reply, err := set.Run(ctx, client, []string{key}, token, value).Int64Slice()
	switch {
	case err != nil:
		return fmt.Errorf("set %q: %w", key, err)
	case len(reply) == 2:
		return &fence.StaleError{Key: key, Token: token, Seen: uint64(reply[1])}
	default:
		return nil
	}
}

// Get reads the value of key; the error matches [redis.Nil] when there is none.
func Get(ctx context.Context, client redis.Cmdable, key string) (string, error) {
	return client.HGet(ctx, key, "value").Result()
}
