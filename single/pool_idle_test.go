package single_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// A firewall between this process and a master forgets all connections, and drops their packets. That costs one
// request, not one for each kept connection: renewals would fail for that long.
func TestConnectionsThatAreCutTogetherCostOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{takes: after(time.Millisecond)}
		m := f.master(t, redis.Options{})
		defer func() { must(t, m.Close()) }()
		const kept = 8
		var wg sync.WaitGroup
		for range kept {
			wg.Go(func() { _, _ = tryFor(t, m, "taken", time.Second) })
		}
		wg.Wait()
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
		defer func() { must(t, m.Close()) }()
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

// One connection shows that the address leads to a replica now. Then all older connections to the same server are
// dropped, too.
func TestAllConnectionsToAReplicaAreDropped(t *testing.T) {
	servers := redistest.StartN(t, 2)
	m := direct(t, &redis.Options{Addr: servers[0].Addr()}, 3)
	host, port, err := net.SplitHostPort(servers[1].Addr())
	must(t, err)
	must(t, servers[0].Client().Do(t.Context(), "REPLICAOF", host, port).Err())
	_, err = m.Ask(t.Context(), acquire("key", "me", time.Minute))
	if n := single.IdleConnections(m); !redis.HasErrorPrefix(err, "READONLY") || n != 0 {
		t.Errorf("%v, and %d connections are kept", err, n)
	}
}

// A request that is late before it is sent proves nothing about its connection or other ones.
func TestARequestThatIsLateCostsNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{takes: after(time.Millisecond)}
		m := f.master(t, redis.Options{})
		defer func() { must(t, m.Close()) }()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { _, _ = tryFor(t, m, "taken", time.Second) })
		}
		wg.Wait()
		ctx, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		c := &single.Call{Request: new(acquire("key", "me", time.Minute))}
		m.Do(ctx, []*single.Call{c})
		if n := single.IdleConnections(m); n != 3 || c.Sent || !errors.Is(c.Err, context.DeadlineExceeded) {
			t.Errorf("%d of 3 connections are kept; sent %t, %v", n, c.Sent, c.Err)
		}
	})
}
