// Package subject is this library as the harness sees any lock.
package subject

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/boottime"
	"github.com/seed-624411e5/redlock/internal/mutant"
	"github.com/seed-624411e5/redlock/single"
)

// Redlock is this library.
type Redlock struct {
	Label   string
	Options redlock.Options
	// Mutant names the mutant that the program has to be built with; empty: none.
	Mutant string
	// Hasty makes clients change from old masters to new ones without a time with both, which is forbidden.
	Hasty bool
	// Lacks are kinds of locks that it does without.
	Lacks []history.Kind
	// Aged makes masters look as if they had run for longer than the restart guard.
	Aged bool
}

// Name implements workload.Subject.
func (s Redlock) Name() string { return s.Label }

// Supports implements workload.Subject: this library has all kinds.
func (s Redlock) Supports(kind history.Kind) error {
	if slices.Contains(s.Lacks, kind) {
		return fmt.Errorf("%w: %s has no %s locks", workload.ErrUnsupported, s.Label, kind)
	}
	return nil
}

// Patience implements workload.Patient.
func (s Redlock) Patience(ttl time.Duration) time.Duration {
	if s.Options.RequestTimeout > 0 {
		return s.Options.RequestTimeout
	}
	return min(max(ttl/20, 10*time.Millisecond), time.Second)
}

// RenewsHolds implements workload.Renewer.
func (s Redlock) RenewsHolds() {}

// SupportsSeveral implements workload.Several.
func (s Redlock) SupportsSeveral() error { return nil }

// OwnerOf implements workload.OwnerReader. A plain lock's key has the owner itself; of the other kinds each hold is
// mode:owner:id.
func (s Redlock) OwnerOf(raw string) string {
	_, rest, ok := strings.Cut(raw, ":")
	end := strings.LastIndexByte(rest, ':')
	if !ok || end < 0 {
		return raw
	}
	return rest[:end]
}

// WithClock implements workload.Clocked.
func (s Redlock) WithClock(wall func() time.Time) workload.Subject {
	s.Options.Clock = clock{boottime.Now, wall}
	return s
}

// InVirtualTime implements workload.Virtual.
func (s Redlock) InVirtualTime() workload.Subject {
	origin := time.Now().Add(-time.Hour)
	s.Options.Clock = clock{func() time.Duration { return time.Since(origin) }, time.Now}
	return s
}

// clock implements redlock.Clock.
type clock struct {
	now  func() time.Duration
	wall func() time.Time
}

func (c clock) Now() time.Duration                              { return c.now() }
func (c clock) Wall() time.Time                                 { return c.wall() }
func (clock) AfterFunc(d time.Duration, f func()) redlock.Timer { return time.AfterFunc(d, f) }

// Open implements workload.Subject.
func (s Redlock) Open(ctx context.Context, addrs []string) (workload.Locker, error) {
	return s.OpenSecured(ctx, endpoint.AllPlain(addrs))
}

// OpenSecured implements workload.Secured. It opens the lock that its name says, or fails. Clients
// send credentials, so that a fault can change them.
func (s Redlock) OpenSecured(ctx context.Context, all []endpoint.Endpoint) (workload.Locker, error) {
	return s.openSets(ctx, [][]endpoint.Endpoint{all})
}

// OpenMembers implements workload.Members.
func (s Redlock) OpenMembers(ctx context.Context, m workload.Membership,
	tell func(workload.Ballot),
) (workload.Locker, error) {
	s = s.telling(slices.Concat(m.Sets...), tell)
	s.Options.Generation = m.Generation
	if s.Hasty {
		m.Sets = m.Sets[len(m.Sets)-1:]
	}
	return s.openSets(ctx, m.Sets)
}

// openSets opens a client of one set of masters, or of two.
func (s Redlock) openSets(ctx context.Context, sets [][]endpoint.Endpoint) (workload.Locker, error) {
	if has := mutant.Built(); s.Mutant != has {
		return nil,
			fmt.Errorf("chaos: subject %s wants the engine with the mutant %q, and this program was built with %q "+
				"(empty: none)", s.Label, s.Mutant, has)
	}
	if s.Aged {
		if err := age(ctx, slices.Concat(sets...), s.Options.RestartGuard); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l := ownLocker{}
	voters := make([][]redlock.Master, len(sets))
	opened := make(map[string]*single.Master) // by address: one of both sets is the same Master in both
	for i, set := range sets {
		for _, e := range set {
			m, err := opened[e.Addr], error(nil)
			if m == nil {
				m, err = s.master(e)
			}
			if err != nil {
				return nil, errors.Join(err, l.closeMasters())
			}
			if opened[e.Addr] == nil {
				opened[e.Addr], l.masters = m, append(l.masters, m)
			}
			voters[i] = append(voters[i], m)
		}
	}
	var err error
	if len(voters) == 1 {
		l.Locker, err = redlock.New(voters[0], s.Options)
	} else {
		l.Locker, err = redlock.NewJoint(voters[0], voters[1], s.Options)
	}
	if err != nil {
		return nil, errors.Join(err, l.closeMasters())
	}
	return l, nil
}

// master opens one as redlock.Dial does.
func (s Redlock) master(e endpoint.Endpoint) (*single.Master, error) {
	opt, err := clientOptions(e)
	if err != nil {
		return nil, err
	}
	options := single.Options{RestartGuard: s.Options.RestartGuard}
	if s.Options.Clock != nil {
		options.Clock = s.Options.Clock.Now
	}
	return single.Open(opt, options)
}

// clientOptions returns the options of a client that sends credentials, even to masters that accept any.
func clientOptions(e endpoint.Endpoint) (*redis.Options, error) {
	opt, err := endpoint.Options(e)
	if err == nil && opt.Username == "" && opt.Password == "" {
		opt.Username, opt.Password = masters.User, masters.Password
	}
	return opt, err
}

// age writes to each master the mark of a master that has run long enough to vote. The masters were
// started a moment ago, and a run has no time to wait.
func age(ctx context.Context, all []endpoint.Endpoint, guard time.Duration) error {
	for _, e := range all {
		opt, err := clientOptions(e)
		if err != nil {
			return err
		}
		opt.MaxRetries = -1
		client := redis.NewClient(opt)
		err = client.Set(ctx, single.GuardKey, guard.Milliseconds(), 0).Err()
		if err = errors.Join(err, client.Close()); err != nil {
			return fmt.Errorf("chaos: %s: %w", e.Addr, err)
		}
	}
	return nil
}

// ownLocker implements workload.Locker.
type ownLocker struct {
	*redlock.Locker
	masters []*single.Master
}

func (l ownLocker) Close(ctx context.Context) error {
	return errors.Join(l.Locker.Close(ctx), l.closeMasters())
}

func (l ownLocker) closeMasters() error {
	var err error
	for _, m := range l.masters {
		err = errors.Join(err, m.Close())
	}
	return err
}

func (l ownLocker) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	var opts []redlock.Option
	if r.Renew {
		opts = append(opts, redlock.AutoRenew())
	}
	if r.ToBound {
		opts = append(opts, redlock.Grace(time.Nanosecond))
	}
	switch r.Kind {
	case history.Fenced:
		opts = append(opts, redlock.Fenced())
	case history.Shared:
		opts = append(opts, redlock.Shared())
	case history.Exclusive:
		opts = append(opts, redlock.Exclusive())
	case history.Reentrant:
		opts = append(opts, redlock.Reentrant(cmp.Or(r.Owner, rand.Text())))
	}
	if len(r.Also) > 0 {
		opts = append(opts, redlock.AndKeys(r.Also...))
	}
	acquire := l.Locker.Acquire
	if r.Once {
		acquire = l.TryAcquire
	}
	lock, err := acquire(ctx, r.Key, r.TTL, opts...)
	if err != nil {
		return nil, translate(err)
	}
	return ownHold{lock}, nil
}

// translate puts the library's errors into the workload's words.
func translate(err error) error {
	for own, word := range map[error]error{
		redlock.ErrHeld: workload.ErrHeld, redlock.ErrContended: workload.ErrHeld,
		redlock.ErrNoQuorum: workload.ErrNoQuorum, redlock.ErrExpired: workload.ErrExpired,
		redlock.ErrNotHeld: workload.ErrLost,
	} {
		if errors.Is(err, own) {
			return fmt.Errorf("%w: %w", word, err)
		}
	}
	return err
}

// ownHold implements workload.Hold.
type ownHold struct{ *redlock.Lock }

func (h ownHold) Extend(ctx context.Context, ttl time.Duration) error {
	return translate(h.Lock.Extend(ctx, ttl))
}

func (h ownHold) Release(ctx context.Context) error { return translate(h.Lock.Release(ctx)) }

// Unrenewed is the subject with all that it has but renewal.
func Unrenewed(s Redlock) workload.Subject {
	return struct {
		workload.Subject
		workload.Secured
		workload.VoteTeller
		workload.Patient
		workload.Several
		workload.OwnerReader
		workload.Members
	}{s, s, s, s, s, s, s}
}
