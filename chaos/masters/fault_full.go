package masters

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/internal/machine"
)

// Full fills the server's memory under the policy noeviction. The server answers OOM to commands
// that need more memory, and keeps its data. Heal restores the server's memory limit.
const Full Action = "full"

var full = Fault{
	Action: Full, Text: "memory is full and nothing is evicted: new keys are refused, held locks stay",
	Needs: Server | Consent, Lasts: true, Leaves: HoldsOnly, act: fill,
}

func fill(ctx context.Context, c *commands, _ Params) (Injection, error) {
	was, err := c.client.ConfigGet(ctx, "maxmemory*").Result()
	if err != nil {
		return Injection{}, err
	}
	heal := func(ctx context.Context) error {
		return errors.Join(c.client.ConfigSet(ctx, "maxmemory", was["maxmemory"]).Err(),
			c.client.ConfigSet(ctx, "maxmemory-policy", was["maxmemory-policy"]).Err())
	}
	err = errors.Join(c.client.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err(),
		c.client.ConfigSet(ctx, "maxmemory", "1").Err())
	if err != nil {
		return Injection{}, errors.Join(err, heal(ctx))
	}
	return c.refuses(ctx, "OOM", heal)
}

// refuses returns the injection of a fault that makes the server answer a write with an error of that prefix.
func (c *commands) refuses(ctx context.Context, prefix string, heal func(context.Context) error) (Injection, error) {
	var answer error
	refused := func() bool {
		answer = c.client.Set(ctx, probe, "here", time.Minute).Err()
		return redis.HasErrorPrefix(answer, prefix)
	}
	if !machine.Poll(ctx, time.Second, refused) {
		return Injection{}, errors.Join(answered("a write", answer), heal(ctx))
	}
	return seen(heal, "a write was answered: %v", answer), nil
}
