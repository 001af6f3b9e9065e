package hazards_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/leader"
	"github.com/seed-624411e5/redlock/sharded"
	"github.com/seed-624411e5/redlock/single"
)

func TestHazard52TheGuardMeansTheSameHoweverALockerIsMade(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		masters []redlock.Master
		asked   time.Duration
		most    time.Duration // the longest ttl that may be taken; 0: New is refused; an hour: any
		says    string
	}{
		"asked for, and not there":       {Guards(-1, -1, -1), s, 0, "master 1 of 3, m1:6379, has no restart guard"},
		"asked for, and off":             {Guards(0, 0, 0), s, 0, "has no restart guard"},
		"asked for, and one has none":    {Guards(s, s, -1), s, 0, "master 3 of 3, m3:6379, has no restart guard"},
		"asked for, and one has less":    {Guards(s, s/2, s), s, 0, "m2:6379, has one of 500ms only"},
		"mixed":                          {Guards(s, -1, s), 0, 0, "one has a restart guard and the other has none"},
		"mixed, the first has none":      {Guards(0, s, s), 0, 0, "one has a restart guard and the other has none"},
		"not asked for, and there":       {Guards(2*s, s, 3*s), 0, s, ""},
		"asked for, and there":           {Guards(2*s, s, 3*s), s, s, ""},
		"asked for, and longer":          {Guards(2*s, 2*s, 3*s), s, s, ""},
		"neither asked for nor there":    {Guards(-1, 0, -1), 0, time.Hour, ""},
		"one master, guarded as in docs": {Guards(s), 0, s, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, err := redlock.New(c.masters, redlock.Options{RestartGuard: c.asked, Clock: NewClock()})
			if c.most == 0 {
				if Is(t, err, redlock.ErrInvalid); err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: %v", name, err)
				}
				if err == nil {
					CloseLocker(t, l)
				}
				return
			}
			Must(t, err)
			defer CloseLocker(t, l)
			longer := c.most + time.Millisecond
			if c.most == time.Hour {
				longer = c.most
			} else {
				for what, err := range map[string]error{
					"Acquire": Try(t, l, Key, redlock.AutoRenew()), // for longTTL
					"Do":      l.Do(t.Context(), Key, longer, func(context.Context) error { return errors.New("ran") }),
				} {
					Refused(t, name+": "+what+" for longer than the guard", err)
				}
				_, err := leader.NewElection(l, Key, longer)
				Is(t, err, redlock.ErrInvalid)
			}
			lock := Acquire(t, l, c.most, redlock.AutoRenew())
			if err := lock.Extend(t.Context(), longer); (err == nil) != (longer == c.most) {
				t.Errorf("%s: Extend for %v: %v", name, longer, err)
			}
			Must(t, lock.Release(t.Context()))
		})
	}
}

// The scenario of the hazard on real servers: masters that were opened without a guard.
func TestHazard52NewRefusesMastersThatWereOpenedWithoutTheGuard(t *testing.T) {
	servers := redistest.StartN(t, 3)
	open := func(guard time.Duration) []redlock.Master {
		return WrapEach(servers, func(_ int, s *redistest.Server) redlock.Master {
			m, err := single.Dial(s.URL(), single.Options{RestartGuard: guard})
			Must(t, err)
			t.Cleanup(func() { Must(t, m.Close()) })
			return m
		})
	}
	_, err := redlock.New(open(0), redlock.Options{RestartGuard: time.Second})
	Is(t, err, redlock.ErrInvalid)
	l, err := redlock.New(open(time.Second), redlock.Options{}) // as the command does
	Must(t, err)
	defer CloseLocker(t, l)
	_, err = l.TryAcquire(t.Context(), Key, 30*time.Second)
	Is(t, err, redlock.ErrInvalid)
	groups, err := sharded.New([]sharded.Group{{Name: "a", Masters: open(time.Second)}}, sharded.Options{})
	Must(t, err)
	defer func() { Must(t, groups.Close(context.Background())) }()
	_, err = groups.Acquire(t.Context(), Key, 30*time.Second)
	Is(t, err, redlock.ErrInvalid)
}

// cancellable is a master that sends no more requests once the context has ended, like a network client.
type cancellable struct {
	*Fake
	asked func(*single.Request)
}

func (m *cancellable) Do(ctx context.Context, batch []*single.Call) {
	if ctx.Err() != nil {
		for _, c := range batch {
			c.Err, c.Sent = ctx.Err(), false
		}
		return
	}
	m.Fake.Do(ctx, batch)
	for _, c := range batch {
		m.asked(c.Request)
	}
}

func TestHazard67ACheckThatIsCutShortLeavesNothingAndSaysWhy(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		for _, at := range []single.Op{single.Acquire, single.Extend, single.Inspect, single.Release} {
			why := errors.New("the operator has seen enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			t.Cleanup(func() { cancel(nil) })
			voters := WrapEach(masters, func(_ int, m *Fake) redlock.Master {
				return &cancellable{m, func(r *single.Request) {
					if r.Op == at {
						cancel(why)
					}
				}}
			})
			l, err := redlock.New(voters, redlock.Options{Clock: NewClock()})
			Must(t, err)
			if _, err := l.Check(ctx); err != nil { // else all had answered before
				Is(t, err, context.Canceled)
				Is(t, err, why)
			}
			Must(t, l.Close(t.Context()))
			for _, m := range masters {
				m.Mu.Lock()
				if len(m.Keys) > 0 {
					t.Errorf("cut short at %v: %s still has %v", at, m.Name(), m.Keys)
				}
				clear(m.Keys)
				m.Mu.Unlock()
			}
		}
	})
}

func TestHazard68KeysThatAreTheSameCountOnce(t *testing.T) {
	WithLocker(t, 1, func(t *testing.T, _ Fakes, l *redlock.Locker) {
		lock := Acquire(t, l, LongTTL, redlock.AndKeys(slices.Repeat([]string{"a", "b"}, 5000)...))
		if n := len(lock.Keys()); n != 3 {
			t.Errorf("%d keys, want 3", n)
		}
		Must(t, lock.Release(t.Context()))
		var keys []string
		for i := range 1024 {
			keys = append(keys, fmt.Sprint("k", i))
		}
		_, err := l.TryAcquire(t.Context(), Key, LongTTL, redlock.AndKeys(keys...))
		if Is(t, err, redlock.ErrInvalid); err == nil || !strings.Contains(err.Error(), "1025 keys") {
			t.Error(err)
		}
	})
}

func TestHazard68TheErrorNamesATTLBelowAMillisecond(t *testing.T) {
	WithLocker(t, 1, func(t *testing.T, _ Fakes, l *redlock.Locker) {
		for _, ttl := range []time.Duration{-time.Hour, -1, 0, time.Millisecond - 1} {
			_, err := l.TryAcquire(t.Context(), Key, ttl)
			if Is(t, err, redlock.ErrInvalid); err == nil || strings.Contains(err.Error(), "allowance") ||
				!strings.Contains(err.Error(), ttl.String()) {
				t.Errorf("ttl %v: %v", ttl, err)
			}
		}
	})
}

func TestHazard68CloseTakesNoLongerThanItsContext(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		l, err := redlock.New(masters.Masters(), redlock.Options{Clock: NewClock(), RequestTimeout: time.Second})
		Must(t, err)
		Acquire(t, l, time.Minute, redlock.AutoRenew())
		masters.Behave(On(single.Acquire, Act{Lost: true}))
		go func() { _, _ = l.TryAcquire(t.Context(), "another", time.Minute) }()
		synctest.Wait()
		ctx := Within(t, 100*time.Millisecond)
		began := time.Now()
		Is(t, l.Close(ctx), context.DeadlineExceeded)
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("Close took %v, and its context 100ms", took)
		}
		Settle(2 * time.Second)
	})
}

func TestHazard82TheErrorOfRunDoesNotDependOnWhenItsContextEnded(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, _ Fakes, l *redlock.Locker) {
		e, err := leader.NewElection(l, Key, time.Second)
		Must(t, err)
		why := errors.New("the deployment")
		var said []string
		for _, moment := range []string{"before", "waiting", "leading", "after a term"} {
			ctx, cancel := context.WithCancelCause(t.Context())
			other := &leader.Term{}
			switch moment {
			case "before":
				cancel(why)
			case "waiting":
				other, err = e.Campaign(t.Context())
				Must(t, err)
				time.AfterFunc(300*time.Millisecond, func() { cancel(why) })
			}
			err := e.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
				if moment == "leading" {
					time.AfterFunc(300*time.Millisecond, func() { cancel(why) })
					<-ctx.Done()
					return ctx.Err()
				}
				cancel(why)
				return nil
			})
			Is(t, err, why)
			Is(t, err, context.Canceled)
			IsNot(t, err, redlock.ErrHeld, redlock.ErrNotHeld, redlock.ErrNoQuorum)
			said = append(said, err.Error())
			if moment == "waiting" {
				Must(t, other.Resign(t.Context()))
			}
		}
		if len(slices.Compact(said)) != 1 {
			t.Errorf("Run returned %q", said)
		}
	})
}

func TestHazard82CloseEndsTheTermOfALeaderThatRuns(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		e, err := leader.NewElection(l, Key, time.Second)
		Must(t, err)
		ran, leads := make(chan error), make(chan struct{})
		go func() {
			ran <- e.Run(context.Background(), func(ctx context.Context, _ *leader.Term) error {
				close(leads)
				<-ctx.Done()
				Is(t, context.Cause(ctx), redlock.ErrClosed)
				return ctx.Err()
			})
		}()
		<-leads
		Pass(10 * time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		Must(t, l.Close(ctx))
		Is(t, <-ran, redlock.ErrClosed)
		masters.AllFree(t)
	})
}

func TestALockThatWasNotAcquiredIsOver(t *testing.T) {
	ctx := t.Context()
	for name, lock := range map[string]*redlock.Lock{"nil": nil, "zero": {}} {
		for _, err := range []error{
			lock.Err(), lock.Release(ctx), lock.Extend(ctx, time.Second), lock.Verify(ctx),
			context.Cause(lock.Context(ctx)),
		} {
			Is(t, err, redlock.ErrNotHeld)
		}
		if lock.Key() != "" || lock.Keys() != nil || lock.Owner() != "" || lock.Token() != 0 || lock.Remaining() != 0 ||
			lock.Until().After(time.Now()) {
			t.Errorf("a %s Lock has something", name)
		}
		<-lock.Done()
		<-lock.Context(ctx).Done()
	}
	var term *leader.Term
	for _, err := range []error{term.Err(), term.Resign(ctx), context.Cause(term.Context(ctx))} {
		Is(t, err, redlock.ErrNotHeld)
	}
	if term.Token() != 0 || term.ID() != "" || term.Until().After(time.Now()) {
		t.Error("a nil Term has something")
	}
	<-term.Done()
}

func TestEveryMethodRefusesANilContext(t *testing.T) {
	Bubble(t, 1, func(t *testing.T, masters Fakes) {
		lock := Acquire(t, masters.Locker(t, redlock.Options{}), LongTTL)
		var none context.Context
		for _, err := range []error{
			lock.Release(none), lock.Extend(none, LongTTL), lock.Verify(none), context.Cause(lock.Context(none)),
		} {
			Is(t, err, redlock.ErrInvalid)
		}
		Must(t, lock.Err())
		Must(t, lock.Release(t.Context()))
	})
}

func TestDialRefusesAContextThatHasEnded(t *testing.T) {
	why := errors.New("not any more")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	l, err := redlock.Dial(ctx, []string{"redis://127.0.0.1:1"}, redlock.Options{})
	if Is(t, err, context.Canceled); l != nil {
		t.Error("a Locker was returned together with an error")
	}
	Is(t, err, why)
	//nolint:staticcheck // that is what is tested
	_, err = redlock.Dial(nil, []string{"redis://127.0.0.1:1"}, redlock.Options{})
	Is(t, err, redlock.ErrInvalid)
}
