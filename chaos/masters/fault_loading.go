package masters

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/internal/machine"
)

// Loading kills the server and restarts it with so much data on disk that it answers LOADING until
// Heal. Heal returns when the server has all its data and serves. A server without an append-only
// file loses the writes between its last save and its end.
const Loading Action = "loading"

var loading = Fault{
	Action: Loading, Text: "the server is killed and restarted, and takes time to load its data", Needs: Server |
		Consent | Process | Arguments,
	Lasts: true, Forgets: true, process: load,
}

const (
	// ballast is the number of keys to load. At each the server sleeps for loadDelay microseconds. Loading takes some
	// seconds in all if Heal does not end the sleeps. A key fills more than a kilobyte of the file, after which the
	// server looks at its connections. So even a server that is woken late answers soon.
	ballast   = 150
	loadDelay = "20000"

	layBallast = `for i = 1, tonumber(ARGV[1]) do
	local hex = {}
	for j = 1, 50 do hex[j] = redis.sha1hex(i .. ':' .. j) end
	redis.call('SET', KEYS[1] .. i, table.concat(hex))
end return 0`
	clearBallast = `for i = 1, tonumber(ARGV[1]) do redis.call('DEL', KEYS[1] .. i) end return 0`
)

func load(ctx context.Context, m *process, _ Params) (Injection, error) {
	keys := []string{probe + ":"}
	sweep := func(ctx context.Context) error {
		err := insist(ctx, func(ctx context.Context) error {
			return m.client.Eval(ctx, clearBallast, keys, ballast).Err()
		})
		if !m.keeps {
			err = errors.Join(err, removed(filepath.Join(m.server.Dir(), "data", "dump.rdb")))
		}
		return err
	}
	fail := func(err error, undo func(context.Context) error) (Injection, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), insistence)
		defer cancel()
		return Injection{}, errors.Join(err, undo(ctx))
	}
	if err := m.client.Ping(ctx).Err(); errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) {
		return Injection{}, err // the server is gone and can't get it later
	}
	err := insist(ctx, func(ctx context.Context) error {
		if err := m.client.Eval(ctx, layBallast, keys, ballast).Err(); err != nil {
			return err
		}
		if m.keeps {
			return rewritten(ctx, m.client)
		}
		return m.client.Save(ctx).Err()
	})
	if err != nil {
		return fail(err, sweep)
	}
	pid := m.server.Pid()
	err = m.server.RestartWith("--key-load-delay", loadDelay, "--loading-process-events-interval-bytes", "1024")
	if err != nil {
		return fail(errors.Join(err, m.server.Restart()), sweep)
	}
	heal := func(ctx context.Context) error {
		serves := func(ctx context.Context) error {
			return errors.Join(m.client.ConfigSet(ctx, "key-load-delay", "0").Err(), m.client.Ping(ctx).Err())
		}
		if err := insist(ctx, serves); err != nil {
			return fmt.Errorf("loading: it does not end: %w", err)
		}
		return sweep(ctx)
	}
	var answer error
	loads := func() bool {
		answer = m.client.Get(ctx, probe).Err()
		return redis.HasErrorPrefix(answer, "LOADING")
	}
	if !machine.Poll(ctx, insistence, loads) {
		return fail(answered("a GET", answer), heal)
	}
	return seen(heal, "process %d is gone, the next one answered: %v", pid, answer), nil
}

// rewritten has the server write its append-only file anew. It then begins with a snapshot, and during the load of one
// the server looks at its connections more often than between commands.
func rewritten(ctx context.Context, c *redis.Client) error {
	if err := c.BgRewriteAOF(ctx).Err(); err != nil {
		return err
	}
	for {
		info, err := c.InfoMap(ctx, "persistence").Result()
		if err != nil {
			return err
		}
		has := info["Persistence"]
		switch {
		case has["aof_rewrite_in_progress"] == "1", has["aof_rewrite_scheduled"] == "1":
			pause(ctx)
		case has["aof_last_bgrewrite_status"] != "ok":
			return errors.New("loading: the append-only file could not be rewritten")
		default:
			return ctx.Err()
		}
	}
}
