package controls

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// altered implements workload.Subject for an entry of the catalogue.
type altered struct {
	*Entry
	wall func() time.Time
}

// renewing is an entry that renews holds, in its way.
type renewing struct{ altered }

// RenewsHolds implements workload.Renewer.
func (renewing) RenewsHolds() {}

// WithClock implements workload.Clocked.
func (s altered) WithClock(wall func() time.Time) workload.Subject { return altered{s.Entry, wall} }

func (s altered) Name() string { return s.Entry.Name }

func (s altered) Supports(kind history.Kind) error {
	if kind == history.Fenced && s.token != nil || slices.Contains(s.also, kind) {
		return nil
	}
	return subject{Variant(s.Name())}.Supports(kind)
}

func (s altered) Open(ctx context.Context, addrs []string) (workload.Locker, error) {
	return s.OpenSecured(ctx, endpoint.AllPlain(addrs))
}

// OpenSecured implements workload.Secured.
func (s altered) OpenSecured(ctx context.Context, masters []endpoint.Endpoint) (workload.Locker, error) {
	if s.few > 0 {
		masters = masters[:min(s.few, len(masters))]
	}
	opened, err := subject{Textbook}.OpenTelling(ctx, masters, func(workload.Ballot) {})
	if err != nil {
		return nil, err
	}
	inner := opened.(*locker)
	inner.entry = s.Entry
	if s.quorum != nil {
		inner.quorum = s.quorum(len(masters))
	}
	return alteredLocker{inner, s}, nil
}

// alteredLocker implements workload.Locker.
type alteredLocker struct {
	*locker
	of altered
}

func (l alteredLocker) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	acquire := l.of.acquire
	if acquire == nil {
		acquire = func(ctx context.Context, l *locker, r workload.Request) (workload.Hold, error) {
			return l.Acquire(ctx, r)
		}
	}
	h, err := acquire(ctx, l.locker, r)
	if err != nil {
		return nil, err
	}
	out := &alteredHold{Hold: h, entry: l.of.Entry, done: h.Done(), stop: func() {}}
	if l.of.token != nil {
		out.token = l.of.token(l.locker, l.of.wall())
	}
	if l.of.done != nil {
		out.done = l.of.done(h.Remaining())
	}
	if l.of.renew != nil && r.Renew {
		out.keep(r.TTL)
	}
	return out, nil
}

// alteredHold implements workload.Hold.
type alteredHold struct {
	workload.Hold
	entry *Entry
	token uint64
	done  <-chan struct{}
	stop  func() // ends the renewal
	mu    sync.Mutex
}

// keep begins the renewal.
func (h *alteredHold) keep(ttl time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	var renewal sync.WaitGroup
	renewal.Go(func() { h.entry.renew(ctx, h, ttl) })
	h.stop = func() { cancel(); renewal.Wait() }
}

func (h *alteredHold) Token() uint64 { return h.token }

func (h *alteredHold) Owner() string {
	if h.entry.owner != nil {
		return h.entry.owner(h.Hold.Owner())
	}
	return h.Hold.Owner()
}

func (h *alteredHold) Remaining() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := h.Hold.Remaining()
	if h.entry.remaining != nil {
		return h.entry.remaining(left)
	}
	return left
}

func (h *alteredHold) Done() <-chan struct{} { return h.done }

func (h *alteredHold) Extend(ctx context.Context, ttl time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.entry.extend != nil {
		return h.entry.extend(ctx, h.Hold, ttl)
	}
	return h.Hold.Extend(ctx, ttl)
}

func (h *alteredHold) Release(ctx context.Context) error {
	h.stop()
	if h.entry.release != nil {
		return h.entry.release(ctx, h.Hold)
	}
	return h.Hold.Release(ctx)
}
