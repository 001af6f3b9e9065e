package masters

import (
	"context"
	"errors"
	"time"

	"github.com/seed-624411e5/redlock/chaos/internal/machine"
)

// Evict sets an eviction policy and a memory limit that no key fits in. Heal lifts them.
const Evict Action = "evict"

var evict = Fault{
	Action: Evict, Text: "memory is full and keys are evicted", Needs: Server | Consent, Lasts: true, Outside: true,
	Forgets: true,
	act:     evictKeys,
}

func evictKeys(ctx context.Context, c *commands, _ Params) (Injection, error) {
	if err := c.client.Set(ctx, probe, "here", time.Minute).Err(); err != nil {
		return Injection{}, err
	}
	before := c.stat(ctx, "stats", "evicted_keys")
	heal := func(ctx context.Context) error {
		return errors.Join(c.client.ConfigSet(ctx, "maxmemory", "0").Err(),
			c.client.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err())
	}
	err := errors.Join(c.client.ConfigSet(ctx, "maxmemory-policy", "allkeys-random").Err(),
		c.client.ConfigSet(ctx, "maxmemory", "1").Err())
	if err != nil {
		return Injection{}, errors.Join(err, heal(ctx))
	}
	var n int
	evicted := func() bool {
		// A write makes the server look at its memory; with nothing left to evict it is refused.
		_ = c.client.Set(ctx, probe, "here", time.Minute).Err()
		n = c.stat(ctx, "stats", "evicted_keys") - before
		return n > 0
	}
	if !machine.Poll(ctx, 2*time.Second, evicted) {
		return Injection{}, errors.Join(errors.New("nothing was evicted"), heal(ctx))
	}
	return seen(heal, "%d keys evicted", n), nil
}
