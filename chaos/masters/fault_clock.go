package masters

import (
	"context"
	"fmt"
	"time"
)

const (
	// ClockStep moves the server's clock by Params.Step at once; Heal steps it back where the real clock could be
	// moved.
	ClockStep Action = "clock-step"
	// ClockRate makes the server's clock run at Params.Rate. Heal sets the rate back to 1; the time gained stays.
	ClockRate Action = "clock-rate"
)

var clockStep = Fault{
	Action: ClockStep, Text: "the server's clock jumps by step", Needs: Consent, Lasts: true, Outside: true,
	Leaves: FullService, Forgets: true, act: moveTTLs,
	Check: func(p Params) error {
		if p.Step == 0 {
			return &ParamError{"step", "a clock step needs a step that is not 0"}
		}
		return nil
	},
}

var clockRate = Fault{
	Action: ClockRate, Text: "the server's clock runs at rate", Needs: Clock, Lasts: true, Leaves: FullService,
	Forgets: true,
	Check: func(p Params) error {
		if p.Rate <= 0 || p.Rate == 1 {
			return &ParamError{"rate", "a clock rate must be above 0 and not 1"}
		}
		return nil
	},
}

// moveTTLs emulates a step of the clock where the real one can't be moved: every key with a ttl ages by d.
func moveTTLs(ctx context.Context, c *commands, p Params) (Injection, error) {
	d := p.Step
	if err := c.client.Set(ctx, probe, "here", 24*time.Hour).Err(); err != nil {
		return Injection{}, err
	}
	before := c.client.PTTL(ctx, probe).Val()
	moved := 0
	for keys := c.client.Scan(ctx, 0, "*", 100).Iterator(); keys.Next(ctx); moved++ {
		ttl, err := c.client.PTTL(ctx, keys.Val()).Result()
		if err != nil || ttl <= 0 {
			continue
		}
		if ttl -= d; ttl <= 0 {
			err = c.client.Del(ctx, keys.Val()).Err()
		} else {
			err = c.client.PExpire(ctx, keys.Val(), ttl).Err()
		}
		if err != nil {
			return Injection{}, err
		}
	}
	after := c.client.PTTL(ctx, probe).Val()
	if gone := before - after; d.Abs() > time.Second && (gone-d).Abs() > d.Abs()/2 {
		return Injection{}, fmt.Errorf("the probe's pttl went from %v to %v", before, after)
	}
	return seen(nil, "emulated: ttls of %d keys moved, a probe's from %v to %v", moved, before, after), nil
}
