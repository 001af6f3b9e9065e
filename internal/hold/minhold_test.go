package hold_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

func TestAReleasedLockKeepsItsKeysForMinHold(t *testing.T) {
	servers, l := Started(t, 3)
	lock := Take(t, l, "a", 10*time.Minute, redlock.AndKeys("b"), redlock.MinHold(time.Minute))
	Must(t, lock.Release(t.Context()))
	Is(t, lock.Err(), redlock.ErrNotHeld)
	for _, key := range []string{"a", "b"} {
		Is(t, Try(t, l, key), redlock.ErrHeld)
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
		_, err := l.TryAcquire(t.Context(), "c", time.Minute, opts...)
		Refused(t, what, err)
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
		RunVirtual(t, c.name, func(t *testing.T) {
			masters := memmaster.New(3)
			start := time.Now()
			if c.lost {
				masters.Behave(func(r *single.Request) memmaster.Fate {
					return memmaster.Fate{Lost: r.Op == single.Release && time.Since(start) < 10*time.Second}
				})
			}
			l, began := MemLocker(t, masters), time.Now()
			lock := Take(t, l, "job", 10*time.Second, redlock.MinHold(least), redlock.AutoRenew())
			Pass(c.works)
			if err := lock.Release(t.Context()); (err != nil) != c.lost {
				t.Errorf("Release: %v", err)
			}
			next, err := l.Acquire(t.Context(), "job", 10*time.Second)
			Must(t, err)
			took := time.Since(began)
			Must(t, next.Release(t.Context()))
			if took < c.want || took > c.want+500*time.Millisecond {
				t.Errorf("the next acquisition came after %v, want %v", took, c.want)
			}
		})
	}
}

func TestHeldListsTheLocksThatAreHeldNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := MemLocker(t, memmaster.New(3))
		if held := l.Held(); len(held) != 0 {
			t.Errorf("no lock is held, and Held returns %+v", held)
		}
		other := Take(t, l, "z", 9*time.Second)
		lock := Take(t, l, "a", 9*time.Second, redlock.Fenced(), redlock.AutoRenew())
		Pass(4 * time.Second)
		held := l.Held()
		if len(held) != 2 || strings.Join(held[0].Keys, ",") != "a" || held[1].Keys[0] != "z" ||
			held[0].ID != lock.ID() ||
			held[0].Token != lock.Token() || held[0].Renewals != 1 || !held[0].Until.Equal(lock.Until()) ||
			time.Since(held[0].Since) != 4*time.Second {
			t.Errorf("%+v", held)
		}
		Pass(6 * time.Second)
		if held := l.Held(); len(held) != 1 || held[0].Keys[0] != "a" {
			t.Errorf("after the other's end: %+v", held)
		}
		Must(t, lock.Release(t.Context()))
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
func TestMinHoldLastsBeyondTheGrace(t *testing.T) {
	do := func(t *testing.T, l *redlock.Locker, opts ...redlock.Option) {
		_ = l.Do(t.Context(), "job", 20*time.Second, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}, opts...)
	}
	for name, c := range map[string]struct {
		holds func(t *testing.T, l *redlock.Locker)
		min   time.Duration
	}{
		"Do until Done, MaxHold = MinHold": {func(t *testing.T, l *redlock.Locker) {
			do(t, l, redlock.MaxHold(10*time.Second), redlock.MinHold(10*time.Second))
		}, 10 * time.Second},
		"Do until its Grace": {func(t *testing.T, l *redlock.Locker) {
			do(t, l, redlock.MaxRenewals(1), redlock.Grace(10*time.Second), redlock.MinHold(19*time.Second))
		}, 19 * time.Second},
		"a lock until its Grace": {func(t *testing.T, l *redlock.Locker) {
			lock := Take(t, l, "job", 10*time.Second, redlock.MinHold(9*time.Second), redlock.Grace(5*time.Second))
			<-lock.Done()
			_ = lock.Release(t.Context())
		}, 9 * time.Second},
	} {
		RunVirtual(t, name, func(t *testing.T) {
			masters := memmaster.New(3)
			began := time.Now()
			go c.holds(t, MemLocker(t, masters))
			Pass(time.Second)
			next, err := MemLocker(t, masters).Acquire(t.Context(), "job", 10*time.Second)
			Must(t, err)
			if took := time.Since(began); took < c.min {
				t.Errorf("MinHold %v, and another owner has the key after %v", c.min, took)
			}
			Must(t, next.Release(t.Context()))
		})
	}
}

func TestALateRequestDoesNotProlongMinHold(t *testing.T) {
	for _, least := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			masters := memmaster.New(3)
			l, other := MemLocker(t, masters), MemLocker(t, masters)
			var opts []redlock.Option
			if least {
				opts = append(opts, redlock.MinHold(15*time.Second))
			}
			began := time.Now()
			lock := Acquire(t, l, time.Minute, opts...)
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
			_, err := other.Acquire(t.Context(), Key, time.Second)
			Must(t, err)
			if took := time.Since(began); took > 25*time.Second {
				t.Errorf("MinHold(15s) %t: the first release is read at 20s; the next holder has it after %v", least,
					took)
			}
		})
	}
}

// Only a plain lock can keep its key, and an acquisition that enters a lock again is none.
func TestAnAcquisitionThatEntersAgainCannotKeepTheKey(t *testing.T) {
	for _, kind := range []redlock.Option{redlock.Exclusive(), redlock.Reentrant("job-1")} {
		synctest.Test(t, func(t *testing.T) {
			l := MemLocker(t, memmaster.New(3))
			outer := Acquire(t, l, time.Minute, kind)
			_, err := l.Acquire(outer.Context(t.Context()), Key, LongTTL, redlock.MinHold(time.Second))
			Is(t, err, redlock.ErrAlreadyHeld)
			Must(t, outer.Release(t.Context()))
		})
	}
}
