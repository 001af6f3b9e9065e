package masters

import (
	"context"
	"fmt"
	"time"
)

// FlushAll deletes all keys.
const FlushAll Action = "flushall"

var flushAll = Fault{
	Action: FlushAll, Text: "all keys are deleted", Needs: Consent, Outside: true, Leaves: FullService, Forgets: true,
	act: flush,
}

func flush(ctx context.Context, c *commands, _ Params) (Injection, error) {
	if err := c.client.Set(ctx, probe, "here", time.Minute).Err(); err != nil {
		return Injection{}, err
	}
	n, _ := c.client.DBSize(ctx).Result()
	if err := c.client.FlushAll(ctx).Err(); err != nil {
		return Injection{}, err
	}
	if left, err := c.client.Exists(ctx, probe).Result(); err != nil || left != 0 {
		return Injection{}, fmt.Errorf("the probe survived (%v)", err)
	}
	return seen(nil, "%d keys gone", n), nil
}
