package masters

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// probe is the key that actions use to observe their own effect.
const probe = "redlock-chaos:probe"

// commands does what can be done to a master by sending it commands.
type commands struct {
	client *redis.Client
	// dial opens a connection as a client of the lock would, to observe what happens to one.
	dial func() *redis.Client
}

// poolSize is how many connections a client has at the most.
const poolSize = 4

// newClient is a client for one master without retries, whose calls end with their context.
func newClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true, DialTimeout: 2 * time.Second,
		DialerRetries: 1, DisableIdentity: true, PoolSize: poolSize, ReadTimeout: 3 * time.Second, WriteTimeout: 3 * time.Second,
	})
}

// once makes a heal function that does its work a single time, also when that fails.
func once(f func(context.Context) error) func(context.Context) error {
	var mu sync.Mutex
	done := false
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if done || f == nil {
			return nil
		}
		done = true
		return f(ctx)
	}
}

func seen(heal func(context.Context) error, format string, args ...any) Injection {
	return Injection{Observed: fmt.Sprintf(format, args...), Heal: once(heal)}
}

// inject does what action says. Another fault may keep the master busy or have it read its data back just now: then it
// is asked again, until it takes commands or ctx is done.
func (c *commands) inject(ctx context.Context, action Action, p Params) (Injection, error) {
	for {
		done, err := c.act(ctx, action, p)
		if !redis.HasErrorPrefix(err, "BUSY") && !redis.HasErrorPrefix(err, "LOADING") {
			return done, err
		}
		select {
		case <-ctx.Done():
			return done, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (c *commands) act(ctx context.Context, action Action, p Params) (Injection, error) {
	switch action {
	case ClientKill:
		return c.clientKill(ctx)
	case FlushAll:
		return c.flushAll(ctx)
	case ScriptFlush:
		return c.scriptFlush(ctx)
	case Evict:
		return c.evict(ctx)
	case Busy:
		return c.busy(ctx, p.For)
	case MaxClients:
		return c.maxClients(ctx)
	case ClockStep:
		return c.moveTTLs(ctx, p.Step)
	default:
		return Injection{}, unavailable("%s can't be done by a command", action)
	}
}

func (c *commands) clientKill(ctx context.Context) (Injection, error) {
	victim := c.dial()
	defer victim.Close()
	if err := victim.Ping(ctx).Err(); err != nil {
		return Injection{}, fmt.Errorf("client-kill: %w", err)
	}
	n, err := c.client.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Result()
	if err == nil && n == 0 {
		err = errors.New("no connection was closed")
	}
	if err != nil {
		return Injection{}, fmt.Errorf("client-kill: %w", err)
	}
	for range poolSize { // this client's own other connections were closed, too: find that out now
		_ = c.client.Ping(ctx).Err()
	}
	return seen(nil, "%d connections closed", n), nil
}

func (c *commands) flushAll(ctx context.Context) (Injection, error) {
	if err := c.client.Set(ctx, probe, "here", time.Minute).Err(); err != nil {
		return Injection{}, fmt.Errorf("flushall: %w", err)
	}
	n, _ := c.client.DBSize(ctx).Result()
	if err := c.client.FlushAll(ctx).Err(); err != nil {
		return Injection{}, fmt.Errorf("flushall: %w", err)
	}
	if left, err := c.client.Exists(ctx, probe).Result(); err != nil || left != 0 {
		return Injection{}, fmt.Errorf("flushall: the probe survived (%v)", err)
	}
	return seen(nil, "%d keys gone", n), nil
}

func (c *commands) scriptFlush(ctx context.Context) (Injection, error) {
	sha, err := c.client.ScriptLoad(ctx, "return 'redlock-chaos probe'").Result()
	if err != nil {
		return Injection{}, fmt.Errorf("script-flush: %w", err)
	}
	if err := c.client.ScriptFlush(ctx).Err(); err != nil {
		return Injection{}, fmt.Errorf("script-flush: %w", err)
	}
	there, err := c.client.ScriptExists(ctx, sha).Result()
	if err != nil || len(there) != 1 || there[0] {
		return Injection{}, fmt.Errorf("script-flush: the probe script survived (%v)", err)
	}
	return seen(nil, "a probe script is gone"), nil
}

func (c *commands) evict(ctx context.Context) (Injection, error) {
	if err := c.client.Set(ctx, probe, "here", time.Minute).Err(); err != nil {
		return Injection{}, fmt.Errorf("evict: %w", err)
	}
	before := c.stat(ctx, "stats", "evicted_keys")
	heal := func(ctx context.Context) error {
		return errors.Join(c.client.ConfigSet(ctx, "maxmemory", "0").Err(),
			c.client.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err())
	}
	err := errors.Join(c.client.ConfigSet(ctx, "maxmemory-policy", "allkeys-random").Err(),
		c.client.ConfigSet(ctx, "maxmemory", "1").Err())
	if err != nil {
		return Injection{}, errors.Join(fmt.Errorf("evict: %w", err), heal(ctx))
	}
	var n int
	evicted := func() bool {
		// A write makes the server look at its memory; with nothing left to evict it is refused.
		_ = c.client.Set(ctx, probe, "here", time.Minute).Err()
		n = c.stat(ctx, "stats", "evicted_keys") - before
		return n > 0
	}
	if !poll(ctx, 2*time.Second, evicted) {
		return Injection{}, errors.Join(errors.New("evict: nothing was evicted"), heal(ctx))
	}
	return seen(heal, "%d keys evicted", n), nil
}

// busy runs a script without end and shows that another client is told so. The script is killed by Heal, or after
// atMost, so that nobody's server spins for ever because a run was killed.
func (c *commands) busy(ctx context.Context, atMost time.Duration) (Injection, error) {
	if atMost <= 0 {
		atMost = 10 * time.Second
	}
	if err := c.client.Ping(ctx).Err(); err != nil {
		return Injection{}, fmt.Errorf("busy: %w", err)
	}
	if err := c.client.ConfigSet(ctx, "lua-time-limit", "1").Err(); err != nil {
		return Injection{}, fmt.Errorf("busy: %w", err)
	}
	background, cancel := context.WithTimeout(context.WithoutCancel(ctx), atMost+10*time.Second)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runner := c.dial()
		defer runner.Close()
		_ = runner.WithTimeout(atMost+10*time.Second).Eval(background, "while true do end", nil).Err()
	}()
	killer := time.AfterFunc(atMost, func() { _ = c.client.ScriptKill(background).Err() })
	heal := once(func(ctx context.Context) error {
		defer cancel()
		killer.Stop()
		var err error
		ended := poll(ctx, 5*time.Second, func() bool {
			err = c.client.ScriptKill(ctx).Err()
			return err == nil || strings.HasPrefix(err.Error(), "NOTBUSY")
		})
		if !ended {
			return fmt.Errorf("busy: the script can't be killed: %w", err)
		}
		<-done
		return nil
	})
	var answer error
	busy := func() bool {
		answer = c.client.Ping(ctx).Err()
		return answer != nil && strings.HasPrefix(answer.Error(), "BUSY")
	}
	if !poll(ctx, atMost, busy) {
		return Injection{}, errors.Join(fmt.Errorf("busy: a ping was answered %v", answer), heal(ctx))
	}
	return seen(heal, "a ping was answered BUSY"), nil
}

func (c *commands) maxClients(ctx context.Context) (Injection, error) {
	conn := c.client.Conn() // keep the connection over which the limit can be lifted again
	fail := func(err error) (Injection, error) {
		return Injection{}, errors.Join(fmt.Errorf("maxclients: %w", err), conn.Close())
	}
	was, err := conn.ConfigGet(ctx, "maxclients").Result()
	if err != nil {
		return fail(err)
	}
	heal := func(ctx context.Context) error {
		return errors.Join(conn.ConfigSet(ctx, "maxclients", was["maxclients"]).Err(), conn.Close())
	}
	if err := conn.ConfigSet(ctx, "maxclients", "1").Err(); err != nil {
		return fail(err)
	}
	if err := conn.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
		return Injection{}, errors.Join(fmt.Errorf("maxclients: %w", err), heal(ctx))
	}
	victim := c.dial()
	defer victim.Close()
	if err := victim.Ping(ctx).Err(); err == nil {
		return Injection{}, errors.Join(errors.New("maxclients: a connection was accepted"), heal(ctx))
	}
	return seen(heal, "a connection was refused"), nil
}

// moveTTLs emulates a step of the clock where the real one can't be moved: every key with a ttl ages by d.
func (c *commands) moveTTLs(ctx context.Context, d time.Duration) (Injection, error) {
	if err := c.client.Set(ctx, probe, "here", 24*time.Hour).Err(); err != nil {
		return Injection{}, fmt.Errorf("clock-step: %w", err)
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
			return Injection{}, fmt.Errorf("clock-step: %w", err)
		}
	}
	after := c.client.PTTL(ctx, probe).Val()
	if gone := before - after; d.Abs() > time.Second && (gone-d).Abs() > d.Abs()/2 {
		return Injection{}, fmt.Errorf("clock-step: the probe's pttl went from %v to %v", before, after)
	}
	return seen(nil, "emulated: ttls of %d keys moved, a probe's from %v to %v", moved, before, after), nil
}

func (c *commands) stat(ctx context.Context, section, name string) int {
	info, err := c.client.Info(ctx, section).Result()
	if err != nil {
		return 0
	}
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(value))
			return n
		}
	}
	return 0
}

// look reads keys, whatever type they are.
func (c *commands) look(ctx context.Context, names []string) ([]Key, error) {
	pipe := c.client.Pipeline()
	types, ttls := make([]*redis.StatusCmd, len(names)), make([]*redis.DurationCmd, len(names))
	values := make([]*redis.StringCmd, len(names))
	for i, name := range names {
		types[i], ttls[i], values[i] = pipe.Type(ctx, name), pipe.PTTL(ctx, name), pipe.Get(ctx, name)
	}
	_, _ = pipe.Exec(ctx) // GET of a hash is an error and expected; what matters is asked one by one
	var keys []Key
	for i, name := range names {
		if err := errors.Join(types[i].Err(), ttls[i].Err()); err != nil {
			return nil, fmt.Errorf("look: %w", err)
		}
		key := Key{Name: name, TTL: ttls[i].Val()}
		switch types[i].Val() {
		case "none":
			continue
		case "string":
			key.Owners = []string{values[i].Val()}
		case "hash":
			key.Owners, _ = c.client.HKeys(ctx, name).Result()
		case "zset":
			key.Owners = c.members(ctx, name)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// members are those of a sorted set whose score, a time in milliseconds, is yet to come by the server's clock: holds that
// have ended by themselves may stay until somebody looks.
func (c *commands) members(ctx context.Context, name string) []string {
	now, err := c.client.Time(ctx).Result()
	if err != nil {
		return nil
	}
	after := "(" + strconv.FormatInt(now.UnixMilli(), 10)
	members, _ := c.client.ZRangeArgs(ctx, redis.ZRangeArgs{Key: name, Start: after, Stop: "+inf", ByScore: true}).Result()
	return members
}

// poll asks until cond is true, ctx is done or the time is over.
func poll(ctx context.Context, within time.Duration, cond func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if cond() {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}
