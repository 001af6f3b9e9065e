package contend_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/soak"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
)

// This file judges liveness among waiters of every kind. The waiters of two processes are drawn at random, and
// readers of a third process overlap forever. Each waiter gets its key within a bound that docs/understand/waiting.md
// has.

// queuer is one acquisition that waits.
type queuer struct {
	process int
	kind    string
	every   time.Duration // 0: by default
	comes   time.Duration
	holds   time.Duration
}

func (q queuer) String() string {
	return fmt.Sprintf("%s of process %d, which comes after %v, holds for %v and asks every %v", q.kind, q.process,
		q.comes, q.holds, q.every)
}

// options returns the options of the acquisition; i tells reentrant owners apart.
func (q queuer) options(i int) []redlock.Option {
	opts := map[string][]redlock.Option{
		"plain": nil, "fenced": {redlock.Fenced()}, "exclusive": {redlock.Exclusive()}, "shared": {redlock.Shared()},
		"an owner": {redlock.Reentrant(fmt.Sprint("job ", i))}, "the owner": {redlock.Reentrant("job")}, "several": {
			redlock.AndKeys("more"),
		},
	}[q.kind]
	if q.every > 0 {
		opts = append(opts, redlock.RetryEvery(q.every))
	}
	return opts
}

// mixture is one random draw.
type mixture struct {
	queuers []queuer
	reads   time.Duration // for how long each reader of the third process does
}

func drawMixture(t *rapid.T) (m mixture) {
	ms := func(least, most int, label string) time.Duration {
		return time.Duration(rapid.IntRange(least, most).Draw(t, label)) * time.Millisecond
	}
	for range rapid.IntRange(1, 10).Draw(t, "waiters") {
		m.queuers = append(m.queuers, queuer{
			process: rapid.IntRange(0, 1).Draw(t, "process"),
			kind: rapid.SampledFrom([]string{
				"plain", "fenced", "exclusive", "shared", "an owner", "the owner", "several",
			}).Draw(t, "kind"),
			every: rapid.SampledFrom([]time.Duration{
				0, 0, time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, time.Minute, time.Hour,
			}).Draw(t, "every"),
			comes: ms(0, 3000, "comes"),
			holds: ms(0, 1000, "holds"),
		})
	}
	m.reads = ms(100, 2000, "reads")
	return m
}

// bound is the time within which each waiter must get the key. seldom is the bound for a waiter that asks so seldom
// that it may have to find the free key by itself.
func (m mixture) bound() (bound, seldom time.Duration) {
	holds := m.reads
	for _, q := range m.queuers {
		holds = max(holds, q.holds)
	}
	bound = time.Duration(len(m.queuers)+1) * (holds + m.reads + time.Second)
	return bound, bound + 27*time.Second
}

// play lists the waiters that did not get the key within the bound, and returns the largest share of the bound that a
// waiter needed.
func (m mixture) play(t *testing.T) (faults []string, worst float64) {
	bound, seldom := m.bound()
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		processes := []*redlock.Locker{masters.Locker(t, redlock.Options{}), masters.Locker(t, redlock.Options{})}
		stop := readFor(t, masters, m.reads, Key)
		ctx := Within(t, 2*seldom)
		var mu sync.Mutex
		var all sync.WaitGroup
		for i, q := range m.queuers {
			all.Go(func() {
				Pass(q.comes)
				began := time.Now()
				lock, err := processes[q.process].Acquire(ctx, Key, time.Minute, q.options(i)...)
				took, most := time.Since(began), bound
				if q.every > time.Second {
					most = seldom
				}
				mu.Lock()
				worst = max(worst, float64(took)/float64(most))
				if err != nil || took > most {
					faults = append(faults, fmt.Sprintf("%v: after %v, want %v at the most: %v", q, took, most, err))
				}
				mu.Unlock()
				if err == nil {
					Pass(q.holds)
					_ = lock.Release(context.WithoutCancel(ctx))
				}
			})
		}
		all.Wait()
		stop()
	})
	return faults, worst
}

func TestEveryWaiterOfAMixedQueueGetsItsKey(t *testing.T) {
	worst, checks := 0.0, 0
	for range soak.Or(1, 20) { // a hundred each
		rapid.Check(t, func(rt *rapid.T) {
			if checks++; checks > soak.Or(40, 2000) {
				return
			}
			m := drawMixture(rt)
			faults, most := m.play(t)
			worst = max(worst, most)
			for _, fault := range faults {
				rt.Errorf("beside readers of %v: %s", m.reads, fault)
			}
		})
	}
	t.Logf("the longest wait took %.0f %% of its bound", 100*worst)
}
