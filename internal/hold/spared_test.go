package hold_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// fails makes a master answer acquisitions with an error after this time: of all keys, or of the one that is given.
func fails(m *Fake, after time.Duration, keys ...string) {
	m.Behave(func(r *single.Request) Act {
		if r.Op == single.Acquire && (len(keys) == 0 || r.Keys[0] == keys[0]) {
			return Act{After: after, Err: ErrSilent}
		}
		return Act{}
	})
}

// longTimeout is more than enough for a master that is behind.
const longTimeout = 10 * time.Second

// TestASlowMasterIsAskedWhenOthersFail has masters that fail when a slow one has been spared. Each votes once.
func TestASlowMasterIsAskedWhenOthersFail(t *testing.T) {
	for _, tt := range []struct {
		each []time.Duration
		fail int
	}{
		{[]time.Duration{0, 0, lag}, 1}, {[]time.Duration{0, 0, 0, lag, lag}, 1}, {[]time.Duration{0, 0, 0, 0, lag}, 2},
	} {
		c := load{each: tt.each, timeout: longTimeout}
		c.during = func(t *testing.T, l *redlock.Locker, masters Fakes) {
			for i := range tt.fail {
				fails(masters[i], time.Millisecond, Key)
			}
			lock, err := l.TryAcquire(t.Context(), Key, LongTTL)
			if err != nil {
				t.Errorf("%v: a majority would have answered: %v", tt.each, err)
				return
			}
			Must(t, lock.Release(t.Context()))
			Settle(longTimeout) // until the slow ones have caught up
			for i, m := range masters {
				if holder := m.Holder(); holder != "" {
					t.Errorf("%v: master %d keeps the key for %q", tt.each, i, holder)
				}
			}
		}
		acquires, _ := c.run(t)
		if n := acquires.asked[Key] + acquires.spared[Key]; n != len(tt.each) {
			t.Errorf("%v: %d votes of %d masters", tt.each, n, len(tt.each))
		}
	}
}

// TestASlowMasterIsNotAskedInVain has rounds that can't be won with it.
func TestASlowMasterIsNotAskedInVain(t *testing.T) {
	for name, tt := range map[string]struct {
		joint bool
		fail  func(masters Fakes) // while the last master is behind
	}{
		"its caller gives up before the other master fails": {false, func(masters Fakes) {
			fails(masters[1], 100*time.Millisecond, Key)
		}},
		"one of the others refuses": {false, func(masters Fakes) {
			masters[0].Take("other", LongTTL)
			fails(masters[1], time.Millisecond, Key)
		}},
		"the masters that fail are of another set": {true, func(masters Fakes) {
			fails(masters[0], time.Millisecond, Key)
			fails(masters[1], time.Millisecond, Key)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := load{each: []time.Duration{0, 0, lag}, timeout: longTimeout, joint: tt.joint}
			if tt.joint {
				c.each = []time.Duration{0, 0, 0, 0, 0, lag}
			}
			c.during = func(t *testing.T, l *redlock.Locker, masters Fakes) {
				tt.fail(masters)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				if lock, err := l.TryAcquire(ctx, Key, LongTTL); err == nil {
					t.Errorf("got %v", lock)
				}
				Settle(longTimeout)
				if n := asksFor(masters[len(masters)-1], single.Acquire, Key); n != 0 {
					t.Errorf("the slow master got %d requests", n)
				}
			}
			c.run(t)
		})
	}
}

// TestAMasterThatOnlyReportsErrorsDoesNotDrownASlowOne: it answers, so it does not count as down, and each round finds
// out anew. The slow master can't answer for all of them.
func TestAMasterThatOnlyReportsErrorsDoesNotDrownASlowOne(t *testing.T) {
	const slow = "m3:6379"
	c := load{each: []time.Duration{0, 0, lag}, toomuch: true}
	c.during = func(_ *testing.T, _ *redlock.Locker, masters Fakes) { fails(masters[0], 0) }
	acquires, releases := c.run(t)
	if releases.by[slow] < 50 || 3*releases.silent[slow] > releases.by[slow] || len(acquires.spared) < 50 {
		t.Errorf("it did not answer %d of %d releases in time, and %d of %d acquisitions; it was spared %d",
			releases.silent[slow], releases.by[slow], acquires.silent[slow], acquires.by[slow], len(acquires.spared))
	}
}
