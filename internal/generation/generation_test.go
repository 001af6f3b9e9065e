package generation_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

func generation(n uint64) redlock.Options { return redlock.Options{Generation: n} }

// otherKey takes a lock on some other key than most tests.
func otherKey(tb testing.TB, l *redlock.Locker, name string) *redlock.Lock {
	tb.Helper()
	lock, err := l.TryAcquire(tb.Context(), name, LongTTL)
	Must(tb, err)
	return lock
}

func TestALockerWithoutAGenerationAsksForNone(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		Must(t, Acquire(t, masters.Locker(t, redlock.Options{}), LongTTL).Release(t.Context()))
		for _, m := range masters {
			if n := m.Count(single.Announce); n != 0 {
				t.Errorf("%s was asked for its generation %d times", m.Name(), n)
			}
		}
	})
}

// The exchange of c for d, with a process that was forgotten. Except for one, its masters belong to the new set too.
func TestAForgottenProcessTakesNoLockOnceTheNextGenerationIsAnnounced(t *testing.T) {
	Bubble(t, 4, func(t *testing.T, masters Fakes) {
		before, after := masters[:3], Fakes{masters[0], masters[1], masters[3]}
		forgotten, never := before.Locker(t, generation(1)), before.Locker(t, redlock.Options{})
		between := Joint(t, before, after, generation(2))
		kept := Acquire(t, forgotten, LongTTL, redlock.AutoRenew())
		Must(t, kept.Extend(t.Context(), LongTTL))
		for _, l := range []*redlock.Locker{forgotten, between} {
			Must(t, otherKey(t, l, "a").Release(t.Context()))
		}
		Must(t, between.Announce(t.Context(), 3))

		// The last answer holds for ten seconds: no lock is taken or extended after that.
		Settle(10 * time.Second)
		_, err := forgotten.Acquire(t.Context(), "b", LongTTL)
		OnlyIs(t, err, redlock.ErrOutdated)
		for _, part := range []string{"generation 3 is in use", "this is generation 1"} {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
		Is(t, kept.Extend(t.Context(), LongTTL), redlock.ErrOutdated)
		Is(t, kept.Err(), nil)
		Settle(LongTTL)
		Is(t, kept.Err(), redlock.ErrNotHeld) // nor renewed

		// One generation behind is a neighbour.
		Must(t, otherKey(t, between, "c").Release(t.Context()))
		next := after.Locker(t, generation(3))
		Must(t, otherKey(t, next, "d").Release(t.Context()))
		Must(t, otherKey(t, never, "e").Release(t.Context())) // who gives no generation is on its own
	})
}

// Its holder learns why it ends: by the lock's error, and by an event for each renewal that was not sent.
func TestAHoldOfAnOutdatedProcessSaysWhyItIsNotRenewed(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		var mu sync.Mutex
		var refused []redlock.Event
		opts := generation(1)
		opts.Observer = func(e redlock.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == redlock.EventExtend && e.Err != nil {
				refused = append(refused, e)
			}
		}
		l := masters.Locker(t, opts)
		renewed, other := Acquire(t, l, LongTTL, redlock.AutoRenew()), otherKey(t, l, "is not renewed")
		Must(t, masters.Locker(t, generation(3)).Announce(t.Context(), 3))
		Settle(2 * LongTTL)
		err := renewed.Err()
		if OnlyIs(t, err, redlock.ErrNotHeld, redlock.ErrOutdated); err != nil &&
			!strings.Contains(err.Error(), "generation 3 is in use") {
			t.Errorf("error %v", err)
		}
		OnlyIs(t, other.Err(), redlock.ErrNotHeld)
		mu.Lock()
		defer mu.Unlock()
		if len(refused) == 0 || refused[0].Key != Key || refused[0].Quorum != 2 || refused[0].N != 3 {
			t.Fatalf("events %+v", refused)
		}
		for _, e := range refused {
			OnlyIs(t, e.Err, redlock.ErrOutdated)
		}
	})
}

// Any quorum of the old set may know the generation: a process that can reach any quorum of its masters learns it.
func TestAnyQuorumOfItsMastersTellsAForgottenProcess(t *testing.T) {
	for told := range 1 << 5 {
		if n := popcount(told); n != 3 {
			continue
		}
		for reached := range 1 << 5 {
			if popcount(reached) != 3 {
				continue
			}
			Bubble(t, 5, func(t *testing.T, masters Fakes) {
				for i, m := range masters {
					if told&(1<<i) != 0 {
						m.Known = 3
					}
					if reached&(1<<i) == 0 {
						m.Behave(func(*single.Request) Act { return Act{Lost: true} })
					}
				}
				_, err := masters.Locker(t, generation(1)).TryAcquire(t.Context(), Key, LongTTL)
				OnlyIs(t, err, redlock.ErrOutdated)
				masters.AllFree(t)
				masters.Behave(nil)
			})
		}
	}
}

func popcount(set int) (n int) {
	for ; set > 0; set &= set - 1 {
		n++
	}
	return n
}

// A slow reply about the generation counts from the time of the request, not from its arrival.
func TestAnAnswerAboutTheGenerationHoldsFromWhenItWasAskedFor(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		l := masters.Locker(t, redlock.Options{Generation: 1, RequestTimeout: 8 * time.Second})
		masters.Behave(On(single.Announce, Act{After: 6 * time.Second}))
		began := time.Now()
		otherKey(t, l, "a")
		if took := time.Since(began); took != 6*time.Second {
			t.Fatalf("the acquisition took %v", took)
		}
		masters.Behave(On(single.Announce, Act{Err: errors.New("not now")}))
		Settle(time.Until(began.Add(10*time.Second - time.Millisecond)))
		otherKey(t, l, "b")
		Settle(2 * time.Millisecond)
		_, err := l.TryAcquire(t.Context(), "c", LongTTL)
		OnlyIs(t, err, redlock.ErrNoQuorum)
		if err == nil || !strings.Contains(err.Error(), `announce "redlock:generation": granted 0 of 3, need 2`) {
			t.Errorf("error %v", err)
		}
		masters.Behave(nil)
	})
}

// A Locker in use asks again ahead of time, so no acquisition waits for the reply. An idle Locker asks nothing.
func TestTheGenerationIsCheckedBeforeTheLastAnswerExpires(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		l := masters.Locker(t, generation(7))
		const rtt = 10 * time.Millisecond
		masters.Behave(Away(rtt))
		otherKey(t, l, "first")
		for range 60 {
			Settle(time.Second)
			began := time.Now()
			Must(t, otherKey(t, l, "again").Release(t.Context()))
			if took := time.Since(began); took != 2*rtt {
				t.Fatalf("acquisition and release took %v", took)
			}
		}
		asked := masters[0].Count(single.Announce)
		if asked < 60/10 || asked > 60/5+2 {
			t.Errorf("asked %d times in a minute", asked)
		}
		Settle(time.Hour)
		if n := masters[0].Count(single.Announce); n != asked {
			t.Errorf("asked %d times while no goroutine wanted a lock", n-asked)
		}
	})
}

// A renewed hold lives on for hours, however seldom it is renewed, and while a minority of masters is away.
func TestRenewalsCheckTheGeneration(t *testing.T) {
	Bubble(t, 5, func(t *testing.T, masters Fakes) {
		l := masters.Locker(t, generation(1))
		lock := Acquire(t, l, 2*LongTTL, redlock.AutoRenew())
		masters[3].Behave(func(*single.Request) Act { return Act{Lost: true} })
		masters[4].Behave(func(*single.Request) Act { return Act{Lost: true} })
		Settle(3 * time.Hour)
		Is(t, lock.Err(), nil)
		masters.Behave(nil)
		Must(t, lock.Release(t.Context()))
	})
}

func TestAnnounceReportsTheMastersGeneration(t *testing.T) {
	Bubble(t, 5, func(t *testing.T, masters Fakes) {
		before, after := masters[:3], masters[2:]
		l := Joint(t, before, after, redlock.Options{})
		Must(t, l.Announce(t.Context(), 3))
		Must(t, l.Announce(t.Context(), 3))
		Settle(0) // a quorum has answered, and the others are about to
		for _, m := range masters {
			if m.Known != 3 {
				t.Errorf("%s knows generation %d", m.Name(), m.Known)
			}
		}
		err := l.Announce(t.Context(), 2)
		OnlyIs(t, err, redlock.ErrOutdated)

		masters[0].Behave(func(*single.Request) Act { return Act{Lost: true} })
		Must(t, l.Announce(t.Context(), 4))
		masters[1].Behave(func(*single.Request) Act { return Act{Lost: true} })
		err = l.Announce(t.Context(), 5)
		OnlyIs(t, err, redlock.ErrNoQuorum)
		if !strings.Contains(err.Error(), "granted 1 of 3 of the old masters, need 2") {
			t.Errorf("error %q", err)
		}
		masters.Behave(nil)

		for _, bad := range []uint64{0, single.MaxToken + 1} {
			Is(t, l.Announce(t.Context(), bad), redlock.ErrInvalid)
		}
		Is(t, l.Announce(nil, 5), redlock.ErrInvalid) //nolint:staticcheck // on purpose
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		masters.Behave(func(*single.Request) Act { return Act{Lost: true} })
		Is(t, l.Announce(ctx, 5), context.Canceled)
		masters.Behave(nil)
		var none *redlock.Locker
		Is(t, none.Announce(t.Context(), 5), redlock.ErrInvalid)
	})
	_, err := redlock.New(NewFakes(1).Masters(), generation(single.MaxToken+1))
	Is(t, err, redlock.ErrInvalid)
}

func TestAClosedLockerAnnouncesNothing(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		l, err := redlock.New(masters.Masters(), generation(1))
		Must(t, err)
		Must(t, l.Close(t.Context()))
		Is(t, l.Announce(t.Context(), 2), redlock.ErrClosed)
		_, err = l.Acquire(t.Context(), Key, LongTTL)
		Is(t, err, redlock.ErrClosed)
		masters.NotAsked(t)
	})
}

// On real servers. If other data is stored under the key of the generation, the Locker leaves it alone and does not
// count that master.
func TestServersKeepTheGreatestGeneration(t *testing.T) {
	servers := redistest.StartN(t, 3)
	newer, older := Dial(t, servers, generation(9)), Dial(t, servers, generation(7))
	Must(t, Acquire(t, newer, LongTTL).Release(t.Context()))
	_, err := older.TryAcquire(t.Context(), Key, LongTTL)
	OnlyIs(t, err, redlock.ErrOutdated)
	Must(t, Acquire(t, Dial(t, servers, generation(8)), LongTTL).Release(t.Context()))

	for _, s := range servers {
		if left := s.Client().PTTL(t.Context(), single.GenerationKey).Val(); left != -1 {
			t.Errorf("%s keeps the generation for %v, want for good", s.Addr(), left)
		}
	}
	for _, foreign := range []string{"not a number", "-3", "1e5", "99999999999999999999"} {
		TellAll(t, servers[:2], "set", single.GenerationKey, foreign)
		_, err := Dial(t, servers, generation(9)).TryAcquire(t.Context(), Key, LongTTL)
		Is(t, err, redlock.ErrNoQuorum)
		if err == nil || !strings.Contains(err.Error(), single.GenerationKey) {
			t.Errorf("error %v", err)
		}
		if got := servers[0].Client().Get(t.Context(), single.GenerationKey).Val(); got != foreign {
			t.Errorf("%q became %q", foreign, got)
		}
	}
	TellAll(t, servers[:2], "del", single.GenerationKey)
	TellAll(t, servers[:2], "rpush", single.GenerationKey, "1", "2")
	_, err = Dial(t, servers, generation(9)).TryAcquire(t.Context(), Key, LongTTL)
	Is(t, err, redlock.ErrNoQuorum)
	if n := servers[0].Client().LLen(t.Context(), single.GenerationKey).Val(); n != 2 {
		t.Errorf("the list has %d entries", n)
	}
}
