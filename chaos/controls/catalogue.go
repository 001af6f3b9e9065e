package controls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Entry is a lock of the catalogue: [Textbook] with one difference. A nil field means the same as
// in Textbook.
type Entry struct {
	Name string
	// Text describes the defect in a sentence.
	Text string
	// Scenario is where it must be caught, Oracle by what, and For how long a run of it lasts.
	Scenario, Oracle string
	For              time.Duration
	// Sample marks one of those that every test run has; the command controls runs all.
	Sample bool

	// quorum is how many masters it wants of so many.
	quorum func(masters int) int
	// acquire replaces Acquire.
	acquire func(ctx context.Context, l workload.Locker, r workload.Request) (workload.Hold, error)
	// owner returns the owner that the lock reports.
	owner func(owner string) string
	// extend and release replace the operations of a hold.
	extend  func(ctx context.Context, h workload.Hold, ttl time.Duration) error
	release func(ctx context.Context, h workload.Hold) error
	// token makes fencing tokens, which there are none of.
	token func(wall time.Time) uint64
	// done replaces Done, which there is none of.
	done func() <-chan struct{}
}

// releaseSome releases a hold on the first three masters alone.
func releaseSome(ctx context.Context, h workload.Hold) error {
	part := *h.(*hold)
	all := part.locker
	part.locker, part.acquired = &locker{variant: all.variant, quorum: 2, masters: all.masters[:3], tell: all.tell},
		part.acquired[:3]
	err := part.Release(ctx)
	part.locker.cleanup.Wait()
	return err
}

var errBroken = errors.New("controls: broken on purpose")

// Catalogue lists broken locks, each with the oracle that must find it.
func Catalogue() []Entry {
	const sec = time.Second
	idle := func(context.Context, workload.Hold) error { return nil }
	return []Entry{
		{
			Name: "owner-wrong", Text: "It reports an owner that no master has, and its release does nothing.",
			Scenario: "calm", Oracle: "owner", For: 5 * sec, release: idle, owner: func(string) string {
				return newOwner()
			},
		},
		{
			Name: "owner-missing", Text: "It reports no owner, and its release does nothing.",
			Scenario: "calm", Oracle: "released", For: 5 * sec, release: idle, owner: func(string) string { return "" },
		},
		{
			Name: "quorum-of-all", Text: "It wants all masters, so that nobody gets a lock while one is down.",
			Scenario: "broken-network", Oracle: "outage", For: 25 * sec, quorum: func(n int) int { return n },
		},
		{
			Name: "release-errors", Text: "Every release gives back the key and fails.",
			Scenario: "calm", Oracle: "operations", For: 4 * sec, Sample: true,
			release: func(ctx context.Context, h workload.Hold) error { return errors.Join(errBroken, h.Release(ctx)) },
		},
		{
			Name: "release-lost", Text: "Every release gives back the key and says that the hold was lost.",
			Scenario: "broken-network", Oracle: "operations", For: 10 * sec,
			release: func(ctx context.Context, h workload.Hold) error {
				return errors.Join(workload.ErrLost, h.Release(ctx))
			},
		},
		{
			Name: "extend-errors", Text: "Every extension fails.", Scenario: "many-keys", Oracle: "operations",
			For:    8 * sec,
			extend: func(context.Context, workload.Hold, time.Duration) error { return errBroken },
		},
		{
			Name: "extend-lost", Text: "Every extension says that the hold was lost.", Scenario: "many-keys",
			Oracle: "operations", For: 8 * sec,
			extend: func(context.Context, workload.Hold, time.Duration) error { return workload.ErrLost },
		},
		{
			Name: "release-never-returns", Text: "Every release gives back the key and returns when its context ends.",
			Scenario: "many-keys", Oracle: "operations", For: 24 * sec, // a worker releases every ten seconds
			release: func(ctx context.Context, h workload.Hold) error {
				_ = h.Release(ctx)
				<-ctx.Done()
				return ctx.Err()
			},
		},
		{
			Name: "release-on-three", Text: "A release asks three of five masters, and leaves the others to the ttl.",
			Scenario: "calm", Oracle: "released", For: 5 * sec, release: releaseSome,
		},
		{
			Name: "context-ignored", Text: "An acquisition goes on after its caller has given up.",
			Scenario: "paused-clients", Oracle: "context", For: 10 * sec,
			acquire: func(ctx context.Context, l workload.Locker, r workload.Request) (workload.Hold, error) {
				<-time.After(time.Second)
				return l.Acquire(context.WithoutCancel(ctx), r)
			},
		},
		{
			Name: "goroutine-for-each-hold", Text: "Each hold leaves a goroutine until the client is closed.",
			Scenario: "calm", Oracle: "growth", For: 10 * sec,
			acquire: func(ctx context.Context, l workload.Locker, r workload.Request) (workload.Hold, error) {
				closed := l.(*locker).closed
				go func() { <-closed }()
				return l.Acquire(ctx, r)
			},
		},
		{
			Name: "done-early", Text: "Done closes when the lock is granted.", Scenario: "calm", Oracle: "operations",
			For:  4 * sec,
			done: func() <-chan struct{} { c := make(chan struct{}); close(c); return c },
		},
		{
			Name: "token-from-clock", Text: "Tokens are the client's time of day in microseconds.",
			Scenario: "wrong-clocks", Oracle: "token-order", For: 8 * sec, Sample: true,
			token: func(wall time.Time) uint64 { return uint64(wall.UnixMicro()) },
		},
		{
			Name: "held-always", Text: "Every second acquisition is refused without asking.", Scenario: "many-keys",
			Oracle: "availability", For: 6 * sec,
			acquire: func(ctx context.Context, l workload.Locker, r workload.Request) (workload.Hold, error) {
				if time.Now().UnixNano()/1000%2 == 0 {
					return nil, workload.ErrHeld
				}
				return l.Acquire(ctx, r)
			},
		},
		{
			Name: "panics", Text: "Every tenth acquisition panics.", Scenario: "many-keys", Oracle: "availability",
			For: 6 * sec,
			acquire: func(ctx context.Context, l workload.Locker, r workload.Request) (workload.Hold, error) {
				if time.Now().UnixNano()/1000%10 == 0 {
					panic(errBroken) //nolint:forbidigo // that is what is wrong with it
				}
				return l.Acquire(ctx, r)
			},
		},
	}
}

// Subject is the entry as a subject.
func (e *Entry) Subject() workload.Subject { return altered{e, time.Now} }

// FindEntry returns the entry of that name.
func FindEntry(name string) (*Entry, error) {
	all := Catalogue()
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("controls: no broken lock %q in the catalogue", name)
	}
	return &all[i], nil
}

// altered is an entry as a subject.
type altered struct {
	*Entry
	wall func() time.Time
}

// WithClock implements workload.Clocked.
func (s altered) WithClock(wall func() time.Time) workload.Subject { return altered{s.Entry, wall} }

// Name implements workload.Subject.
func (s altered) Name() string { return s.Entry.Name }

// Supports implements workload.Subject.
func (s altered) Supports(kind history.Kind) error {
	if kind == history.Fenced && s.token != nil {
		return nil
	}
	return blind{Variant(s.Name())}.Supports(kind)
}

// Open implements workload.Subject.
func (s altered) Open(ctx context.Context, addrs []string) (workload.Locker, error) {
	return s.OpenSecured(ctx, plain(addrs))
}

// OpenSecured implements workload.Secured.
func (s altered) OpenSecured(ctx context.Context, masters []endpoint.Endpoint) (workload.Locker, error) {
	inner, err := subject{Textbook}.OpenTelling(ctx, masters, func(workload.Ballot) {})
	if err != nil {
		return nil, err
	}
	if s.quorum != nil {
		inner.(*locker).quorum = s.quorum(len(masters))
	}
	return alteredLocker{inner, s}, nil
}

type alteredLocker struct {
	workload.Locker
	of altered
}

// Acquire implements workload.Locker.
func (l alteredLocker) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	acquire := l.of.acquire
	if acquire == nil {
		acquire = func(ctx context.Context, l workload.Locker, r workload.Request) (workload.Hold, error) {
			return l.Acquire(ctx, r)
		}
	}
	h, err := acquire(ctx, l.Locker, r)
	if err != nil {
		return nil, err
	}
	out := alteredHold{Hold: h, entry: l.of.Entry}
	if l.of.token != nil {
		out.token = l.of.token(l.of.wall())
	}
	return out, nil
}

type alteredHold struct {
	workload.Hold
	entry *Entry
	token uint64
}

// Token implements workload.Hold.
func (h alteredHold) Token() uint64 { return h.token }

// Owner implements workload.Hold.
func (h alteredHold) Owner() string {
	if h.entry.owner != nil {
		return h.entry.owner(h.Hold.Owner())
	}
	return h.Hold.Owner()
}

// Done implements workload.Hold.
func (h alteredHold) Done() <-chan struct{} {
	if h.entry.done != nil {
		return h.entry.done()
	}
	return h.Hold.Done()
}

// Extend implements workload.Hold.
func (h alteredHold) Extend(ctx context.Context, ttl time.Duration) error {
	if h.entry.extend != nil {
		return h.entry.extend(ctx, h.Hold, ttl)
	}
	return h.Hold.Extend(ctx, ttl)
}

// Release implements workload.Hold.
func (h alteredHold) Release(ctx context.Context) error {
	if h.entry.release != nil {
		return h.entry.release(ctx, h.Hold)
	}
	return h.Hold.Release(ctx)
}
