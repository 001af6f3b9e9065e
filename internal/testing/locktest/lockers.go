package locktest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// Started starts n servers, and makes a Locker over them that is closed with the test.
func Started(tb testing.TB, n int) ([]*redistest.Server, *redlock.Locker) {
	tb.Helper()
	servers := redistest.StartN(tb, n)
	return servers, Dial(tb, servers, redlock.Options{})
}

// Dial makes a Locker over servers that is closed with the test.
func Dial(tb testing.TB, servers []*redistest.Server, opts redlock.Options) *redlock.Locker {
	tb.Helper()
	locker, err := redlock.Dial(tb.Context(), URLs(servers), opts)
	Must(tb, err)
	tb.Cleanup(func() { CloseLocker(tb, locker) })
	return locker
}

// URLs returns the servers' addresses, for redlock.Dial.
func URLs(servers []*redistest.Server) []string {
	all := make([]string, len(servers))
	for i, s := range servers {
		all[i] = s.URL()
	}
	return all
}

// CloseLocker closes a Locker; everything it left on masters must be gone soon.
func CloseLocker(tb testing.TB, locker *redlock.Locker) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Promptly)
	defer cancel()
	if err := locker.Close(ctx); err != nil {
		tb.Errorf("Close: %v", err)
	}
}

// Wrapped makes a Locker over the servers, with each master wrapped by wrap, and closes the Locker with the test.
func Wrapped(tb testing.TB, servers []*redistest.Server, opts redlock.Options,
	wrap func(i int, m redlock.Master) redlock.Master,
) *redlock.Locker {
	tb.Helper()
	masters := WrapEach(servers, func(i int, s *redistest.Server) redlock.Master {
		m, err := single.Dial(s.URL(), single.Options{})
		Must(tb, err)
		tb.Cleanup(func() { Must(tb, m.Close()) })
		return wrap(i, m)
	})
	locker, err := redlock.New(masters, opts)
	Must(tb, err)
	tb.Cleanup(func() { CloseLocker(tb, locker) })
	return locker
}

// WrapEach makes a master of each, which may be a server or a master itself.
func WrapEach[M any](all []M, wrap func(i int, m M) redlock.Master) []redlock.Master {
	masters := make([]redlock.Master, len(all))
	for i, m := range all {
		masters[i] = wrap(i, m)
	}
	return masters
}

// MemLocker makes a Locker over masters in memory that is closed with the test.
func MemLocker(tb testing.TB, masters memmaster.Masters) *redlock.Locker {
	tb.Helper()
	return LockerOver(tb, masters.All(), redlock.Options{Clock: memmaster.NewClock(0)})
}

// MemJoint makes a Locker over two sets of masters in memory that is closed with the test.
func MemJoint(tb testing.TB, before, after memmaster.Masters) *redlock.Locker {
	tb.Helper()
	l, err := redlock.NewJoint(before.All(), after.All(), redlock.Options{Clock: memmaster.NewClock(0)})
	Must(tb, err)
	ClosesAtLast(tb, l)
	return l
}

// Acquire acquires the lock on Key, and fails the test if it can't.
func Acquire(tb testing.TB, l *redlock.Locker, ttl time.Duration, opts ...redlock.Option) *redlock.Lock {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), Promptly)
	defer cancel()
	lock, err := l.Acquire(ctx, Key, ttl, opts...)
	Must(tb, err)
	return lock
}

// Take acquires a lock, and fails the test if it can't.
func Take(tb testing.TB, locker *redlock.Locker, key string, ttl time.Duration, opts ...redlock.Option) *redlock.Lock {
	tb.Helper()
	lock, err := locker.Acquire(Soon(tb), key, ttl, opts...)
	if err != nil {
		tb.Fatalf("Acquire %q: %v", key, err)
	}
	return lock
}

// Give releases locks that have to be held.
func Give(tb testing.TB, locks ...*redlock.Lock) {
	tb.Helper()
	for _, lock := range locks {
		if err := lock.Release(context.WithoutCancel(tb.Context())); err != nil {
			tb.Errorf("Release %q: %v", lock.Key(), err)
		}
	}
}

// Try calls TryAcquire and releases the lock at once if it got one.
func Try(tb testing.TB, locker *redlock.Locker, key string, opts ...redlock.Option) error {
	tb.Helper()
	lock, err := locker.TryAcquire(Soon(tb), key, time.Minute, opts...)
	if err == nil {
		Give(tb, lock)
	}
	return err
}

// HolderOf asks who holds a key.
func HolderOf(tb testing.TB, l *redlock.Locker, key string) redlock.Holder {
	tb.Helper()
	h, err := l.Holder(tb.Context(), key)
	Must(tb, err)
	return h
}

// Sent is a Handover after its way to another process.
func Sent(tb testing.TB, h redlock.Handover) redlock.Handover {
	tb.Helper()
	var got redlock.Handover
	Must(tb, got.UnmarshalText([]byte(h.Secret())))
	return got
}

// Far puts the masters so far away that several batches are on the way to each at the same time, and the lanes know
// the distance.
func Far(t *testing.T, l *redlock.Locker, masters Fakes) {
	t.Helper()
	masters.Behave(Away(4 * time.Millisecond))
	for range 3 {
		lock, err := l.Acquire(t.Context(), "far", LongTTL)
		Must(t, err)
		Must(t, lock.Release(t.Context()))
	}
	Settle(time.Second)
}

// Everywhere waits until every server has the lock's key. A quorum decides an acquisition; a master that missed it,
// since the lock before was not gone from there, gets the key by an extension.
func Everywhere(tb testing.TB, servers []*redistest.Server, lock *redlock.Lock) {
	tb.Helper()
	redistest.Eventually(tb, Promptly, func() bool {
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

// Over reports whether the lock's Done channel is closed.
func Over(lock *redlock.Lock) bool {
	select {
	case <-lock.Done():
		return true
	default:
		return false
	}
}

// DialJoint makes a Locker of two sets of servers that is closed with the test.
func DialJoint(tb testing.TB, before, after []*redistest.Server, opts redlock.Options) *redlock.Locker {
	tb.Helper()
	l, err := redlock.DialJoint(tb.Context(), URLs(before), URLs(after), opts)
	Must(tb, err)
	tb.Cleanup(func() { CloseLocker(tb, l) })
	return l
}
