package subject_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/fake"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// Goroutines of one client also exclude each other, many at a time and repeatedly. If two of them shared a session or a
// connection, both would get in. Contenders that split the votes of five masters, lose and release must never meet: the
// benchmark compares the speed of the hand-written rivals, so they must be correct.
func TestEverySubjectLetsOneGoroutineOfSeveralClientsIn(t *testing.T) {
	servers := redistest.StartN(t, 5)
	for _, s := range subject.All() {
		t.Run(s.Name(), func(t *testing.T) {
			addrs := hosted(t, s, addresses(servers))
			if n := crowd(t, open(t, s, addrs), open(t, s, addrs)); n > 0 {
				t.Errorf("%d times there were two holders at once", n)
			}
		})
	}
}

// The control of the test above.
func TestACrowdBehindATurnstileForTwoIsSeen(t *testing.T) {
	s := &fake.Subject{Crowd: 2}
	for begun := time.Now(); time.Since(begun) < 20*time.Second; {
		if crowd(t, open(t, s, nil)) > 0 {
			return
		}
	}
	t.Error("two were never seen inside")
}

// crowd lets four goroutines of each client in five times, and counts how often two were inside at once.
func crowd(t *testing.T, clients ...subject.Client) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	var two atomic.Int64
	inside := make(chan struct{}, 1)
	for _, c := range clients {
		for range 4 {
			wg.Go(func() {
				for range 5 {
					enter(ctx, t, c, "crowd:"+t.Name(), inside, &two)
				}
			})
		}
	}
	wg.Wait()
	return two.Load()
}

// enter acquires the key, again and again if the subject stops early, and counts the cases in which another goroutine
// is inside.
func enter(ctx context.Context, t *testing.T, c subject.Client, key string, inside chan struct{}, two *atomic.Int64) {
	t.Helper()
	handle, err := c.Acquire(ctx, key, 30*time.Second)
	for err != nil && ctx.Err() == nil {
		handle, err = c.Acquire(ctx, key, 30*time.Second)
	}
	if err != nil {
		t.Error(err)
		return
	}
	select {
	case inside <- struct{}{}:
		runtime.Gosched()
		<-inside
	default:
		two.Add(1)
	}
	if err := handle.Release(ctx); err != nil {
		t.Error(err)
	}
}

// After a cancelled wait the key must be free for others, and the session or connection can be used again.
func TestAnAbandonedWaitLeavesTheKeyFree(t *testing.T) {
	for _, s := range []subject.Subject{subject.Etcd(), subject.Postgres()} {
		t.Run(s.Name(), func(t *testing.T) {
			addrs := hosted(t, s, nil)
			holder, waiter, third := open(t, s, addrs), open(t, s, addrs), open(t, s, addrs)
			handle, err := holder.Acquire(t.Context(), "key", time.Minute)
			must(t, err)
			var waits sync.WaitGroup
			for range 4 {
				waits.Go(func() {
					short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
					defer cancel()
					if _, err := waiter.Acquire(short, "key", time.Minute); err == nil {
						t.Error("it was granted a key that is held")
					}
				})
			}
			waits.Wait()
			must(t, handle.Release(t.Context()))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for _, c := range []subject.Client{third, waiter} {
				handle, err := c.Acquire(ctx, "key", time.Minute)
				if err != nil {
					t.Fatalf("after cancelled waits: %v", err)
				}
				if err := handle.Release(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
