package masters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/internal/machine"
)

// Busy runs an endless script, so the server answers BUSY to all other clients. It lasts until Heal
// kills the script, at most one second longer than Params.For (10 s when 0).
const Busy Action = "busy"

var busy = Fault{Action: Busy, Text: "a long script keeps the server busy", Needs: Server, Lasts: true, act: runScript}

// runScript runs an endless script and shows that another client gets the error BUSY. Heal kills the script. If the run
// is killed first, the script ends after atMost, so that no server spins for ever.
func runScript(ctx context.Context, c *commands, p Params) (Injection, error) {
	atMost := p.For + time.Second // Heal is a little late, too
	if p.For <= 0 {
		atMost = 10 * time.Second
	}
	if err := c.client.Ping(ctx).Err(); err != nil {
		return Injection{}, err
	}
	if err := c.client.ConfigSet(ctx, "lua-time-limit", "1").Err(); err != nil {
		return Injection{}, err
	}
	background, cancel := context.WithTimeout(context.WithoutCancel(ctx), atMost+10*time.Second)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runner := redis.NewClient(c.client.Options())
		defer runner.Close()
		_ = runner.WithTimeout(atMost+10*time.Second).Eval(background, "while true do end", nil).Err()
	}()
	killer := time.AfterFunc(atMost, func() { _ = c.client.ScriptKill(background).Err() })
	heal := once(func(ctx context.Context) error {
		defer cancel()
		killer.Stop()
		var err error
		ended := machine.Poll(ctx, insistence, func() bool {
			err = c.client.ScriptKill(ctx).Err()
			return err == nil || strings.HasPrefix(err.Error(), "NOTBUSY")
		})
		if !ended {
			return fmt.Errorf("the script can't be killed: %w", err)
		}
		<-done
		return nil
	})
	var answer error
	busy := func() bool {
		answer = c.client.Ping(ctx).Err()
		return answer != nil && strings.HasPrefix(answer.Error(), "BUSY")
	}
	if !machine.Poll(ctx, atMost, busy) {
		return Injection{}, errors.Join(answered("a ping", answer), heal(ctx))
	}
	return seen(heal, "a ping was answered BUSY"), nil
}
