package redlocktest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/audit"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/semaphore"
	"github.com/seed-624411e5/redlock/sharded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	key = "orders:42"
	ttl = 10 * time.Second
)

var (
	must = locktest.Must
	is   = locktest.Is
	pass = locktest.Settle
)

func try(tb testing.TB, l *redlock.Locker, opts ...redlock.Option) *redlock.Lock {
	tb.Helper()
	k, err := l.TryAcquire(tb.Context(), key, ttl, opts...)
	must(tb, err)
	return k
}

// bubble runs body in virtual time with new masters and a new Locker.
func bubble(t *testing.T, body func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t)
		body(t, masters, masters.Locker(t, redlock.Options{}))
	})
}

func TestALockOfEachKindExcludesAsItShould(t *testing.T) {
	kinds := map[string]struct {
		mine, excluded, admitted []redlock.Option
	}{
		"plain":  {nil, []redlock.Option{redlock.Shared()}, nil},
		"fenced": {[]redlock.Option{redlock.Fenced()}, []redlock.Option{redlock.Fenced()}, nil},
		"shared": {[]redlock.Option{redlock.Shared()}, []redlock.Option{redlock.Exclusive()}, []redlock.Option{
			redlock.Shared(),
		}},
		"exclusive": {[]redlock.Option{redlock.Exclusive()}, []redlock.Option{redlock.Shared()}, nil},
		"reentrant": {
			[]redlock.Option{redlock.Reentrant("job 7")},
			[]redlock.Option{redlock.Reentrant("job 8")},
			[]redlock.Option{redlock.Reentrant("job 7")},
		},
		"several": {
			[]redlock.Option{redlock.AndKeys("orders:43")},
			[]redlock.Option{redlock.AndKeys("orders:44")},
			nil,
		},
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
				other := masters.Locker(t, redlock.Options{})
				lock := try(t, locker, kind.mine...)
				if _, err := other.TryAcquire(t.Context(), key, ttl,
					kind.excluded...); !errors.Is(err, redlock.ErrHeld) {
					t.Errorf("of another kind: %v, want ErrHeld", err)
				}
				if kind.admitted != nil {
					must(t, try(t, other, kind.admitted...).Release(t.Context()))
				}
				pass(ttl / 2)
				must(t, lock.Extend(t.Context(), ttl))
				pass(ttl / 2)
				must(t, lock.Verify(t.Context()))
				must(t, lock.Release(t.Context()))
				synctest.Wait()
				if held := masters.Held(); held != nil {
					t.Errorf("after its release there is %q", held)
				}
				must(t, try(t, other, kind.excluded...).Release(t.Context()))
			})
		})
	}
}

func TestALockIsOverAtTheEndOfItsTTL(t *testing.T) {
	bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
		began := time.Now()
		lock := try(t, locker)
		if held := masters.Held(); !slices.Equal(held, []string{key}) {
			t.Errorf("held are %q, want the key", held)
		}
		<-lock.Done()
		if after := time.Since(began); after >= ttl || after < ttl*9/10 {
			t.Errorf("it was over after %v of %v", after, ttl)
		}
		pass(ttl - time.Since(began) + time.Second)
		if held := masters.Held(); held != nil {
			t.Errorf("after its ttl %q is held", held)
		}
	})
}

func TestHolderSeesWhoHasTheKey(t *testing.T) {
	bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
		masters.Hold(key)
		holder, err := locker.Holder(t.Context(), key)
		must(t, err)
		if !holder.Held || holder.Identity != redlocktest.Somebody || holder.Holds != 1 {
			t.Errorf("%+v, want another holder", holder)
		}
		masters.Release(key)
		lock := try(t, locker)
		holder, err = locker.Holder(t.Context(), key)
		must(t, err)
		if holder.ID != lock.ID() {
			t.Errorf("%+v, want the lock %s", holder, lock.ID())
		}
	})
}

func TestThePublishedValueOfALockIsReadable(t *testing.T) {
	bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
		lock := try(t, locker, redlock.Published("10.0.0.7:80"))
		holder, err := masters.Locker(t, redlock.Options{}).Holder(t.Context(), key)
		must(t, err)
		if holder.Value != "10.0.0.7:80" || holder.Token != lock.Token() {
			t.Errorf("%+v, want the value that lock %d publishes", holder, lock.Token())
		}
	})
}

func TestCheckFindsNoFaultInTheMasters(t *testing.T) {
	bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
		report, err := locker.Check(t.Context())
		must(t, err)
		if report.Worst() > audit.Note || len(report.Masters) != len(masters) {
			t.Errorf("found:\n%v", report)
		}
		masters[0].Fail(redlocktest.ReplyError("NOPERM no")) // the control
		if report, err = locker.Check(t.Context()); err != nil || report.Worst() <= audit.Note {
			t.Errorf("%v, found of one that refuses all:\n%v", err, report)
		}
		if held := masters.Held(); held != nil {
			t.Errorf("left is %q", held)
		}
	})
}

func TestTokensGrow(t *testing.T) {
	bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
		last := uint64(0)
		for i := range 5 {
			lock := try(t, locker, redlock.Fenced())
			if lock.Token() <= last {
				t.Errorf("token %d comes after %d", lock.Token(), last)
			}
			last = lock.Token()
			must(t, lock.Release(t.Context()))
			masters[i].Forget() // also when counters are lost here and there
			masters.Hold(key)
			masters.Release(key)
		}
	})
}

func TestGenerationsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t)
		old := masters.Locker(t, redlock.Options{Generation: 1})
		must(t, try(t, old).Release(t.Context()))
		must(t, masters.Locker(t, redlock.Options{Generation: 3}).Announce(t.Context(), 3))
		pass(time.Minute)
		_, err := old.TryAcquire(t.Context(), key, ttl)
		is(t, err, redlock.ErrOutdated)
	})
}

func TestTheOtherPackagesWorkOnTheseMasters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(7))
		opts := redlock.Options{Clock: masters.Clock()}
		joint, err := redlock.NewJoint(masters[:5].All(), masters[2:].All(), opts)
		must(t, err)
		defer joint.Close(t.Context())
		must(t, try(t, joint).Release(t.Context()))

		slots, err := semaphore.New(joint, "slots", 2)
		must(t, err)
		for range 2 {
			_, err := slots.TryAcquire(t.Context(), ttl)
			must(t, err)
		}
		_, err = slots.TryAcquire(t.Context(), ttl)
		is(t, err, redlock.ErrHeld)

		groups, err := sharded.New([]sharded.Group{
			{Name: "a", Masters: masters[:3].All(), Options: opts}, {
				Name: "b", Masters: masters[3:6].All(), Options: opts,
			},
		}, sharded.Options{})
		must(t, err)
		defer func() { must(t, groups.Close(t.Context())) }()
		lock, err := groups.TryAcquire(t.Context(), key, ttl)
		must(t, err)
		must(t, lock.Release(t.Context()))
		pass(ttl)
	})
}

// The waiter tries once in 24 to 27 s. Between these attempts only a notification can wake it. The attempt that follows
// its minute comes 72 s after the beginning.
func TestWaitersAreNotified(t *testing.T) {
	for name, slow := range map[string]time.Duration{"at once": 0, "slowly": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
				masters.SlowDown(slow)
				masters.Hold(key)
				got := make(chan time.Duration)
				began := time.Now()
				go func() {
					lock, err := locker.Acquire(t.Context(), key, ttl, redlock.RetryEvery(time.Hour))
					if err != nil {
						t.Error(err)
					}
					got <- time.Since(began)
					_ = lock.Release(context.Background())
				}()
				pass(time.Minute)
				masters.Release(key)
				if after := <-got; after < time.Minute || after > time.Minute+time.Second {
					t.Errorf("it had the lock after %v, want a minute", after)
				}
				pass(time.Second)
			})
		})
	}
}

// A message that is on its way when the connection breaks is lost. The waiter checks the lock when it is connected
// again.
func TestAWaiterRecoversFromALostMessage(t *testing.T) {
	bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
		masters.Hold(key)
		got := make(chan time.Duration)
		began := time.Now()
		go func() {
			_, err := locker.Acquire(t.Context(), key, ttl, redlock.RetryEvery(time.Hour))
			if err != nil {
				t.Error(err)
			}
			got <- time.Since(began)
		}()
		pass(time.Minute)
		masters.SlowDown(time.Second) // so that the message is under way
		masters.Release(key)
		masters.SlowDown(0)
		masters.Stop()
		masters.Start()
		if after := <-got; after < time.Minute || after > time.Minute+2*time.Second {
			t.Errorf("it had the lock after %v, want soon after a minute", after)
		}
	})
}
