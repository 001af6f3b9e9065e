package hold_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/single"
)

// distant is a round trip time. Two such round trips do not fit into the request timeout of these tests, a second.
const distant = 600 * time.Millisecond

// distantHold takes a lock over five distant masters, and calls body when all five have answered.
func distantHold(t *testing.T, body func(t *testing.T, lock *redlock.Lock, masters fakes), opts ...redlock.Option) {
	t.Helper()
	bubble(t, 5, func(t *testing.T, masters fakes) {
		masters.Behave(away(distant))
		l := masters.Locker(t, redlock.Options{RequestTimeout: time.Second})
		lock := acquire(t, l, longTTL, opts...)
		settle(distant)
		body(t, lock, masters)
	})
}

// extensions starts n extensions at the same time and returns their errors.
func extensions(t *testing.T, lock *redlock.Lock, n int, ttl func(i int) time.Duration) []error {
	t.Helper()
	errs, done := make([]error, n), make(chan struct{}, n)
	for i := range n {
		go func() {
			errs[i] = lock.Extend(t.Context(), ttl(i))
			done <- struct{}{}
		}()
	}
	for range n {
		<-done
	}
	return errs
}

// An extension that has to let another one go first has its time all the same.
func TestConcurrentExtensionsAllSucceed(t *testing.T) {
	for name, ttl := range map[string]func(int) time.Duration{
		"by the same":  func(int) time.Duration { return longTTL },
		"by ever more": func(i int) time.Duration { return longTTL + time.Duration(i)*time.Second },
		"by ever less": func(i int) time.Duration { return longTTL - time.Duration(i)*time.Second },
		"one by an hour": func(i int) time.Duration {
			return map[bool]time.Duration{true: time.Hour, false: longTTL}[i == 3]
		},
	} {
		distantHold(t, func(t *testing.T, lock *redlock.Lock, masters fakes) {
			const n = 8
			began, longest := time.Now(), time.Duration(0)
			for i, err := range extensions(t, lock, n, ttl) {
				longest = max(longest, ttl(i))
				if err != nil {
					t.Errorf("%s: extension %d: %v", name, i, err)
				}
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("%s: the extensions took %v", name, took)
			}
			if until := lock.Until().Sub(began); until < longest-longest/50-2*time.Second {
				t.Errorf("%s: the lock was extended by %v, and %v was asked for", name, until, longest)
			}
			if asked := masters[0].Count(single.Extend); asked > 3 {
				t.Errorf("%s: a master was asked %d times for %d extensions at the same time", name, asked, n)
			}
			settle(distant)
			must(t, lock.Release(t.Context()))
		})
	}
}

// Every extension lasts as long as its caller asked for, even if another caller's extension was under way.
func TestValidityAfterAnExtensionCountsFromItsRequest(t *testing.T) {
	distantHold(t, func(t *testing.T, lock *redlock.Lock, _ fakes) {
		go func() { _ = lock.Extend(t.Context(), longTTL) }()
		pass(distant / 2)
		began := time.Now()
		must(t, lock.Extend(t.Context(), longTTL))
		if until, want := lock.Until().Sub(began), longTTL-longTTL/100-2*time.Millisecond; until < want {
			t.Errorf("the lock is extended until %v after the call, want %v", until, want)
		}
		settle(distant)
		must(t, lock.Release(t.Context()))
	})
}

func TestAnExtensionDuringARenewalSucceeds(t *testing.T) {
	distantHold(t, func(t *testing.T, lock *redlock.Lock, masters fakes) {
		began := time.Now()
		for masters[0].Count(single.Extend) == 0 {
			pass(10 * time.Millisecond) // until the renewal is on its way
		}
		if time.Since(began) > longTTL/2 {
			t.Fatalf("the renewal began after %v", time.Since(began))
		}
		must(t, lock.Extend(t.Context(), longTTL))
		settle(distant)
		must(t, lock.Release(t.Context()))
	}, redlock.AutoRenew())
}

// A renewal that too few masters have answered is tried again while the lock is valid.
func TestARenewalThatHasFailedIsTriedAgain(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		l := masters.Locker(t, redlock.Options{RequestTimeout: 100 * time.Millisecond})
		lock := acquire(t, l, longTTL, redlock.AutoRenew())
		masters.Behave(on(single.Extend, act{Lost: true}))
		for masters[0].Count(single.Extend) == 0 {
			pass(10 * time.Millisecond)
		}
		pass(150 * time.Millisecond) // it has failed
		masters.Behave(nil)
		settle(longTTL)
		is(t, lock.Err(), nil)
		must(t, lock.Release(t.Context()))
	})
}

// The same holds for an extension that waits for masters which do not return. It fails at its timeout, and the other
// masters decide the next extension.
func TestARenewalIsTriedAgainWhileAMasterHangs(t *testing.T) {
	bubble(t, 5, func(t *testing.T, masters fakes) {
		stuck := make(chan struct{})
		voters := masters.Masters()
		for i := range 2 {
			voters[i] = deaf{Fake: masters[i], Stuck: stuck}
		}
		l := lockerOver(t, voters, redlock.Options{Clock: newClock(), RequestTimeout: 100 * time.Millisecond})
		t.Cleanup(func() { close(stuck) })
		lock := acquire(t, l, longTTL, redlock.AutoRenew())
		masters[2].Behave(on(single.Extend, act{Lost: true}))
		for masters[2].Count(single.Extend) == 0 {
			pass(10 * time.Millisecond)
		}
		pass(50 * time.Millisecond)
		masters[2].Behave(nil) // that one request was lost
		settle(longTTL)
		is(t, lock.Err(), nil)
		must(t, lock.Release(t.Context()))
	})
}

// A majority had lost the key. If one extension repairs the key on a master, that master is no vote for the next
// extension.
func TestRepairsOfOneExtensionDoNotCountForTheNext(t *testing.T) {
	bubble(t, 5, func(t *testing.T, masters fakes) {
		l := masters.Locker(t, redlock.Options{RequestTimeout: time.Second})
		far(t, l, masters)
		masters.Behave(nil)
		lock := acquire(t, l, longTTL)
		settle(time.Millisecond)
		masters[:3].Forget()
		for _, m := range masters[1:3] {
			m.Behave(on(single.Extend, act{Before: 500 * time.Millisecond}))
		}
		for i, err := range extensions(t, lock, 2, func(int) time.Duration { return longTTL }) {
			if !errors.Is(err, redlock.ErrNotHeld) {
				t.Errorf("extension %d of a lock that three of five masters had lost: %v", i, err)
			}
		}
		settle(longTTL)
	})
}

// An extension that waits for another one ends with its context, and with the lock.
func TestAWaitingExtensionEndsWithItsContextAndWithTheLock(t *testing.T) {
	distantHold(t, func(t *testing.T, lock *redlock.Lock, _ fakes) {
		go func() { _ = lock.Extend(t.Context(), longTTL) }()
		synctest.Wait()
		is(t, lock.Extend(within(t, distant/2), longTTL), context.DeadlineExceeded)
		waiting := make(chan error, 1)
		go func() { waiting <- lock.Extend(t.Context(), longTTL) }()
		synctest.Wait()
		must(t, lock.Release(t.Context()))
		is(t, <-waiting, redlock.ErrNotHeld)
		settle(2 * distant)
	})
}

// If a holder extends by less than the ttl of a renewal, it gets less time than the renewal would give. Such an
// extension must not put off a planned renewal. Otherwise a holder that extends again and again loses its lock
// although all masters answer.
func TestAShorterExtensionDoesNotDelayARenewal(t *testing.T) {
	for name, opts := range map[string][]redlock.Option{
		"usual grace": {redlock.AutoRenew()},
		"long grace":  {redlock.AutoRenew(), redlock.Grace(longTTL / 2)},
	} {
		runVirtual(t, name, func(t *testing.T) {
			lock := acquire(t, newFakes(5).Locker(t, redlock.Options{}), longTTL, opts...)
			for range 20 {
				settle(longTTL / 4)
				must(t, lock.Extend(t.Context(), longTTL/100))
			}
			must(t, lock.Release(t.Context()))
		})
	}
}

// A Verify is sent as an extension that extends nothing. Events, metrics and errors must show it as a Verify:
// otherwise these extensions would hide a renewal that fails.
func TestObserversSeeVerifyAsItsOwnOperation(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		var told []string
		l := masters.Locker(t,
			redlock.Options{Observer: func(e redlock.Event) { told = append(told, e.Kind.String()+" "+e.Op) }})
		lock := acquire(t, l, longTTL)
		settle(time.Second)
		told = nil
		must(t, lock.Verify(t.Context()))
		settle(time.Second)
		slices.Sort(told)
		if want := []string{"verify verify", "vote verify", "vote verify", "vote verify"}; !slices.Equal(told, want) {
			t.Errorf("a Verify is reported as %q, want %q", told, want)
		}
		told = nil
		must(t, lock.Extend(t.Context(), longTTL))
		settle(time.Second)
		if slices.Sort(told); len(told) != 4 || told[0] != "extend extend" || told[3] != "vote extend" {
			t.Errorf("an extension is reported as %q", told)
		}
		masters.Behave(func(*single.Request) act { return act{Err: errors.New("down")} })
		op(t, lock.Verify(t.Context()), redlock.ErrNoQuorum, "verify")
		op(t, lock.Extend(t.Context(), longTTL), redlock.ErrNoQuorum, "extend")
		masters.Behave(nil)
		masters.Forget()
		op(t, lock.Verify(t.Context()), redlock.ErrNotHeld, "verify")
		lock = acquire(t, l, longTTL)
		masters.Forget()
		op(t, lock.Release(t.Context()), redlock.ErrNotHeld, "release")
	})
}

// op checks which operation a QuorumError names.
func op(t *testing.T, err, reason error, want string) {
	t.Helper()
	is(t, err, reason)
	q, ok := errors.AsType[*redlock.QuorumError](err)
	if !ok || q.Op != want || !strings.Contains(err.Error(), want) {
		t.Errorf("%v has the QuorumError %+v, want the operation %q", err, q, want)
	}
}

// Verify reads the clock when the masters have answered: they keep a key for longer than its lock is valid.
func TestVerifyNeverSaysYesOnceValidityIsOver(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		machine := newClock()
		lock := acquire(t, masters.Locker(t, redlock.Options{Clock: machine}), 10*time.Second)
		settle(time.Millisecond)
		masters.Behave(on(single.Extend, act{After: 50 * time.Millisecond}))
		verified := make(chan error, 1)
		go func() { verified <- lock.Verify(t.Context()) }()
		synctest.Wait()
		pass(25 * time.Millisecond)
		machine.Suspend(lock.Remaining()) // the masters have answered, and the machine sleeps
		if n := masters.Holders(lock.Owner()); n != 3 {
			t.Fatalf("%d masters have the key: this test shows nothing", n)
		}
		is(t, <-verified, redlock.ErrNotHeld)
	})
}

// Verify prolongs nothing: if its process dies, the key lapses when it would have.
func TestVerifyLetsNoKeyLiveForLonger(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		lock := acquire(t, masters.Locker(t, redlock.Options{}), longTTL)
		settle(longTTL / 2)
		expires := func(m *fake) time.Time {
			m.Mu.Lock()
			defer m.Mu.Unlock()
			return m.Keys[key].Expires
		}
		end := expires(masters[0])
		must(t, lock.Verify(t.Context()))
		settle(time.Second)
		for _, m := range masters {
			if now := expires(m); !now.Equal(end) {
				t.Errorf("%s keeps the key for %v longer", m.Name(), now.Sub(end))
			}
		}
		must(t, lock.Extend(t.Context(), longTTL)) // the control
		settle(time.Second)
		if !expires(masters[0]).After(end) {
			t.Error("nor does an extension: this test shows nothing")
		}
	})
}

// If a caller cancels an extension, that extension must not prolong a later extension.
func TestACancelledExtensionDoesNotLengthenTheNext(t *testing.T) {
	distantHold(t, func(t *testing.T, lock *redlock.Lock, _ fakes) {
		go func() { _ = lock.Extend(t.Context(), longTTL) }()
		synctest.Wait()
		is(t, lock.Extend(within(t, 10*time.Millisecond), time.Hour), context.DeadlineExceeded)
		settle(20 * time.Second)
		must(t, lock.Extend(t.Context(), longTTL))
		if left := lock.Remaining(); left > longTTL {
			t.Errorf("extended by %v, 20 s after another caller's extension by an hour had failed: remaining %v",
				longTTL, left)
		}
	})
}
