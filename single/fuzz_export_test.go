package single

import "github.com/redis/go-redis/v9"

// DecodeArray types what a script has returned.
func DecodeArray(value any) (Reply, error) {
	var cmd redis.Cmd
	cmd.SetVal(value)
	return decodeArray(&cmd)
}
