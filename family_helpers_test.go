package redlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// soon returns a context that ends with the test, or after promptly.
func soon(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), promptly)
	tb.Cleanup(cancel)
	return ctx
}

// take acquires a lock, and fails the test if it can't.
func take(tb testing.TB, locker *redlock.Locker, key string, ttl time.Duration, opts ...redlock.Option) *redlock.Lock {
	tb.Helper()
	lock, err := locker.Acquire(soon(tb), key, ttl, opts...)
	if err != nil {
		tb.Fatalf("Acquire %q: %v", key, err)
	}
	return lock
}

// give releases a lock that has to be held.
func give(tb testing.TB, lock *redlock.Lock) {
	tb.Helper()
	if err := lock.Release(context.WithoutCancel(tb.Context())); err != nil {
		tb.Errorf("Release %q: %v", lock.Key(), err)
	}
}

// try calls TryAcquire and releases the lock at once if it got one.
func try(tb testing.TB, locker *redlock.Locker, key string, opts ...redlock.Option) error {
	tb.Helper()
	lock, err := locker.TryAcquire(soon(tb), key, time.Minute, opts...)
	if err == nil {
		give(tb, lock)
	}
	return err
}

// waiting is an Acquire under way.
type waiting struct {
	lock  *redlock.Lock
	err   error
	at    time.Time
	ended chan struct{} // closed when the fields above may be read
}

// wait begins to acquire. The end of the test releases the lock, unless the test has released it before.
func wait(tb testing.TB, ctx context.Context, locker *redlock.Locker, key string, ttl time.Duration,
	opts ...redlock.Option,
) *waiting {
	tb.Helper()
	w := &waiting{ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		w.lock, w.err = locker.Acquire(ctx, key, ttl, opts...)
		w.at = time.Now()
	}()
	return w
}

// get waits for the lock, which has to come within promptly.
func (w *waiting) get(tb testing.TB) *redlock.Lock {
	tb.Helper()
	select {
	case <-w.ended:
	case <-time.After(promptly):
		tb.Fatalf("the waiter still waits after %v", promptly)
	}
	if w.err != nil {
		tb.Fatalf("the waiter got no lock: %v", w.err)
	}
	return w.lock
}

// fail waits until the acquisition fails, and returns its error.
func (w *waiting) fail(tb testing.TB) error {
	tb.Helper()
	select {
	case <-w.ended:
	case <-time.After(promptly):
		tb.Fatalf("the waiter still waits after %v", promptly)
	}
	if w.err == nil {
		_ = w.lock.Release(context.WithoutCancel(tb.Context()))
		tb.Fatal("the waiter got the lock")
	}
	return w.err
}

// calls sums up how often the servers have performed the commands, scripts' own commands included.
func calls(tb testing.TB, servers []*redistest.Server, commands ...string) int {
	tb.Helper()
	sum := 0
	for _, s := range servers {
		info, err := s.Client().Info(tb.Context(), "commandstats").Result()
		if err != nil {
			tb.Fatal(err)
		}
		for line := range strings.Lines(info) {
			for _, command := range commands {
				var n int
				if found, _ := fmt.Sscanf(line, "cmdstat_"+command+":calls=%d,", &n); found == 1 {
					sum += n
				}
			}
		}
	}
	return sum
}

// queued is the number of waiters in the arrival queue of key on a server.
func queued(tb testing.TB, s *redistest.Server, key string) int {
	tb.Helper()
	n, err := s.Client().ZCard(tb.Context(), "redlock:queue:{"+key+"}").Result()
	if err != nil {
		tb.Fatal(err)
	}
	return max(0, int(n)-1) // its mark is none
}

// awaitQueue waits until n waiters are in the arrival queue of key on a majority of the servers. A server without the
// holder's key grants the waiters instead.
func awaitQueue(tb testing.TB, servers []*redistest.Server, key string, n int) {
	tb.Helper()
	redistest.Eventually(tb, promptly, func() bool {
		have := 0
		for _, s := range servers {
			if queued(tb, s, key) >= n {
				have++
			}
		}
		return have > len(servers)/2
	}, fmt.Sprintf("%d waiters to have queued up for %q", n, key))
}

// listeners is the number of connections of a server that are subscribed to something.
func listeners(tb testing.TB, s *redistest.Server) int {
	tb.Helper()
	list, err := s.Client().Do(tb.Context(), "client", "list", "type", "pubsub").Text()
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Count(list, "\n")
}

// awaitEars waits until each server has n subscriptions.
func awaitEars(tb testing.TB, servers []*redistest.Server, n int) {
	tb.Helper()
	redistest.Eventually(tb, promptly, func() bool {
		for _, s := range servers {
			if listeners(tb, s) != n {
				return false
			}
		}
		return true
	}, fmt.Sprintf("%d subscriptions on each master", n))
}

// everywhere waits until every server has the lock's key. A quorum decides an acquisition; a master that missed it,
// since the lock before was not gone from there, gets the key by an extension.
func everywhere(tb testing.TB, servers []*redistest.Server, lock *redlock.Lock) {
	tb.Helper()
	redistest.Eventually(tb, promptly, func() bool {
		n := 0
		for _, s := range servers {
			n += int(s.Client().Exists(tb.Context(), lock.Keys()...).Val())
		}
		if n < len(servers)*len(lock.Keys()) {
			_ = lock.Extend(tb.Context(), lock.Remaining())
		}
		return n == len(servers)*len(lock.Keys())
	}, fmt.Sprintf("every master to have %q", lock.Keys()))
}

// settled counts the requests that the servers have got, once no more arrive.
func settled(tb testing.TB, servers []*redistest.Server) int {
	tb.Helper()
	last := -1
	redistest.Eventually(tb, promptly, func() bool {
		before := last
		last = calls(tb, servers, "set", "evalsha", "eval")
		return last == before
	}, "requests to settle")
	return last
}

// nowhere waits until no server has key.
func nowhere(tb testing.TB, servers []*redistest.Server, key string) {
	tb.Helper()
	redistest.Eventually(tb, promptly, func() bool {
		n := 0
		for _, s := range servers {
			n += int(s.Client().Exists(tb.Context(), key).Val())
		}
		return n == 0
	}, fmt.Sprintf("%q to go", key))
}
