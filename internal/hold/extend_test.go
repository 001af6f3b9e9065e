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
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// distant is a round trip time. Two such round trips do not fit into the request timeout of these tests, a second.
const distant = 600 * time.Millisecond

// distantHold takes a lock over five distant masters, and calls body when all five have answered.
func distantHold(t *testing.T, body func(t *testing.T, lock *redlock.Lock, masters Fakes), opts ...redlock.Option) {
	t.Helper()
	Bubble(t, 5, func(t *testing.T, masters Fakes) {
		masters.Behave(Away(distant))
		l := masters.Locker(t, redlock.Options{RequestTimeout: time.Second})
		lock := Acquire(t, l, LongTTL, opts...)
		Settle(distant)
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
		"by the same":  func(int) time.Duration { return LongTTL },
		"by ever more": func(i int) time.Duration { return LongTTL + time.Duration(i)*time.Second },
		"by ever less": func(i int) time.Duration { return LongTTL - time.Duration(i)*time.Second },
		"one by an hour": func(i int) time.Duration {
			return map[bool]time.Duration{true: time.Hour, false: LongTTL}[i == 3]
		},
	} {
		distantHold(t, func(t *testing.T, lock *redlock.Lock, masters Fakes) {
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
			Settle(distant)
			Must(t, lock.Release(t.Context()))
		})
	}
}

// Every extension lasts as long as its caller asked for, even if another caller's extension was under way.
func TestValidityAfterAnExtensionCountsFromItsRequest(t *testing.T) {
	distantHold(t, func(t *testing.T, lock *redlock.Lock, _ Fakes) {
		go func() { _ = lock.Extend(t.Context(), LongTTL) }()
		Pass(distant / 2)
		began := time.Now()
		Must(t, lock.Extend(t.Context(), LongTTL))
		if until, want := lock.Until().Sub(began), LongTTL-LongTTL/100-2*time.Millisecond; until < want {
			t.Errorf("the lock is extended until %v after the call, want %v", until, want)
		}
		Settle(distant)
		Must(t, lock.Release(t.Context()))
	})
}

func TestAnExtensionDuringARenewalSucceeds(t *testing.T) {
	distantHold(t, func(t *testing.T, lock *redlock.Lock, masters Fakes) {
		began := time.Now()
		for masters[0].Count(single.Extend) == 0 {
			Pass(10 * time.Millisecond) // until the renewal is on its way
		}
		if time.Since(began) > LongTTL/2 {
			t.Fatalf("the renewal began after %v", time.Since(began))
		}
		Must(t, lock.Extend(t.Context(), LongTTL))
		Settle(distant)
		Must(t, lock.Release(t.Context()))
	}, redlock.AutoRenew())
}

// A renewal that too few masters have answered is tried again while the lock is valid.
func TestARenewalThatHasFailedIsTriedAgain(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		l := masters.Locker(t, redlock.Options{RequestTimeout: 100 * time.Millisecond})
		lock := Acquire(t, l, LongTTL, redlock.AutoRenew())
		masters.Behave(On(single.Extend, Act{Lost: true}))
		for masters[0].Count(single.Extend) == 0 {
			Pass(10 * time.Millisecond)
		}
		Pass(150 * time.Millisecond) // it has failed
		masters.Behave(nil)
		Settle(LongTTL)
		Is(t, lock.Err(), nil)
		Must(t, lock.Release(t.Context()))
	})
}

// The same holds for an extension that waits for masters which do not return. It fails at its timeout, and the other
// masters decide the next extension.
func TestARenewalIsTriedAgainWhileAMasterHangs(t *testing.T) {
	Bubble(t, 5, func(t *testing.T, masters Fakes) {
		stuck := make(chan struct{})
		voters := masters.Masters()
		for i := range 2 {
			voters[i] = Deaf{Fake: masters[i], Stuck: stuck}
		}
		l := LockerOver(t, voters, redlock.Options{Clock: NewClock(), RequestTimeout: 100 * time.Millisecond})
		t.Cleanup(func() { close(stuck) })
		lock := Acquire(t, l, LongTTL, redlock.AutoRenew())
		masters[2].Behave(On(single.Extend, Act{Lost: true}))
		for masters[2].Count(single.Extend) == 0 {
			Pass(10 * time.Millisecond)
		}
		Pass(50 * time.Millisecond)
		masters[2].Behave(nil) // that one request was lost
		Settle(LongTTL)
		Is(t, lock.Err(), nil)
		Must(t, lock.Release(t.Context()))
	})
}

// A majority had lost the key. If one extension repairs the key on a master, that master is no vote for the next
// extension.
func TestRepairsOfOneExtensionDoNotCountForTheNext(t *testing.T) {
	Bubble(t, 5, func(t *testing.T, masters Fakes) {
		l := masters.Locker(t, redlock.Options{RequestTimeout: time.Second})
		Far(t, l, masters)
		masters.Behave(nil)
		lock := Acquire(t, l, LongTTL)
		Settle(time.Millisecond)
		masters[:3].Forget()
		for _, m := range masters[1:3] {
			m.Behave(On(single.Extend, Act{Before: 500 * time.Millisecond}))
		}
		for i, err := range extensions(t, lock, 2, func(int) time.Duration { return LongTTL }) {
			if !errors.Is(err, redlock.ErrNotHeld) {
				t.Errorf("extension %d of a lock that three of five masters had lost: %v", i, err)
			}
		}
		Settle(LongTTL)
	})
}

// An extension that waits for another one ends with its context, and with the lock.
func TestAWaitingExtensionEndsWithItsContextAndWithTheLock(t *testing.T) {
	distantHold(t, func(t *testing.T, lock *redlock.Lock, _ Fakes) {
		go func() { _ = lock.Extend(t.Context(), LongTTL) }()
		synctest.Wait()
		Is(t, lock.Extend(Within(t, distant/2), LongTTL), context.DeadlineExceeded)
		waiting := make(chan error, 1)
		go func() { waiting <- lock.Extend(t.Context(), LongTTL) }()
		synctest.Wait()
		Must(t, lock.Release(t.Context()))
		Is(t, <-waiting, redlock.ErrNotHeld)
		Settle(2 * distant)
	})
}

// If a holder extends by less than the ttl of a renewal, it gets less time than the renewal would give. Such an
// extension must not put off a planned renewal. Otherwise a holder that extends again and again loses its lock
// although all masters answer.
func TestAShorterExtensionDoesNotDelayARenewal(t *testing.T) {
	for name, opts := range map[string][]redlock.Option{
		"usual grace": {redlock.AutoRenew()},
		"long grace":  {redlock.AutoRenew(), redlock.Grace(LongTTL / 2)},
	} {
		RunVirtual(t, name, func(t *testing.T) {
			lock := Acquire(t, NewFakes(5).Locker(t, redlock.Options{}), LongTTL, opts...)
			for range 20 {
				Settle(LongTTL / 4)
				Must(t, lock.Extend(t.Context(), LongTTL/100))
			}
			Must(t, lock.Release(t.Context()))
		})
	}
}

// A Verify is sent as an extension that extends nothing. Events, metrics and errors must show it as a Verify:
// otherwise these extensions would hide a renewal that fails.
func TestObserversSeeVerifyAsItsOwnOperation(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		var told []string
		l := masters.Locker(t,
			redlock.Options{Observer: func(e redlock.Event) { told = append(told, e.Kind.String()+" "+e.Op) }})
		lock := Acquire(t, l, LongTTL)
		Settle(time.Second)
		told = nil
		Must(t, lock.Verify(t.Context()))
		Settle(time.Second)
		slices.Sort(told)
		if want := []string{"verify verify", "vote verify", "vote verify", "vote verify"}; !slices.Equal(told, want) {
			t.Errorf("a Verify is reported as %q, want %q", told, want)
		}
		told = nil
		Must(t, lock.Extend(t.Context(), LongTTL))
		Settle(time.Second)
		if slices.Sort(told); len(told) != 4 || told[0] != "extend extend" || told[3] != "vote extend" {
			t.Errorf("an extension is reported as %q", told)
		}
		masters.Behave(func(*single.Request) Act { return Act{Err: errors.New("down")} })
		op(t, lock.Verify(t.Context()), redlock.ErrNoQuorum, "verify")
		op(t, lock.Extend(t.Context(), LongTTL), redlock.ErrNoQuorum, "extend")
		masters.Behave(nil)
		masters.Forget()
		op(t, lock.Verify(t.Context()), redlock.ErrNotHeld, "verify")
		lock = Acquire(t, l, LongTTL)
		masters.Forget()
		op(t, lock.Release(t.Context()), redlock.ErrNotHeld, "release")
	})
}

// op checks which operation a QuorumError names.
func op(t *testing.T, err, reason error, want string) {
	t.Helper()
	Is(t, err, reason)
	q, ok := errors.AsType[*redlock.QuorumError](err)
	if !ok || q.Op != want || !strings.Contains(err.Error(), want) {
		t.Errorf("%v has the QuorumError %+v, want the operation %q", err, q, want)
	}
}

// Verify reads the clock when the masters have answered: they keep a key for longer than its lock is valid.
func TestVerifyNeverSaysYesOnceValidityIsOver(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		machine := NewClock()
		lock := Acquire(t, masters.Locker(t, redlock.Options{Clock: machine}), 10*time.Second)
		Settle(time.Millisecond)
		masters.Behave(On(single.Extend, Act{After: 50 * time.Millisecond}))
		verified := make(chan error, 1)
		go func() { verified <- lock.Verify(t.Context()) }()
		synctest.Wait()
		Pass(25 * time.Millisecond)
		machine.Suspend(lock.Remaining()) // the masters have answered, and the machine sleeps
		if n := masters.Holders(lock.Owner()); n != 3 {
			t.Fatalf("%d masters have the key: this test shows nothing", n)
		}
		Is(t, <-verified, redlock.ErrNotHeld)
	})
}

// Verify prolongs nothing: if its process dies, the key lapses when it would have.
func TestVerifyLetsNoKeyLiveForLonger(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		lock := Acquire(t, masters.Locker(t, redlock.Options{}), LongTTL)
		Settle(LongTTL / 2)
		expires := func(m *Fake) time.Time {
			m.Mu.Lock()
			defer m.Mu.Unlock()
			return m.Keys[Key].Expires
		}
		end := expires(masters[0])
		Must(t, lock.Verify(t.Context()))
		Settle(time.Second)
		for _, m := range masters {
			if now := expires(m); !now.Equal(end) {
				t.Errorf("%s keeps the key for %v longer", m.Name(), now.Sub(end))
			}
		}
		Must(t, lock.Extend(t.Context(), LongTTL)) // the control
		Settle(time.Second)
		if !expires(masters[0]).After(end) {
			t.Error("nor does an extension: this test shows nothing")
		}
	})
}

// If a caller cancels an extension, that extension must not prolong a later extension.
func TestACancelledExtensionDoesNotLengthenTheNext(t *testing.T) {
	distantHold(t, func(t *testing.T, lock *redlock.Lock, _ Fakes) {
		go func() { _ = lock.Extend(t.Context(), LongTTL) }()
		synctest.Wait()
		Is(t, lock.Extend(Within(t, 10*time.Millisecond), time.Hour), context.DeadlineExceeded)
		Settle(20 * time.Second)
		Must(t, lock.Extend(t.Context(), LongTTL))
		if left := lock.Remaining(); left > LongTTL {
			t.Errorf("extended by %v, 20 s after another caller's extension by an hour had failed: remaining %v",
				LongTTL, left)
		}
	})
}
