package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

func TestMain(m *testing.M) {
	redistest.AtOnce(8) // most of those that are parallel wait for locks to end
	goleak.VerifyTestMain(m)
}

const (
	// key is the lock's name in tests that need one only.
	key = "orders:42"
	// longTTL is for locks that must not lapse during a test.
	longTTL = time.Minute
	// promptly bounds what should happen at once; a starved machine needs a part of it.
	promptly = 10 * time.Second
)

// The limits of the package.
const (
	maxMasters    = 64
	maxKeySize    = 64 << 10
	maxPrefixSize = 1 << 10
	maxGrace      = 200 * time.Millisecond // by default
	maxEvents     = 1 << 14                // that wait for an Observer
)

// dial makes a Locker over servers that is closed with the test.
func dial(tb testing.TB, servers []*redistest.Server, opts redlock.Options) *redlock.Locker {
	tb.Helper()
	locker, err := redlock.Dial(tb.Context(), urls(servers), opts)
	must(tb, err)
	tb.Cleanup(func() { closeLocker(tb, locker) })
	return locker
}

func urls(servers []*redistest.Server) []string {
	all := make([]string, len(servers))
	for i, s := range servers {
		all[i] = s.URL()
	}
	return all
}

// closeLocker closes a Locker; everything it left on masters must be gone soon.
func closeLocker(tb testing.TB, locker *redlock.Locker) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), promptly)
	defer cancel()
	if err := locker.Close(ctx); err != nil {
		tb.Errorf("Close: %v", err)
	}
}

// wrapped makes a Locker over the servers, with each master wrapped by wrap, and closes the Locker with the test.
func wrapped(tb testing.TB, servers []*redistest.Server, opts redlock.Options,
	wrap func(i int, m redlock.Master) redlock.Master,
) *redlock.Locker {
	tb.Helper()
	masters := make([]redlock.Master, len(servers))
	for i, s := range servers {
		m, err := single.Dial(s.URL(), single.Options{})
		must(tb, err)
		tb.Cleanup(func() { must(tb, m.Close()) })
		masters[i] = wrap(i, m)
	}
	locker, err := redlock.New(masters, opts)
	must(tb, err)
	tb.Cleanup(func() { closeLocker(tb, locker) })
	return locker
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func acquire(tb testing.TB, l *redlock.Locker, ttl time.Duration, opts ...redlock.Option) *redlock.Lock {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), promptly)
	defer cancel()
	lock, err := l.Acquire(ctx, key, ttl, opts...)
	must(tb, err)
	return lock
}

// is fails the test unless err matches want.
func is(tb testing.TB, err, want error) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Errorf("got %v, want an error that matches %v", err, want)
	}
}

// isNot fails the test if err matches any of these.
func isNot(tb testing.TB, err error, others ...error) {
	tb.Helper()
	for _, other := range others {
		if errors.Is(err, other) {
			tb.Errorf("%v must not match %v", err, other)
		}
	}
}

// within returns a context with this deadline that ends with the test.
func within(tb testing.TB, d time.Duration) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), d)
	tb.Cleanup(cancel)
	return ctx
}

// value reads the key on one server; "" when it is not there.
func value(tb testing.TB, s *redistest.Server) string {
	tb.Helper()
	got, err := s.Client().Get(tb.Context(), key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		tb.Fatal(err)
	}
	return got
}

// holders counts the servers on which owner holds the key, or any owner if it is "".
func holders(tb testing.TB, servers []*redistest.Server, owner string) int {
	tb.Helper()
	n := 0
	for _, s := range servers {
		if held := value(tb, s); held != "" && (owner == "" || held == owner) {
			n++
		}
	}
	return n
}

// setByHand takes the key on servers as any other implementation would. A quorum decides a release, so the release of
// the previous lock may still be on its way to a server.
func setByHand(tb testing.TB, servers []*redistest.Server, owner string, ttl time.Duration) {
	tb.Helper()
	for _, s := range servers {
		redistest.Eventually(tb, promptly, func() bool {
			ok, err := s.Client().SetNX(tb.Context(), key, owner, ttl).Result()
			must(tb, err)
			return ok
		}, s.Addr()+" to grant SET NX by hand")
	}
}

// over reports whether the lock's Done channel is closed.
func over(lock *redlock.Lock) bool {
	select {
	case <-lock.Done():
		return true
	default:
		return false
	}
}
