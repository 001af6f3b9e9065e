package contend_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

// An acquisition that enters a lock again is in no queue of its process. It must hear what the first of a queue hears.

func TestAnAcquisitionThatEntersAgainHearsOfARelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(5))
		l := masters.Locker(t, redlock.Options{})
		orphan := func(op single.Op) {
			for _, m := range masters[3:] {
				c := &single.Call{Request: &single.Request{
					Op: op, Keys: []string{key}, Owner: "orphan", TTL: time.Hour, Reserve: 5 * time.Millisecond,
				}}
				m.Do(t.Context(), []*single.Call{c})
				must(t, c.Err)
			}
		}
		orphan(single.Acquire)
		outer := take(t, l, key, longTTL, redlock.Shared())
		masters[2].Stop() // so the two with the orphan are needed
		time.AfterFunc(5*time.Second, func() { orphan(single.Release) })
		began := time.Now()
		inner, err := l.Acquire(outer.Context(t.Context()), key, longTTL, redlock.Shared(), redlock.RetryEvery(time.Minute))
		must(t, err)
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("the key was free after 5s, and was had after %v", took)
		}
		must(t, inner.Release(t.Context()))
	})
}

func TestAnAcquisitionThatEntersAgainHearsThatMastersAreBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		l := masters.Locker(t, redlock.Options{})
		outer := take(t, l, key, longTTL, redlock.Shared())
		masters.Stop()
		time.AfterFunc(time.Second, masters.Start)
		began := time.Now()
		inner, err := l.Acquire(outer.Context(t.Context()), key, longTTL, redlock.Shared(), redlock.RetryEvery(time.Hour))
		must(t, err)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the masters were back after a second, and the lock came after %v", took)
		}
		must(t, inner.Release(t.Context()))
	})
}
