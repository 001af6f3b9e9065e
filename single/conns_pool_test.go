package single_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// Connecting to the master takes longer than a request has time. Requests wait for the connection that is being made
// and begin no second one, so they get a connection at last.
func TestRequestsShorterThanADialStillGetAConnection(t *testing.T) {
	for _, size := range []int{0, 1, 2} {
		synctest.Test(t, func(t *testing.T) {
			f := &far{takes: after(905 * time.Millisecond)}
			m := f.master(t, redis.Options{PoolSize: size})
			granted := 0
			for range 200 {
				if ok, _ := tryFor(t, m, "key", 10*time.Millisecond); ok {
					granted++
				}
			}
			dials, _ := f.counts()
			if granted < 100 || dials > 5 {
				t.Errorf("PoolSize %d: %d of 200 requests answered, over %d dials", size, granted, dials)
			}
		})
	}
}

// There are never more connections than PoolSize, whatever happens to the requests that caused them.
func TestThePoolSizeCountsConnectionsThatAreBeingMade(t *testing.T) {
	for _, size := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			f := &far{takes: after(305 * time.Millisecond)}
			m := f.master(t, redis.Options{PoolSize: size})
			var granted atomic.Int32
			concurrently(8, func(int) {
				for range 100 {
					if ok, _ := tryFor(t, m, "key", 20*time.Millisecond); ok {
						granted.Add(1)
						<-time.After(time.Millisecond)
					}
				}
			})
			if _, most := f.counts(); most != size || granted.Load() == 0 {
				t.Errorf("PoolSize %d: up to %d connections at a time, %d granted", size, most, granted.Load())
			}
			must(t, m.Close())
			if f.open != 0 {
				t.Errorf("PoolSize %d: %d connections are open after Close", size, f.open)
			}
		})
	}
}

// A stuck dial, with its first packet lost, does not keep others from beginning.
func TestAnotherConnectionIsDialledWhenOneIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{takes: func(dial int) time.Duration {
			if dial <= 2 { // these are lost
				return time.Hour
			}
			return time.Millisecond
		}}
		m := f.master(t, redis.Options{})
		began := time.Now()
		for ok := false; !ok; {
			ok, _ = tryFor(t, m, "key", 20*time.Millisecond)
		}
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("a connection after %v", took)
		}
	})
}

// Each of many requests learns why there is no connection, even if there are more requests than possible connections.
func TestEachRequestLearnsWhyThereIsNoConnection(t *testing.T) {
	refused := errors.New("refused")
	synctest.Test(t, func(t *testing.T) {
		f := &far{takes: after(time.Millisecond), refuse: refused}
		m := f.master(t, redis.Options{PoolSize: 2})
		concurrently(10, func(int) {
			if _, err := tryFor(t, m, "key", time.Second); !errors.Is(err, refused) {
				t.Errorf("%v, want %v", err, refused)
			}
		})
		f.refuse = nil
		if _, err := tryFor(t, m, "key", time.Second); err != nil {
			t.Errorf("when it is no longer refused: %v", err)
		}
	})
}

// A firewall between this process and a master forgets all connections, and drops their packets. That costs one
// request, not one for each kept connection: renewals would fail for that long.
func TestConnectionsThatAreCutTogetherCostOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{takes: after(time.Millisecond)}
		m := f.master(t, redis.Options{})
		const kept = 8
		concurrently(kept, func(int) { _, _ = tryFor(t, m, "taken", time.Second) })
		if n := single.IdleConnections(m); n != kept {
			t.Fatalf("%d connections are kept, want %d", n, kept)
		}
		f.cut.Store(kept)
		failed := 0
		for ok := false; !ok; failed++ {
			ok, _ = tryFor(t, m, "key", 500*time.Millisecond)
		}
		if failed--; failed != 1 {
			t.Errorf("%d requests failed before the first answer", failed)
		}
	})
}

// A connection that got an answer later is kept when one without an answer is closed.
func TestAConnectionThatWasAnsweredSinceIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{takes: after(time.Millisecond)}
		m := f.master(t, redis.Options{})
		_, err := tryFor(t, m, "key", time.Second)
		must(t, err)
		f.cut.Store(1)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = tryFor(t, m, "key", time.Second) })
		synctest.Wait()
		_, err = tryFor(t, m, "key", time.Second) // over another connection
		must(t, err)
		wg.Wait()
		if n := single.IdleConnections(m); n != 1 {
			t.Errorf("%d connections are kept, want only the answered one", n)
		}
	})
}

// A request that is late before it is sent proves nothing about its connection or other ones.
func TestARequestThatIsLateCostsNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{takes: after(time.Millisecond)}
		m := f.master(t, redis.Options{})
		concurrently(3, func(int) { _, _ = tryFor(t, m, "taken", time.Second) })
		ctx, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		c := &single.Call{Request: new(acquire("key", "me", time.Minute))}
		m.Do(ctx, []*single.Call{c})
		if n := single.IdleConnections(m); n != 3 || c.Sent || !errors.Is(c.Err, context.DeadlineExceeded) {
			t.Errorf("%d of 3 connections are kept; sent %t, %v", n, c.Sent, c.Err)
		}
	})
}

// Close ends requests that wait for a connection, and connections that are being made.
func TestCloseEndsWaitsForAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{takes: after(time.Hour)}
		m := f.master(t, redis.Options{PoolSize: 1})
		began := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := tryFor(t, m, "key", time.Minute); !errors.Is(err, redis.ErrClosed) {
					t.Errorf("%v, want %v", err, redis.ErrClosed)
				}
			})
		}
		synctest.Wait()
		must(t, m.Close())
		wg.Wait()
		if took := time.Since(began); took > 0 || f.open > 0 {
			t.Errorf("after %v %d connections are open", took, f.open)
		}
	})
}

// A Dialer that ignores the end of its context delays Close by a second at most.
func TestCloseDoesNotWaitForADialerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		m, err := single.Open(&redis.Options{
			Addr: "far:6379",
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				<-release
				return nil, net.ErrClosed
			},
		}, single.Options{})
		must(t, err)
		_, _ = tryFor(t, m, "key", time.Millisecond)
		began := time.Now()
		must(t, m.Close())
		if took := time.Since(began); took > time.Second {
			t.Errorf("Close took %v", took)
		}
		close(release)
	})
}

// Close does not wait for a server that does not answer the guard's mark.
func TestCloseDoesNotWaitForTheGuardsMark(t *testing.T) {
	marking, ended := make(chan struct{}, 1), make(chan struct{})
	server := oddServer(t, func(_ int, words []string) string {
		if words[0] == "set" && words[1] == single.GuardKey {
			marking <- struct{}{}
			<-ended
		}
		return guardAnswer(words)
	})
	t.Cleanup(func() { close(ended) })
	m, err := single.Open(&redis.Options{Addr: server.addr}, single.Options{RestartGuard: time.Second})
	must(t, err)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		_, _ = m.Ask(within(t, patience), inspect("key"))
	}()
	<-marking
	began := time.Now()
	must(t, m.Close())
	<-asked
	if took := time.Since(began); took > 900*time.Millisecond {
		t.Errorf("Close took %v", took)
	}
	redistest.Eventually(t, patience, func() bool { return single.BusyConnections(m) == 0 },
		"the connection to be given up")
}
