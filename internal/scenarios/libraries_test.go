package scenarios_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// shortTTL is for locks that must expire during a test.
const shortTTL = 150 * time.Millisecond

// process is a Locker over the servers, as a separate process would have it.
func process(tb testing.TB, servers []*redistest.Server, opts redlock.Options) *redlock.Locker {
	tb.Helper()
	l, err := redlock.Dial(tb.Context(), urls(servers), opts)
	must(tb, err)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), promptly)
		defer cancel()
		if err := l.Close(ctx); err != nil && ctx.Err() == nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return l
}

// valueOf returns a server's value of a key, "" if there is none.
func valueOf(tb testing.TB, s *redistest.Server, k string) string {
	tb.Helper()
	v, err := s.Client().Get(context.WithoutCancel(tb.Context()), k).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		tb.Fatal(err)
	}
	return v
}

// put sets a key to another owner's value, without an expiry.
func put(tb testing.TB, s *redistest.Server, k, v string) {
	tb.Helper()
	must(tb, s.Client().Set(tb.Context(), k, v, 0).Err())
}

// withValue counts the servers with this value under a key.
func withValue(tb testing.TB, servers []*redistest.Server, k, v string) (n int) {
	tb.Helper()
	for _, s := range servers {
		if valueOf(tb, s, k) == v {
			n++
		}
	}
	return n
}

// allHave waits until all of these servers have this value. A lock exists as soon as most servers have it.
func allHave(tb testing.TB, servers []*redistest.Server, k, v string) {
	tb.Helper()
	redistest.Eventually(tb, promptly, func() bool { return withValue(tb, servers, k, v) == len(servers) },
		"all masters to have "+k)
}

// left returns the rest of a key's life on a server, -1 without an expiry.
func left(tb testing.TB, s *redistest.Server, k string) time.Duration {
	tb.Helper()
	d, err := s.Client().PTTL(tb.Context(), k).Result()
	must(tb, err)
	return d
}

// about fails unless a server keeps a key for this long, minus the time since the given moment.
func about(tb testing.TB, s *redistest.Server, k string, want time.Duration, since time.Time) {
	tb.Helper()
	got := left(tb, s, k)
	if got > want || got < want-time.Since(since)-200*time.Millisecond {
		tb.Errorf("%s lives for another %v, want %v", k, got, want)
	}
}

// lapses waits until a lock is over and its key is gone from all servers.
func lapses(tb testing.TB, servers []*redistest.Server, lock *redlock.Lock) {
	tb.Helper()
	select {
	case <-lock.Done():
	case <-soon(tb).Done():
		tb.Fatal("the lock does not lapse")
	}
	allHave(tb, servers, lock.Key(), "")
}
