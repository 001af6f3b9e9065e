package hold_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

func TestAReleasedLockKeepsItsKeysForMinHold(t *testing.T) {
	servers := redistest.StartN(t, 3)
	l := dial(t, servers, redlock.Options{})
	lock, err := l.Acquire(t.Context(), "a", 10*time.Minute, redlock.AndKeys("b"), redlock.MinHold(time.Minute))
	must(t, err)
	must(t, lock.Release(t.Context()))
	if err := lock.Err(); !errors.Is(err, redlock.ErrNotHeld) {
		t.Errorf("after Release, Lock.Err returns %v", err)
	}
	for _, key := range []string{"a", "b"} {
		if _, err := l.TryAcquire(t.Context(), key, time.Minute); !errors.Is(err, redlock.ErrHeld) {
			t.Errorf("%s is free: %v", key, err)
		}
		for _, s := range servers { // that a straggler has reached, too
			redistest.Eventually(t, 10*time.Second, func() bool {
				left := s.Client().PTTL(t.Context(), key).Val()
				return left > 20*time.Second && left <= 61*time.Second
			}, "the key to live for a minute")
		}
	}
	for what, opts := range map[string][]redlock.Option{
		"nothing":        {redlock.MinHold(0)},
		"the whole ttl":  {redlock.MinHold(time.Minute)},
		"above MaxHold":  {redlock.MinHold(time.Second), redlock.MaxHold(time.Second / 2)},
		"of a shared":    {redlock.MinHold(time.Second), redlock.Shared()},
		"of a reentrant": {redlock.MinHold(time.Second), redlock.Reentrant("me")},
	} {
		if _, err := l.TryAcquire(t.Context(), "c", time.Minute, opts...); !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("MinHold of %s: %v", what, err)
		}
	}
}

// runs counts how often a job runs that is due once, on two machines of which one is late by half a second.
func runs(t *testing.T, opts ...redlock.Option) (n int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(3)
		for range 2 {
			l := memLocker(t, masters)
			if lock, err := l.TryAcquire(t.Context(), "job", 10*time.Second, opts...); err == nil {
				n++
				must(t, lock.Release(t.Context()))
			}
			pass(500 * time.Millisecond)
		}
	})
	return n
}

func TestAJobThatIsDueTwiceRunsOnce(t *testing.T) {
	if n := runs(t, redlock.MinHold(2*time.Second)); n != 1 {
		t.Errorf("the job ran %d times", n)
	}
	if n := runs(t); n != 2 {
		t.Errorf("without MinHold the job ran %d times: this test shows nothing", n)
	}
}

func TestAKeptKeyIsFreeWhenMinHoldIsOver(t *testing.T) {
	const least = 2 * time.Second
	for _, c := range []struct {
		name  string
		works time.Duration // before Release
		lost  bool          // no release arrives
		want  time.Duration // from the acquisition to the next one
	}{
		{"released early", 100 * time.Millisecond, false, least},
		{"held for longer", 3 * time.Second, false, 3 * time.Second},
		{"renewed and released early", 0, false, least},
		{"no release arrives", 100 * time.Millisecond, true, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				masters := memmaster.New(3)
				start := time.Now()
				if c.lost {
					for _, m := range masters {
						m.Behave(func(r *single.Request) memmaster.Fate {
							return memmaster.Fate{Lost: r.Op == single.Release && time.Since(start) < 10*time.Second}
						})
					}
				}
				l, began := memLocker(t, masters), time.Now()
				lock, err := l.Acquire(t.Context(), "job", 10*time.Second, redlock.MinHold(least), redlock.AutoRenew())
				must(t, err)
				pass(c.works)
				if err := lock.Release(t.Context()); (err != nil) != c.lost {
					t.Errorf("Release: %v", err)
				}
				next, err := l.Acquire(t.Context(), "job", 10*time.Second)
				must(t, err)
				took := time.Since(began)
				must(t, next.Release(t.Context()))
				if took < c.want || took > c.want+500*time.Millisecond {
					t.Errorf("the next acquisition came after %v, want %v", took, c.want)
				}
			})
		})
	}
}

func TestDoValueReturnsTheValueOfItsFunction(t *testing.T) {
	servers := redistest.StartN(t, 3)
	l := dial(t, servers, redlock.Options{})
	ctx := t.Context()
	n, err := redlock.DoValue(ctx, l, "key", time.Minute, func(context.Context) (int, error) { return 42, nil })
	if n != 42 || err != nil {
		t.Errorf("DoValue returned %d, %v", n, err)
	}
	failed := errors.New("failed")
	if n, err := redlock.DoValue(ctx, l, "key", time.Minute, func(context.Context) (int, error) {
		return 7, failed
	}); n != 7 || !errors.Is(err, failed) {
		t.Errorf("DoValue with a function that fails: %d, %v", n, err)
	}
	n, err = redlock.DoValue(ctx, l, "key", time.Minute, func(ctx context.Context) (int, error) {
		for _, s := range servers {
			must(t, s.Client().Del(ctx, "key").Err())
		}
		return 8, nil
	})
	if n != 8 || !errors.Is(err, redlock.ErrNotHeld) {
		t.Errorf("DoValue, and the lock was lost: %d, %v", n, err)
	}
	if _, err := redlock.DoValue[int](ctx, l, "key", time.Minute, nil); !errors.Is(err, redlock.ErrInvalid) {
		t.Errorf("DoValue without a function: %v", err)
	}
	if _, err := redlock.DoValue(ctx, nil, "key", time.Minute, func(context.Context) (int, error) {
		return 0, nil
	}); !errors.Is(err, redlock.ErrInvalid) {
		t.Errorf("no Locker: %v", err)
	}
	lock, err := l.Acquire(ctx, "key", time.Minute)
	must(t, err)
	defer func() { must(t, lock.Release(ctx)) }()
	if n, err := redlock.DoValue(ctx, l, "key", time.Minute, func(context.Context) (int, error) {
		return 9, nil
	}, redlock.MaxAttempts(1)); n != 0 || !errors.Is(err, redlock.ErrHeld) {
		t.Errorf("DoValue while another owner has the lock: %d, %v", n, err)
	}
}

func TestHeldListsTheLocksThatAreHeldNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memLocker(t, memmaster.New(3))
		if held := l.Held(); len(held) != 0 {
			t.Errorf("no lock is held, and Held returns %+v", held)
		}
		other, err := l.Acquire(t.Context(), "z", 9*time.Second)
		must(t, err)
		lock, err := l.Acquire(t.Context(), "a", 9*time.Second, redlock.Fenced(), redlock.AutoRenew())
		must(t, err)
		pass(4 * time.Second)
		held := l.Held()
		if len(held) != 2 || strings.Join(held[0].Keys, ",") != "a" || held[1].Keys[0] != "z" ||
			held[0].ID != lock.ID() ||
			held[0].Token != lock.Token() || held[0].Renewals != 1 || !held[0].Until.Equal(lock.Until()) ||
			time.Since(held[0].Since) != 4*time.Second {
			t.Errorf("%+v", held)
		}
		pass(6 * time.Second)
		if held := l.Held(); len(held) != 1 || held[0].Keys[0] != "a" {
			t.Errorf("after the other's end: %+v", held)
		}
		must(t, lock.Release(t.Context()))
		_ = other.Release(t.Context())
		if held := l.Held(); len(held) != 0 {
			t.Errorf("in the end: %+v", held)
		}
		if held := (*redlock.Locker)(nil).Held(); held != nil {
			t.Errorf("Held of a nil Locker: %+v", held)
		}
	})
}

// A hold that ends by its grace or by MaxHold keeps its key, as a released hold does.
func TestMinHoldLastsBeyondTheGraceOfDo(t *testing.T) {
	for _, c := range []struct {
		name string
		opts []redlock.Option
		min  time.Duration
	}{
		{"Do until Done, MaxHold = MinHold", []redlock.Option{
			redlock.MaxHold(10 * time.Second), redlock.MinHold(10 * time.Second),
		}, 10 * time.Second},
		{"Grace", []redlock.Option{
			redlock.MaxRenewals(1), redlock.Grace(10 * time.Second), redlock.MinHold(19 * time.Second),
		}, 19 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				masters := memmaster.New(3)
				a, b := memLocker(t, masters), memLocker(t, masters)
				began := time.Now()
				go func() {
					_ = a.Do(t.Context(), "job", 20*time.Second, func(ctx context.Context) error {
						<-ctx.Done()
						return nil
					}, c.opts...)
				}()
				pass(time.Second)
				next, err := b.Acquire(t.Context(), "job", 10*time.Second)
				must(t, err)
				if took := time.Since(began); took < c.min {
					t.Errorf("MinHold %v, and another owner has the key after %v", c.min, took)
				}
				must(t, next.Release(t.Context()))
			})
		})
	}
}

func TestMinHoldLastsBeyondTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(3)
		a, b := memLocker(t, masters), memLocker(t, masters)
		began := time.Now()
		lock, err := a.Acquire(t.Context(), "job", 10*time.Second, redlock.MinHold(9*time.Second),
			redlock.Grace(5*time.Second))
		must(t, err)
		<-lock.Done()
		_ = lock.Release(t.Context())
		next, err := b.Acquire(t.Context(), "job", 10*time.Second)
		must(t, err)
		if took := time.Since(began); took < 9*time.Second {
			t.Errorf("MinHold 9s, and another owner has the key after %v", took)
		}
		must(t, next.Release(t.Context()))
	})
}

func TestALateRequestDoesNotProlongMinHold(t *testing.T) {
	for _, least := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			masters := memmaster.New(3)
			l, other := memLocker(t, masters), memLocker(t, masters)
			var opts []redlock.Option
			if least {
				opts = append(opts, redlock.MinHold(15*time.Second))
			}
			began := time.Now()
			lock := acquire(t, l, time.Minute, opts...)
			for _, m := range masters {
				first := true
				m.Behave(func(r *single.Request) memmaster.Fate {
					left := 20*time.Second - time.Since(began)
					switch {
					case r.Op == single.Release && first:
						first = false
						return memmaster.Fate{Before: left}
					case left > 0: // the rest of the connections were cut
						return memmaster.Fate{Lost: true}
					}
					return memmaster.Fate{}
				})
			}
			_ = lock.Release(t.Context())
			_, err := other.Acquire(t.Context(), key, time.Second)
			must(t, err)
			if took := time.Since(began); took > 25*time.Second {
				t.Errorf("MinHold(15s) %t: the first release is read at 20s; the next holder has it after %v", least,
					took)
			}
		})
	}
}
