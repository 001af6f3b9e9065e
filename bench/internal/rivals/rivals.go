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

	"github.com/seed-624411e5/redlock/chaos"
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

// Find returns the named subjects in the order of All. No names mean the default subjects.
func Find(names []string) ([]Rival, error) {
	var found []Rival
	known := make([]string, 0, len(All()))
	for _, r := range All() {
		known = append(known, r.Name())
		if slices.Contains(names, r.Name()) || len(names) == 0 && r.Default {
			found = append(found, r)
		}
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("rivals: no subject %q; there are %s", n, strings.Join(known, ", "))
		}
	}
	return found, nil
}

// plainOnly is the Supports of a library that has only the plain lock.
func plainOnly(name string, kind history.Kind) error {
	if kind == history.Plain {
		return nil
	}
	return fmt.Errorf("%w: %s has no %s locks", workload.ErrUnsupported, name, kind)
}

// client is the common part of all rivals' clients: connections, and renewed holds.
type client struct {
	connections []io.Closer
	renewals    sync.WaitGroup
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
	for _, connection := range c.connections {
		err = errors.Join(err, connection.Close())
	}
	return err
}

// lease is one acquisition, in the words of its library.
type lease interface {
	// extend asks for ttl more and returns the new bound.
	extend(ctx context.Context, ttl time.Duration) (time.Time, error)
	release(ctx context.Context) error
}

// hold implements workload.Hold over a lease.
type hold struct {
	lease lease
	owner string
	stop  context.CancelFunc // of the renewal

	extending sync.Mutex // one extension at a time: redsync's mutexes are not safe for concurrent use
	mu        sync.Mutex
	until     time.Time
}

// renewals is how many times in a ttl a hold is renewed. It leaves time for two failures in a row.
const renewals = 3

// keep makes the hold for a granted acquisition, and renews it if the request asks for that.
func (c *client) keep(r workload.Request, l lease, owner string, until time.Time) *hold {
	// Renewal outlives the call that acquired; Release ends it.
	ctx, stop := context.WithCancel(context.Background())
	h := &hold{lease: l, owner: owner, until: until, stop: stop}
	if r.Renew {
		c.renewals.Go(func() { h.renew(ctx, r.TTL) })
	}
	return h
}

// renew extends until the hold is lost or ctx is done. After another failure it tries again at the next interval.
func (h *hold) renew(ctx context.Context, ttl time.Duration) {
	tick := time.NewTicker(ttl / renewals)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := h.Extend(ctx, ttl); errors.Is(err, workload.ErrLost) {
			return
		}
	}
}

// Owner implements workload.Hold.
func (h *hold) Owner() string { return h.owner }

// Token implements workload.Hold: no rival has one.
func (h *hold) Token() uint64 { return 0 }

// Remaining implements workload.Hold.
func (h *hold) Remaining() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Until(h.until)
}

// Done implements workload.Hold: no rival has such a channel. Its users watch the time.
func (h *hold) Done() <-chan struct{} { return nil }

// Extend implements workload.Hold.
func (h *hold) Extend(ctx context.Context, ttl time.Duration) error {
	h.extending.Lock()
	defer h.extending.Unlock()
	until, err := h.lease.extend(ctx, ttl)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = until
	return nil
}

// Release implements workload.Hold. It ends the renewal without waiting for it: a late extension finds nothing to
// extend.
func (h *hold) Release(ctx context.Context) error {
	h.stop()
	return h.lease.release(ctx)
}
