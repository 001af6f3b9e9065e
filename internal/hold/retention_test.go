package hold_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

// retaining makes a Locker with one master that can be put out of reach. left reports whether its latest acquisition
// omitted the command that keeps the counter.
func retaining(t *testing.T, servers []*redistest.Server) (l *redlock.Locker, away *atomic.Bool, left func() bool) {
	t.Helper()
	away = new(atomic.Bool)
	var mu sync.Mutex
	retained := false
	l = Wrapped(t, servers, redlock.Options{}, func(i int, m redlock.Master) redlock.Master {
		return Cut(m, func(r *single.Request) bool {
			if r.Op == single.Acquire {
				mu.Lock()
				retained = r.Retained
				mu.Unlock()
			}
			return i == 0 && away.Load()
		})
	})
	return l, away, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return retained
	}
}

// keeps returns the shortest time for which a server keeps the counter of key.
func keeps(t *testing.T, servers []*redistest.Server) time.Duration {
	t.Helper()
	var kept []time.Duration
	for _, s := range servers {
		kept = append(kept, s.Client().PTTL(t.Context(), counterKey).Val())
	}
	return slices.Min(kept)
}

// Hazard 28, too: not every acquisition asks masters to keep a counter, but enough do. A master that has lost its
// counter keeps the new one.
func TestHazard28ACounterIsKeptThoughNotEveryAcquisitionAsks(t *testing.T) {
	servers := redistest.StartN(t, 3)
	l, away, left := retaining(t, servers)
	cycle := func() uint64 {
		lock := Take(t, l, Key, LongTTL, redlock.Fenced())
		Give(t, lock)
		return lock.Token()
	}
	away.Store(true)
	for range 20 {
		if cycle(); left() {
			t.Fatal("a master that never answered counts as asked")
		}
	}
	away.Store(false)
	if cycle(); left() {
		t.Error("the master that was away did not get the command")
	}
	redistest.Eventually(t, 10*time.Second, func() bool {
		cycle() // the last master's vote may come after the round was decided
		return left()
	}, "an acquisition that does not ask")
	if got := keeps(t, servers); got < 30*24*time.Hour {
		t.Errorf("a counter is kept for %v", got)
	}

	for _, s := range servers { // the control: nobody asks now
		s.Client().PExpire(t.Context(), counterKey, time.Hour)
	}
	before := cycle()
	if got := keeps(t, servers); got > time.Hour {
		t.Errorf("a counter is kept for %v, so the command was sent, or this test shows nothing", got)
	}
	for _, s := range servers {
		s.Client().Del(t.Context(), counterKey)
	}
	lock := Take(t, l, Key, LongTTL, redlock.Fenced())
	if lock.Token() <= before {
		t.Errorf("token %d after %d", lock.Token(), before)
	}
	redistest.Eventually(t, 10*time.Second, func() bool { return keeps(t, servers) > 30*24*time.Hour },
		"the new counters to be kept")
	Give(t, lock)
}

// A master that refuses an acquisition has not received the command that keeps the counter.
func TestARefusedAcquisitionDoesNotCountAsKeepingTheCounter(t *testing.T) {
	servers := redistest.StartN(t, 3)
	l, _, left := retaining(t, servers)
	SetByHand(t, servers[:1], "orphan", LongTTL)
	for range 20 {
		lock := Take(t, l, Key, LongTTL, redlock.Fenced())
		Give(t, lock)
		Settled(t, servers)
		if left() {
			t.Fatal("a master that has refused counts as asked")
		}
	}
}

// A Locker remembers the greatest token that it has seen. When the masters have lost their counters, and the wall clock
// has not moved on, its next token is above that all the same.
func TestTokensOfALockerGrowThoughMastersForgetAndTheClockStands(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		last := uint64(0)
		for n := range 5 {
			lock := Acquire(t, l, LongTTL, redlock.Fenced()) // virtual time does not pass meanwhile
			if lock.Token() <= last {
				t.Errorf("acquisition %d has token %d after %d", n, lock.Token(), last)
			}
			last = lock.Token()
			Must(t, lock.Release(t.Context()))
			masters.Forget()
		}
	})
}
