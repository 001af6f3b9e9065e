package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/single"
)

// While a master counts as down, one request at a time asks whether it is back. If that is an acquisition, its own
// release comes while it is under way, and must not be turned away for that: the answer may be a grant.
func TestTheReleaseOfAnAttemptIsSentToAMasterThatCountsAsDown(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fakes fakes) {
		away := true
		masters := make([]redlock.Master, len(fakes))
		for i, m := range fakes {
			masters[i] = &cut{m, func(*single.Request) bool { return i > 0 || away }}
		}
		l, err := redlock.New(masters, redlock.Options{Clock: newClock(), RequestTimeout: 100 * time.Millisecond})
		must(t, err)
		for range 5 { // until all count as down
			_, err := l.TryAcquire(t.Context(), key, longTTL)
			is(t, err, redlock.ErrNoQuorum)
			settle(50 * time.Millisecond)
		}
		// The first is back, and slow: the round is decided by the other two long before it grants.
		away = false
		fakes[0].behave(on(single.Acquire, act{before: 50 * time.Millisecond}))
		_, err = l.TryAcquire(t.Context(), key, longTTL)
		is(t, err, redlock.ErrNoQuorum)
		settle(49 * time.Millisecond)
		if fakes[0].count(single.Acquire) != 1 || fakes[0].count(single.Release) != 0 {
			t.Error("the acquisition is not the probe: this test shows nothing")
		}
		settle(time.Second)
		if holder := fakes[0].holder(); holder != "" {
			t.Errorf("an orphan is left, and the janitor has %d pending releases", l.Pending())
		}
		must(t, l.Close(context.Background()))
	})
}
