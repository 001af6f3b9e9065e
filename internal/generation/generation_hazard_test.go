package generation_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// preparing is a master that learns of each request before the round reads its start time.
type preparing struct {
	*Fake
	prepare func(*single.Request)
}

func (m preparing) Prepare(r *single.Request) { m.prepare(r) }

// paused makes a Locker of generation 1. Its process stops once, for d, between the call that asks for a request of
// this kind and the sending of that request.
func paused(t *testing.T, f Fakes, op single.Op, d *atomic.Int64) *redlock.Locker {
	t.Helper()
	clock := NewClock()
	masters := f.Masters()
	masters[0] = preparing{f[0], func(r *single.Request) {
		if r.Op == op {
			clock.Suspend(time.Duration(d.Swap(0)))
		}
	}}
	l, err := redlock.New(masters, redlock.Options{Generation: 1, Clock: clock})
	Must(t, err)
	t.Cleanup(func() { CloseLocker(t, l) })
	return l
}

// A process that is stopped after it has found its configuration current counts its lock from before.
func TestAPauseAfterTheGenerationCheckShortensTheLock(t *testing.T) {
	const pause = 20 * time.Second
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		var d atomic.Int64
		d.Store(int64(pause))
		l := paused(t, masters, single.Acquire, &d)
		lock := Acquire(t, l, LongTTL)
		if left := lock.Remaining(); left > LongTTL-pause {
			t.Errorf("acquired: %v of %v are left", left, LongTTL-pause)
		}
		Must(t, lock.Release(t.Context()))
	})
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		var d atomic.Int64
		d.Store(int64(2 * LongTTL))
		_, err := paused(t, masters, single.Acquire, &d).TryAcquire(t.Context(), Key, LongTTL)
		Is(t, err, redlock.ErrExpired)
		Settle(time.Second)
		masters.AllFree(t)
	})
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		var d atomic.Int64
		l := paused(t, masters, single.Extend, &d)
		lock := Acquire(t, l, LongTTL)
		d.Store(int64(pause))
		Must(t, lock.Extend(t.Context(), 2*LongTTL))
		if left := lock.Remaining(); left > 2*LongTTL-pause {
			t.Errorf("extended: %v of %v are left", left, 2*LongTTL-pause)
		}
		Must(t, lock.Release(t.Context()))
	})
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		var d atomic.Int64
		l := paused(t, masters, single.Extend, &d)
		lock := Acquire(t, l, LongTTL, redlock.AutoRenew(), redlock.MaxRenewals(1))
		d.Store(int64(pause))
		Settle(LongTTL/3 + time.Second)
		if n := masters[0].Count(single.Extend); n != 1 || d.Load() != 0 {
			t.Fatalf("renewed %d times", n)
		}
		if left := lock.Remaining(); left > LongTTL-pause {
			t.Errorf("renewed: %v of %v are left", left, LongTTL-pause)
		}
		Must(t, lock.Release(t.Context()))
	})
}

// An extension that had to wait for another one begins when the other one has ended. Then the Locker checks the
// generation again.
func TestAnExtensionThatWaitedAsksAgainForTheGeneration(t *testing.T) {
	Bubble(t, 4, func(t *testing.T, masters Fakes) {
		before, after := masters[:3], Fakes{masters[0], masters[1], masters[3]}
		forgotten := before.Locker(t, redlock.Options{Generation: 1, RequestTimeout: 8 * time.Second})
		between := Joint(t, before, after, generation(2))
		asked := time.Now()
		lock := Acquire(t, forgotten, LongTTL)
		Settle(time.Millisecond)
		Must(t, between.Announce(t.Context(), 3))
		announced := time.Now()
		Settle(time.Until(asked.Add(9 * time.Second)))
		before.Behave(On(single.Extend, Act{After: 5 * time.Second}))
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- lock.Extend(context.Background(), LongTTL) }()
		synctest.Wait()
		go func() { second <- lock.Extend(context.Background(), 2*LongTTL) }()
		Must(t, <-first)
		Is(t, <-second, redlock.ErrOutdated)
		if end := announced.Add(10*time.Second + LongTTL); lock.Until().After(end) {
			t.Errorf("held %v past the end that the announcement promises", lock.Until().Sub(end))
		}
		before.Behave(nil)
		Must(t, lock.Release(t.Context()))
	})
}

// stuckOn is a master that does not return from calls of one kind.
type stuckOn struct {
	*Fake
	op    single.Op
	stuck chan struct{}
}

func (m stuckOn) Do(ctx context.Context, batch []*single.Call) {
	for _, c := range batch {
		if c.Request.Op == m.op {
			<-m.stuck
		}
	}
	m.Fake.Do(ctx, batch)
}

// A client of another kind may keep no deadlines. As many such masters as a quorum can do without change nothing.
func TestAHangingMasterDoesNotBlockGenerationChecks(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		all, stuck := masters.Masters(), make(chan struct{})
		all[2] = stuckOn{masters[2], single.Announce, stuck}
		l, err := redlock.New(all, redlock.Options{Generation: 1, Clock: NewClock()})
		Must(t, err)
		t.Cleanup(func() { CloseLocker(t, l) })
		defer close(stuck)
		lock := Acquire(t, l, LongTTL, redlock.AutoRenew())
		for range 10 {
			Settle(11 * time.Second)
			Must(t, otherKey(t, l, "again").Release(t.Context()))
		}
		Must(t, lock.Err())
		Must(t, lock.Release(t.Context()))
	})
}

// With a request timeout as long as an answer holds, one master that is down does no harm either.
func TestALongRequestTimeoutDoesNotDelayTheNextGenerationCheck(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		l := masters.Locker(t, redlock.Options{Generation: 1, RequestTimeout: 30 * time.Second})
		masters[2].Behave(func(*single.Request) Act { return Act{Lost: true} })
		for range 100 {
			Must(t, otherKey(t, l, "again").Release(t.Context()))
			Settle(time.Second)
		}
		masters.Behave(nil)
	})
}

// Once so many masters have failed that no quorum can answer, the call returns without the other replies.
func TestAnAnnouncementThatCanNotSucceedEndsAtOnce(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		l := masters.Locker(t, generation(1))
		masters[0].Behave(On(single.Announce, Act{Err: ErrSilent}))
		masters[1].Behave(On(single.Announce, Act{Err: ErrSilent}))
		masters[2].Behave(On(single.Announce, Act{Lost: true}))
		began := time.Now()
		_, err := l.TryAcquire(t.Context(), Key, LongTTL)
		OnlyIs(t, err, redlock.ErrNoQuorum)
		Is(t, l.Announce(t.Context(), 2), redlock.ErrNoQuorum)
		if took := time.Since(began); took > 0 {
			t.Errorf("Announce took %v", took)
		}
		if err != nil && !strings.Contains(err.Error(), "m3:6379: pending") {
			t.Errorf("error %v", err)
		}
		masters.Behave(nil)
	})
}

// The set that can't answer is named, also while masters of the other one have yet to.
func TestAFailedAnnouncementNamesTheSetThatDidNotAnswer(t *testing.T) {
	for _, test := range []struct {
		away int
		name string
		says time.Duration // that it can't, after so long
	}{{0, "old", 0}, {3, "new", 0}, {0, "old", time.Second / 2}, {3, "new", time.Second / 2}} {
		away, name := test.away, test.name
		Bubble(t, 6, func(t *testing.T, masters Fakes) {
			l := Joint(t, masters[:3], masters[3:], generation(1))
			masters.Behave(On(single.Announce, Act{After: time.Millisecond}))
			masters[away].Behave(On(single.Announce, Act{After: test.says, Err: ErrSilent}))
			masters[away+1].Behave(On(single.Announce, Act{After: test.says, Err: ErrSilent}))
			err := l.Announce(t.Context(), 2)
			OnlyIs(t, err, redlock.ErrNoQuorum)
			if want := "of the " + name + " masters"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q in it", err, want)
			}
			masters.Behave(nil)
		})
	}
}

// Extending a lock that is over returns an error that says so. A held lock can be extended while its Locker is being
// closed.
func TestExtendReportsAnOutdatedGeneration(t *testing.T) {
	for name, opts := range map[string]redlock.Options{"without": {}, "with": generation(1)} {
		t.Run(name, func(t *testing.T) {
			Bubble(t, 3, func(t *testing.T, masters Fakes) {
				l := masters.Locker(t, opts)
				lapses, released := Acquire(t, l, 2*time.Second), otherKey(t, l, "other")
				Must(t, released.Release(t.Context()))
				Settle(time.Minute)
				Is(t, lapses.Extend(t.Context(), LongTTL), redlock.ErrNotHeld)
				Is(t, released.Extend(t.Context(), LongTTL), redlock.ErrNotHeld)
				if n := masters[0].Count(single.Announce); n > 1 {
					t.Errorf("asked for the generation of a lock that is over")
				}
			})
			Bubble(t, 3, func(t *testing.T, masters Fakes) {
				l := masters.Locker(t, opts)
				lock := Acquire(t, l, LongTTL)
				closed := make(chan error, 1)
				go func() { closed <- l.Close(context.Background()) }()
				synctest.Wait()
				Must(t, lock.Extend(t.Context(), LongTTL))
				Settle(11 * time.Second)
				Must(t, lock.Extend(t.Context(), LongTTL))
				Must(t, lock.Release(t.Context()))
				Must(t, <-closed)
			})
		})
	}
}

// A lock is over while its masters are out of reach. Extend must not return an error that suggests another try.
func TestExtendOfAnEndedLockReportsNoOutage(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		l := masters.Locker(t, generation(1))
		lock := Acquire(t, l, 2*time.Second)
		Settle(time.Minute)
		masters.Behave(func(*single.Request) Act { return Act{Lost: true} })
		err := lock.Extend(t.Context(), LongTTL)
		OnlyIs(t, err, redlock.ErrNotHeld)
		masters.Behave(nil)
	})
}

// A generation that is two ahead of the others would stop the Locker that announces it, and all Lockers with the same
// generation. A Locker without a generation can't notice this.
func TestALockerAnnouncesNoGenerationThatWouldStopItself(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		l, never := masters.Locker(t, generation(3)), masters.Locker(t, redlock.Options{})
		for _, far := range []uint64{5, 9, single.MaxToken} {
			err := l.Announce(t.Context(), far)
			if OnlyIs(t, err, redlock.ErrInvalid); err == nil ||
				!strings.Contains(err.Error(), "generation "+strconv.FormatUint(far, 10)) ||
				!strings.Contains(err.Error(), ", 3:") {
				t.Errorf("%v does not name both generations", err)
			}
		}
		masters.NotAsked(t)
		Must(t, l.Announce(t.Context(), 4))
		Must(t, otherKey(t, l, "a").Release(t.Context()))
		Must(t, never.Announce(t.Context(), 5))
		Settle(10 * time.Second)
		_, err := l.TryAcquire(t.Context(), Key, LongTTL)
		OnlyIs(t, err, redlock.ErrOutdated)
	})
}

// The danger is real: a Locker is two generations ahead, and starts before its generation was announced and before
// Lockers two behind have had their ten seconds and a ttl. Then it holds a lock while they hold it too. Masters that
// both sets share end this; without shared masters nothing ends it.
func TestALockerTwoAheadDoesNotWaitForThoseBehind(t *testing.T) {
	for shared, ends := range map[int]bool{0: false, 2: true} {
		Bubble(t, 6-shared, func(t *testing.T, masters Fakes) {
			behind, ahead := masters[:3].Locker(t, generation(1)), masters[3-shared:].Locker(t, generation(3))
			Must(t, otherKey(t, behind, "asks for its generation").Release(t.Context()))
			masters[2].Behave(RefuseAll) // so that where two are shared, each has one of them and one of its own
			first := Acquire(t, behind, LongTTL, redlock.AutoRenew())
			Settle(time.Millisecond) // the refusal may come after the acquisition was won
			masters[2].Behave(nil)
			second := Acquire(t, ahead, LongTTL)
			Must(t, first.Err())
			Settle(10*time.Second + LongTTL)
			if over := first.Err() != nil; over != ends {
				t.Errorf("with %d masters in both sets: over %t, want %t", shared, over, ends)
			}
			_ = first.Release(t.Context())
			_ = second.Release(t.Context())
		})
	}
}

// Everything at once, for the race detector.
func TestAnnounceAcquireExtendAndCloseMayRunAtOnce(t *testing.T) {
	Bubble(t, 5, func(t *testing.T, masters Fakes) {
		l, err := redlock.NewJoint(masters[:3].Masters(), masters[2:].Masters(),
			redlock.Options{Generation: 5, Clock: NewClock()})
		Must(t, err)
		masters.Behave(Away(3 * time.Millisecond))
		masters[4].Behave(func(*single.Request) Act { return Act{Lost: true} })
		var all sync.WaitGroup
		ctx := context.Background()
		for i := range 8 {
			all.Go(func() {
				for {
					lock, err := l.Acquire(ctx, Key, 2*time.Second)
					if err != nil {
						return
					}
					_ = lock.Extend(ctx, 2*time.Second)
					_ = lock.Verify(ctx)
					_ = lock.Release(ctx)
				}
			})
			all.Go(func() {
				for l.Announce(ctx, uint64(5+i%2)) == nil || i%2 == 0 {
					Pass(700 * time.Millisecond)
					if _, err := l.Holder(ctx, Key); err != nil {
						return
					}
				}
			})
		}
		Settle(10 * time.Second)
		closing, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		Must(t, l.Close(closing))
		all.Wait()
	})
}

// The danger is real: one master of the old set that comes back empty is enough for a forgotten process to go on. The
// restart guard does not help, however long it is.
func TestAMasterThatForgetsItsGenerationLetsAForgottenProcessGoOn(t *testing.T) {
	Bubble(t, 4, func(t *testing.T, masters Fakes) {
		before, after := masters[:3], Fakes{masters[0], masters[1], masters[3]}
		forgotten, between, next := before.Locker(t, generation(1)), Joint(t, before, after, generation(2)),
			after.Locker(t, generation(3))
		masters[2].Behave(func(*single.Request) Act { return Act{Lost: true} })
		Must(t, between.Announce(t.Context(), 3))
		Settle(time.Hour)
		masters[2].Behave(nil)
		_, err := forgotten.TryAcquire(t.Context(), Key, LongTTL)
		Is(t, err, redlock.ErrOutdated)

		another := before.Locker(t, generation(1)) // which has not asked yet
		masters[0].Mu.Lock()
		masters[0].Known = 0
		masters[0].Mu.Unlock()
		masters[1].Behave(func(*single.Request) Act { return Act{Lost: true} })
		first := Acquire(t, another, LongTTL)
		Settle(time.Millisecond) // its request to the lost master may leave later than the acquisition is won
		masters[1].Behave(nil)
		second := Acquire(t, next, LongTTL)
		if first.Err() != nil || second.Err() != nil {
			t.Errorf("one of the two locks is over: %v, %v", first.Err(), second.Err())
		}
		Must(t, first.Release(t.Context()))
		Must(t, second.Release(t.Context()))
	})
}
