package redlock_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/single"
)

// A Verify is sent as an extension that extends nothing. Events, metrics and errors must show it as a Verify:
// otherwise these extensions would hide a renewal that fails.
func TestObserversSeeVerifyAsItsOwnOperation(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		var told []string
		l := masters.locker(t,
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
		masters.behave(func(*single.Request) act { return act{err: errors.New("down")} })
		op(t, lock.Verify(t.Context()), redlock.ErrNoQuorum, "verify")
		op(t, lock.Extend(t.Context(), longTTL), redlock.ErrNoQuorum, "extend")
		masters.behave(nil)
		for _, m := range masters {
			m.forget()
		}
		op(t, lock.Verify(t.Context()), redlock.ErrNotHeld, "verify")
		op(t, lock.Release(t.Context()), redlock.ErrNotHeld, "release")
	})
}

// op checks which operation a QuorumError names.
func op(t *testing.T, err, reason error, want string) {
	t.Helper()
	is(t, err, reason)
	var q *redlock.QuorumError
	if !errors.As(err, &q) || q.Op != want || !strings.Contains(err.Error(), want) {
		t.Errorf("%v has the QuorumError %+v, want the operation %q", err, q, want)
	}
}

// Verify reads the clock when the masters have answered: they keep a key for longer than its lock is valid.
func TestVerifyNeverSaysYesOnceValidityIsOver(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		machine := newClock()
		lock := acquire(t, masters.locker(t, redlock.Options{Clock: machine}), 10*time.Second)
		settle(time.Millisecond)
		masters.behave(on(single.Extend, act{after: 50 * time.Millisecond}))
		verified := make(chan error, 1)
		go func() { verified <- lock.Verify(t.Context()) }()
		synctest.Wait()
		pass(25 * time.Millisecond)
		machine.suspend(lock.Remaining()) // the masters have answered, and the machine sleeps
		if n := masters.holders(lock.Owner()); n != 3 {
			t.Fatalf("%d masters have the key: this test shows nothing", n)
		}
		is(t, <-verified, redlock.ErrNotHeld)
	})
}

// Verify prolongs nothing: if its process dies, the key lapses when it would have.
func TestVerifyLetsNoKeyLiveForLonger(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		lock := acquire(t, masters.locker(t, redlock.Options{}), longTTL)
		settle(longTTL / 2)
		expires := func(m *fake) time.Time {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.keys[key].expires
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
