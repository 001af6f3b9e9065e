// Package rivals makes other lock libraries subjects of the chaos harness. It uses each as its own documentation says.
//
// Supports refuses features that a rival lacks: shared, fenced and reentrant locks. The adapter does other things as
// the rival's users do them: it tries again until ctx is done, and a ticker extends the holds. The adapter repairs
// nothing for a rival, and keeps nothing from it.
package rivals

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/bench/internal/names"
	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Rival is a lock to compare, this library among them.
type Rival struct {
	workload.Subject
	// Text describes the subject and its settings in a sentence.
	Text string
	// Default reports whether it is compared when no subjects are named.
	Default bool
	// Single reports whether it uses the first master only.
	Single bool
	// ByDone reports whether its holds have no bound: they last until Hold.Done closes.
	ByDone bool
}

// All returns the subjects in the order of the tables, this library first.
func All() []Rival {
	return []Rival{
		{Subject: chaos.Redlock(), Default: true, Text: "this library with its default options"},
		{Subject: chaos.Guarded(), Text: "this library with a restart guard of 4 s, for masters that lose their data"},
		{Subject: Redsync(), Default: true, Text: "go-redsync over go-redis, both with their defaults"},
		{
			Subject: RedsyncFailFast(), Default: true,
			Text: "go-redsync with WithFailFast, which returns as soon as a round is decided",
		},
		{
			Subject: RedsyncTuned(),
			Text: "go-redsync with WithFailFast over go-redis that keeps to the context's deadline and does not " +
				"retry",
		},
		{
			Subject: Naive(), Default: true, Single: true,
			Text: "SET NX PX and compare-and-delete on the first master alone; the other masters do not exist for it",
		},
		{Subject: Redislock(), Single: true, Text: "bsm/redislock over go-redis on the first master alone, both with " +
			"their defaults"},
		{Subject: Rueidislock(), Single: true, ByDone: true, Text: "rueidislock on the first master alone, with a " +
			"majority of one key"},
	}
}

// Names returns the names of all subjects.
func Names() []string { return names.Of(All(), Rival.Name) }

// Find returns the named subjects in the order of All. No names mean the default subjects.
func Find(wanted []string) ([]Rival, error) {
	for _, n := range wanted {
		if !slices.Contains(Names(), n) {
			return nil, fmt.Errorf("rivals: no subject %q; there are %s", n, strings.Join(Names(), ", "))
		}
	}
	return slices.DeleteFunc(All(), func(r Rival) bool {
		return !slices.Contains(wanted, r.Name()) && (len(wanted) > 0 || !r.Default)
	}), nil
}

// rival implements workload.Subject for a library that renews holds. It has plain locks, and the kinds in also.
type rival struct {
	name string
	also []history.Kind
	open func(ctx context.Context, addrs []string) (*client, error)
}

func (s rival) Name() string { return s.name }

// RenewsHolds implements workload.Renewer.
func (rival) RenewsHolds() {}

func (s rival) Supports(kind history.Kind) error {
	if kind == history.Plain || slices.Contains(s.also, kind) {
		return nil
	}
	return fmt.Errorf("%w: %s has no %s locks", workload.ErrUnsupported, s.name, kind)
}

func (s rival) Open(ctx context.Context, addrs []string) (workload.Locker, error) {
	if len(addrs) == 0 {
		return nil, fmt.Errorf("rivals: %s needs a master", s.name)
	}
	c, err := s.open(ctx, addrs)
	if err != nil {
		return nil, err
	}
	c.rival = s
	return c, nil
}

// overRedis implements workload.Subject for a rival over go-redis with its default options. It also logs in, speaks
// TLS, and runs in virtual time.
type overRedis struct {
	rival
	connect func(masters []*redis.Options) *client
}

func (s overRedis) Open(ctx context.Context, addrs []string) (workload.Locker, error) {
	return s.OpenSecured(ctx, endpoint.AllPlain(addrs))
}

// OpenSecured implements workload.Secured.
func (s overRedis) OpenSecured(_ context.Context, masters []endpoint.Endpoint) (workload.Locker, error) {
	if len(masters) == 0 {
		return nil, fmt.Errorf("rivals: %s needs a master", s.name)
	}
	all, err := endpoint.AllOptions(masters)
	if err != nil {
		return nil, err
	}
	c := s.connect(all)
	c.rival = s.rival
	return c, nil
}

// client implements workload.Locker for a rival.
type client struct {
	rival
	// try calls the library once, which may wait.
	try func(ctx context.Context, r workload.Request) (workload.Hold, error)
	// pause returns the time between two calls. It is nil if one call waits until ctx is done.
	pause    func() time.Duration
	close    func(ctx context.Context) error
	renewals sync.WaitGroup
}

// closing closes a client's only connection.
func closing(c io.Closer) func(context.Context) error {
	return func(context.Context) error { return c.Close() }
}

func (c *client) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	if err := c.Supports(r.Kind); err != nil {
		return nil, err
	}
	for {
		h, err := c.try(ctx, r)
		if err == nil {
			return h, nil
		}
		if r.Once || c.pause == nil || ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), err)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(c.pause()):
		}
	}
}

// Close implements workload.Locker. It waits for extensions that are under way, within ctx.
func (c *client) Close(ctx context.Context) error {
	ended := make(chan struct{})
	go func() { c.renewals.Wait(); close(ended) }()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return errors.Join(err, c.close(ctx))
}

// noQuorum is err of a request that did not get an answer from enough servers.
func noQuorum(err error) error { return fmt.Errorf("%w: %w", workload.ErrNoQuorum, err) }
