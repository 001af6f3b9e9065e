package masters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/seed-624411e5/redlock/chaos/internal/machine"
)

// probe is the key that actions use to observe their own effect.
const probe = "redlock-chaos:probe"

// commands performs the actions that need only commands to a master.
type commands struct {
	client *redis.Client
	// dial opens a connection as a client of the lock would, to observe the effect of faults on it.
	dial func() *redis.Client
	// user and password are the lock clients' credentials; User and Password if both are empty.
	user, password string
}

const (
	// mostIdle is how many idle connections a client keeps.
	mostIdle = 4
	// manyRefusals is the pool size of a go-redis client. After that many refused connections in
	// its life, a client may not dial at all for up to a second at a time. It then notices as late
	// that a master is back. The client keeps memory for each idle connection of the pool.
	manyRefusals = 1 << 12
)

// newClient returns a client for one master. It makes no retries, and its calls end with their context.
func newClient(reach *redis.Options) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: reach.Addr, Username: reach.Username, Password: reach.Password, DB: reach.DB, TLSConfig: reach.TLSConfig,
		MaxRetries: -1, ContextTimeoutEnabled: true, DialTimeout: 2 * time.Second,
		DialerRetries: 1, DisableIdentity: true, PoolSize: manyRefusals, PipelinePoolSize: manyRefusals,
		MaxIdleConns: mostIdle, ReadTimeout: 3 * time.Second, WriteTimeout: 3 * time.Second,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, // it would log
	})
}

// login returns the credentials of the lock's clients.
func (c *commands) login() (user, password string) {
	if c.user == "" && c.password == "" {
		return User, Password
	}
	return cmp.Or(c.user, User), c.password
}

// once makes a heal function that does its work a single time, also when that fails. While another fault keeps the
// master from taking commands it is tried again.
func once(f func(context.Context) error) func(context.Context) error {
	var done sync.Once
	return func(ctx context.Context) (err error) {
		if f == nil {
			return nil
		}
		done.Do(func() {
			for err = f(ctx); passing(err) && ctx.Err() == nil; err = f(ctx) {
				pause(ctx)
			}
		})
		return err
	}
}

// inject performs the action.
func (c *commands) inject(ctx context.Context, action Action, p Params) (Injection, error) {
	return patiently(ctx, func() (Injection, error) { return c.act(ctx, action, p) })
}

// others are the error prefixes of a master with another fault.
var others = []string{"BUSY", "LOADING", "READONLY", "OOM", "MISCONF", "NOAUTH", "NOPERM", "WRONGPASS"}

// patiently does something to a master. Another fault may keep the master busy just now, or from being written to: then
// it is tried again, until the master takes commands or ctx is done; and also where a restart made an end of it.
func patiently(ctx context.Context, do func() (Injection, error)) (Injection, error) {
	for {
		done, err := do()
		if again := errors.Is(err, errAsUsual) || passing(err); !again || ctx.Err() != nil {
			return done, err
		}
		pause(ctx)
	}
}

// passing reports whether an error comes from another fault, which will end.
func passing(err error) bool {
	return err != nil &&
		(closed(err) ||
			slices.ContainsFunc(others, func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) }))
}

// closed reports whether the error means a connection that was idle during a restart or another fault, and was closed.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, net.ErrClosed)
}

func (c *commands) act(ctx context.Context, action Action, p Params) (Injection, error) {
	f, err := FindFault(action)
	if err == nil && f.act == nil {
		err = unavailable("%s can't be done by a command", action)
	}
	if err != nil {
		return Injection{}, err
	}
	done, err := f.act(ctx, c, p)
	if err != nil {
		err = fmt.Errorf("%s: %w", action, err)
	}
	return done, err
}

// says reports whether the server answers and its INFO of persistence contains the text.
func (c *commands) says(ctx context.Context, text string) bool {
	info, _ := c.client.Info(ctx, "persistence").Result()
	return strings.Contains(info, text)
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

// Connections counts the server's connections.
func (c *commands) Connections(ctx context.Context) (int, error) {
	if n := c.stat(ctx, "clients", "connected_clients"); n > 0 {
		return n, nil
	}
	return 0, errors.New("connections: INFO does not say how many there are")
}

// Look implements Master. It reads keys, whatever type they are. What could not be read is an error, never a key
// without an owner. A fault may have closed connections that lay idle; then it reads again.
func (c *commands) Look(ctx context.Context, names []string) (keys []Key, err error) {
	for range lookAttempts {
		if keys, err = c.lookOnce(ctx, names); !closed(err) {
			break
		}
	}
	return keys, err
}

// errNotAnswered is the error of a command without a reply or another error.
var errNotAnswered = errors.New("not answered")

// lookAttempts bounds the attempts to read the keys of a master that closes each connection.
const lookAttempts = 5

// gone is the PTTL of a key that does not exist, as go-redis returns it.
const gone time.Duration = -2

func (c *commands) lookOnce(ctx context.Context, names []string) ([]Key, error) {
	pipe := c.client.Pipeline()
	types, ttls := make([]*redis.StatusCmd, len(names)), make([]*redis.DurationCmd, len(names))
	values := make([]*redis.StringCmd, len(names))
	for i, name := range names {
		types[i], ttls[i], values[i] = pipe.Type(ctx, name), pipe.PTTL(ctx, name), pipe.Get(ctx, name)
	}
	_, failed := pipe.Exec(ctx) // GET of a hash is an error and expected; the important keys are read one by one
	var keys []Key
	for i, name := range names {
		if err := errors.Join(types[i].Err(), ttls[i].Err()); err != nil {
			return nil, fmt.Errorf("look: %w", err)
		}
		if ttls[i].Val() == gone {
			continue // what the other commands say may be about a later key
		}
		key, err := Key{Name: name, TTL: ttls[i].Val()}, error(nil)
		switch types[i].Val() {
		case "": // was not sent: go-redis gives a command no error where the connection was refused while it was set up
			return nil, fmt.Errorf("look: %w", cmp.Or(failed, errNotAnswered))
		case "none":
			continue
		case "string":
			if err = values[i].Err(); errors.Is(err, redis.Nil) {
				continue // it went between the two questions
			}
			// as a member of the set that a hold becomes
			key.Owners = []string{strings.TrimPrefix(values[i].Val(), "[hold]")}
		case "hash":
			key.Owners, err = c.client.HKeys(ctx, name).Result()
		case "zset":
			key.Owners, err = c.members(ctx, name)
		}
		if err != nil {
			return nil, fmt.Errorf("look: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// maxKeys bounds the number of a server's keys that Keyspace reads.
const maxKeys = 200_000

// Keyspace lists all keys with their times to live; negative: no expiry. It leaves out keys that a
// fault has set, since no lock owns them.
func (c *commands) Keyspace(ctx context.Context) (map[string]time.Duration, error) {
	keys := make(map[string]time.Duration)
	for cursor := uint64(0); ; {
		names, next, err := c.client.Scan(ctx, cursor, "*", 1000).Result()
		if err != nil {
			return nil, fmt.Errorf("keyspace: %w", err)
		}
		pipe := c.client.Pipeline()
		ttls := make([]*redis.DurationCmd, len(names))
		for i, name := range names {
			ttls[i] = pipe.PTTL(ctx, name)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, fmt.Errorf("keyspace: %w", err)
		}
		for i, name := range names {
			// it may be gone by now
			if ttl := ttls[i].Val(); ttl != gone && name != probe && !strings.HasPrefix(name, probe+":") {
				keys[name] = ttl
			}
		}
		if cursor = next; cursor == 0 {
			return keys, nil
		}
		if len(keys) > maxKeys {
			return nil, fmt.Errorf("keyspace: there are more than %d keys", maxKeys)
		}
	}
}

// members returns the members of a sorted set with a score that is still in the future on the server's clock; the score
// is a time in milliseconds. Expired holds may stay in the set until a client removes them.
func (c *commands) members(ctx context.Context, name string) ([]string, error) {
	now, err := c.client.Time(ctx).Result()
	if err != nil {
		return nil, err
	}
	after := "(" + strconv.FormatInt(now.UnixMilli(), 10)
	return c.client.ZRangeArgs(ctx, redis.ZRangeArgs{Key: name, Start: after, Stop: "+inf", ByScore: true}).Result()
}

// pause waits a little between two requests.
func pause(ctx context.Context) { pauseFor(ctx, 20*time.Millisecond) }

func pauseFor(ctx context.Context, d time.Duration) { machine.SleepUntil(ctx, time.Now().Add(d)) }

// insistence is the most time for a server to do something that takes no time normally. A context may allow less.
const insistence = 30 * time.Second

// insist repeats an idempotent call until it succeeds, because a busy server, or a busy machine, may answer late.
func insist(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, insistence)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		pause(ctx)
	}
}

// removed removes a file that may be gone.
func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
