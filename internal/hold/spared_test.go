package hold_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/single"
)

// fails makes a master answer acquisitions with an error after this time: of all keys, or of the one that is given.
func fails(m *fake, after time.Duration, keys ...string) {
	m.Behave(func(r *single.Request) act {
		if r.Op == single.Acquire && (len(keys) == 0 || r.Keys[0] == keys[0]) {
			return act{After: after, Err: errSilent}
		}
		return act{}
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
		c.during = func(t *testing.T, l *redlock.Locker, masters fakes) {
			for i := range tt.fail {
				fails(masters[i], time.Millisecond, key)
			}
			lock, err := l.TryAcquire(t.Context(), key, longTTL)
			if err != nil {
				t.Errorf("%v: a majority would have answered: %v", tt.each, err)
				return
			}
			must(t, lock.Release(t.Context()))
			settle(longTimeout) // until the slow ones have caught up
			for i, m := range masters {
				if holder := m.Holder(); holder != "" {
					t.Errorf("%v: master %d keeps the key for %q", tt.each, i, holder)
				}
			}
		}
		acquires, _ := c.run(t)
		if n := acquires.asked[key] + acquires.spared[key]; n != len(tt.each) {
			t.Errorf("%v: %d votes of %d masters", tt.each, n, len(tt.each))
		}
	}
}

// TestASlowMasterIsNotAskedInVain has rounds that can't be won with it.
func TestASlowMasterIsNotAskedInVain(t *testing.T) {
	for name, tt := range map[string]struct {
		joint bool
		fail  func(masters fakes) // while the last master is behind
	}{
		"its caller gives up before the other master fails": {false, func(masters fakes) {
			fails(masters[1], 100*time.Millisecond, key)
		}},
		"one of the others refuses": {false, func(masters fakes) {
			masters[0].Take("other", longTTL)
			fails(masters[1], time.Millisecond, key)
		}},
		"the masters that fail are of another set": {true, func(masters fakes) {
			fails(masters[0], time.Millisecond, key)
			fails(masters[1], time.Millisecond, key)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := load{each: []time.Duration{0, 0, lag}, timeout: longTimeout, joint: tt.joint}
			if tt.joint {
				c.each = []time.Duration{0, 0, 0, 0, 0, lag}
			}
			c.during = func(t *testing.T, l *redlock.Locker, masters fakes) {
				tt.fail(masters)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				if lock, err := l.TryAcquire(ctx, key, longTTL); err == nil {
					t.Errorf("got %v", lock)
				}
				settle(longTimeout)
				if n := asksFor(masters[len(masters)-1], single.Acquire, key); n != 0 {
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
	c.during = func(_ *testing.T, _ *redlock.Locker, masters fakes) { fails(masters[0], 0) }
	acquires, releases := c.run(t)
	if releases.by[slow] < 50 || 3*releases.silent[slow] > releases.by[slow] || len(acquires.spared) < 50 {
		t.Errorf("it did not answer %d of %d releases in time, and %d of %d acquisitions; it was spared %d",
			releases.silent[slow], releases.by[slow], acquires.silent[slow], acquires.by[slow], len(acquires.spared))
	}
}
