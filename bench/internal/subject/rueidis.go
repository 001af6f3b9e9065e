package subject

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// rueidisRedlock is the hand-written Redlock over rueidis, which pipelines concurrent commands by itself.
type rueidisRedlock struct{}

// Rueidis is Redlock over rueidis: a goroutine for every vote and an early return, on connections that pipeline.
func Rueidis() Subject { return rueidisRedlock{} }

func (rueidisRedlock) Name() string { return "rueidis" }

func (rueidisRedlock) Open(ctx context.Context, addrs []string) (Client, error) {
	m := &majority{}
	script := rueidis.NewLuaScript(compareAndDelete)
	for _, addr := range addrs {
		c, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress:       []string{addr},
			ForceSingleClient: true,
			DisableCache:      true,
			// As with go-redis: each vote is requested once.
			DisableRetry: true,
			// The default of half a megabyte each way is for large values. With 32 clients of 5 masters in one process,
			// it would measure the machine's memory.
			ReadBufferEachConn:  64 << 10,
			WriteBufferEachConn: 64 << 10,
		})
		if err != nil {
			_ = m.Close(ctx)
			return nil, fmt.Errorf("subject: rueidis: connect to %s: %w", addr, err)
		}
		m.voters = append(m.voters, &rueidisVoter{client: c, script: script})
	}
	return m, nil
}

type rueidisVoter struct {
	client rueidis.Client
	script *rueidis.Lua
}

func (v *rueidisVoter) take(ctx context.Context, key, owner string, ttl time.Duration) (bool, error) {
	cmd := v.client.B().Set().Key(key).Value(owner).Nx().PxMilliseconds(ttl.Milliseconds()).Build()
	err := v.client.Do(ctx, cmd).Error()
	if rueidis.IsRedisNil(err) {
		return false, nil
	}
	return err == nil, err
}

func (v *rueidisVoter) drop(ctx context.Context, key, owner string) (bool, error) {
	n, err := v.script.Exec(ctx, v.client, []string{key}, []string{owner}).AsInt64()
	return n == 1, err
}

func (v *rueidisVoter) close() { v.client.Close() }
