package masters

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"
)

// Loading kills the server and restarts it with so much on disk that it answers LOADING until Heal, which returns when the
// server has all its data and serves. What a server without an append-only file was told between its last save and its end is lost.
const Loading Action = "loading"

var loading = Fault{
	Action: Loading, Text: "the server is killed and restarted, and takes time to load its data", Needs: Server | Consent | Process | Arguments,
	Lasts: true, Forgets: true, process: load,
}

const (
	// ballast is how many keys there are to load. The server looks at its connections every thousand keys, and is made to
	// sleep at each (its setting key-load-delay), some seconds in all if nobody makes it stop.
	ballast = 60_000

	layBallast   = `for i = 1, tonumber(ARGV[1]) do redis.call('SET', KEYS[1] .. i, 'ballast') end return 0`
	clearBallast = `for i = 1, tonumber(ARGV[1]) do redis.call('DEL', KEYS[1] .. i) end return 0`
)

func load(ctx context.Context, m *process, _ Params) (Injection, error) {
	fail := func(err error) (Injection, error) { return Injection{}, err }
	keys := []string{probe + ":"}
	if err := m.client.Eval(ctx, layBallast, keys, ballast).Err(); err != nil {
		return fail(err)
	}
	forget := func() error { return nil }
	if !m.keeps {
		if err := m.client.Save(ctx).Err(); err != nil {
			return fail(err)
		}
		forget = func() error { return os.Remove(filepath.Join(m.server.Dir(), "data", "dump.rdb")) }
	}
	pid := m.server.Pid()
	err := m.server.RestartWith("--key-load-delay", "50", "--loading-process-events-interval-bytes", "1024")
	if err != nil {
		return fail(errors.Join(err, m.server.Restart(), forget()))
	}
	heal := func(ctx context.Context) error {
		if err := m.client.ConfigSet(ctx, "key-load-delay", "0").Err(); err != nil {
			return fmt.Errorf("loading: %w", err)
		}
		for {
			err := m.client.Ping(ctx).Err()
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("loading: it does not end: %w", err)
			}
			pause(ctx)
		}
		return errors.Join(m.client.Eval(ctx, clearBallast, keys, ballast).Err(), forget())
	}
	var answer error
	loads := func() bool {
		answer = m.client.Get(ctx, probe).Err()
		return redis.HasErrorPrefix(answer, "LOADING")
	}
	if !poll(ctx, 5*time.Second, loads) {
		return fail(errors.Join(answered("a GET", answer), heal(ctx)))
	}
	return seen(heal, "process %d is gone, the next one answered: %v", pid, answer), nil
}
