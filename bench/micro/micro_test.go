package micro_test

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/schedule"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

var must = locktest.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// instant is a master that grants and releases everything at once.
type instant string

func (m instant) Name() string { return string(m) }

func (instant) Do(_ context.Context, batch []*single.Call) {
	for _, c := range batch {
		c.Sent, c.Reply = true, single.Reply{Outcome: single.Granted}
	}
}

func instantLocker(tb testing.TB, n int) *redlock.Locker {
	tb.Helper()
	var masters []redlock.Master
	for i := range n {
		masters = append(masters, instant("master-"+strconv.Itoa(i)))
	}
	return lockerOver(tb, masters...)
}

// lockerOver makes a Locker with a fixed identity, so requests have the same size on every machine.
func lockerOver(tb testing.TB, masters ...redlock.Master) *redlock.Locker {
	tb.Helper()
	locker, err := redlock.New(masters, redlock.Options{Identity: "bench"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := locker.Close(context.Background()); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return locker
}

// cycle takes a lock and releases it.
func cycle(b *testing.B, locker *redlock.Locker, opts ...redlock.Option) {
	b.Helper()
	lock, err := locker.Acquire(b.Context(), "key", 10*time.Second, opts...)
	if err != nil {
		b.Fatal(err)
	}
	if err := lock.Release(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// cycles are the options of the kinds of lock, by name.
func cycles() map[string][]redlock.Option {
	return map[string][]redlock.Option{
		"plain":    nil,
		"fenced":   {redlock.Fenced()},
		"two-keys": {redlock.AndKeys("other")},
		"shared":   {redlock.Shared()},
	}
}

func BenchmarkQuorum(b *testing.B) {
	for _, n := range []int{1, 3, 5, 9} {
		b.Run(fmt.Sprintf("masters=%d", n), func(b *testing.B) { quorum(b, n) })
	}
}

// quorum is cycles over n masters in memory.
func quorum(b *testing.B, n int) {
	b.Helper()
	locker := instantLocker(b, n)
	b.ReportAllocs()
	for b.Loop() {
		cycle(b, locker)
	}
}

func BenchmarkQuorumParallel(b *testing.B) {
	locker := instantLocker(b, 5)
	var nth atomic.Int64
	b.SetParallelism(64)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		key := "key-" + strconv.FormatInt(nth.Add(1), 10)
		for pb.Next() {
			lock, err := locker.Acquire(b.Context(), key, 10*time.Second)
			if err != nil {
				b.Error(err)
				return
			}
			if err := lock.Release(b.Context()); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func master(tb testing.TB) *single.Master {
	tb.Helper()
	return dial(tb, redistest.Start(tb))
}

func dial(tb testing.TB, server *redistest.Server) *single.Master {
	tb.Helper()
	m, err := single.Dial(server.URL(), single.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := m.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return m
}

// pairs are pairs of requests to one master; each pair leaves nothing behind.
func pairs() []struct {
	name    string
	acquire single.Request
} {
	const ttl = time.Minute
	keys := []string{"key"}
	return []struct {
		name    string
		acquire single.Request
	}{
		{"plain", single.Request{Kind: single.Plain, Keys: keys, Owner: "owner", TTL: ttl}},
		{"fenced", single.Request{Kind: single.Plain, Keys: keys, Owner: "owner", TTL: ttl, Fence: true, Token: 1}},
		{"several", single.Request{Kind: single.Plain, Keys: []string{"a", "b", "c"}, Owner: "owner", TTL: ttl}},
		{"shared", single.Request{Kind: single.Shared, Keys: []string{"rw"}, Owner: "owner", Hold: "h", TTL: ttl}},
		{"exclusive", single.Request{
			Kind: single.Exclusive, Keys: []string{"rw"}, Owner: "owner", Hold: "h", TTL: ttl,
		}},
	}
}

// ask sends one request and fails unless it is granted: a benchmark of refusals would measure something else.
func ask(b *testing.B, m *single.Master, r single.Request) {
	b.Helper()
	reply, err := m.Ask(b.Context(), r)
	if err != nil || reply.Outcome != single.Granted {
		b.Fatalf("%+v: %+v, %v", r, reply, err)
	}
}

func BenchmarkScript(b *testing.B) {
	for name, f := range scripts(master(b)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			f(b)
		})
	}
}

// scripts are benchmarks by name. Each sends requests to one master as often as the benchmark wants.
func scripts(m *single.Master) iter.Seq2[string, func(b *testing.B)] {
	return func(yield func(string, func(b *testing.B)) bool) {
		for _, p := range pairs() {
			acquire, release := p.acquire, p.acquire
			acquire.Op = single.Acquire
			release.Op, release.Fence, release.Token = single.Release, false, 0
			cycle := func(b *testing.B) {
				b.Helper()
				for range b.N {
					ask(b, m, acquire)
					ask(b, m, release)
				}
			}
			if !yield(p.name, cycle) {
				return
			}
		}
		together := func(b *testing.B) { b.Helper(); askTogether(b, m, 64) }
		_ = yield("batch", together) && yield(extending, func(b *testing.B) { b.Helper(); askAgain(b, m) })
	}
}

// extending is a benchmark with a number of commands that depends on the machine's speed: within a millisecond there is
// nothing to extend.
const extending = "extend"

// askAgain extends a key again and again.
func askAgain(b *testing.B, m *single.Master) {
	b.Helper()
	held := single.Request{Op: single.Acquire, Keys: []string{"kept"}, Owner: "owner", TTL: time.Minute}
	ask(b, m, held)
	held.Op = single.Extend
	for range b.N {
		ask(b, m, held)
	}
}

// askTogether acquires n keys in one batch and releases them in another, where the releases are one script. The time is
// for all n.
func askTogether(b *testing.B, m *single.Master, n int) {
	b.Helper()
	var batches [2][]*single.Call
	for i := range n {
		r := single.Request{Op: single.Acquire, Keys: []string{fmt.Sprint("key", i)}, Owner: "owner", TTL: time.Minute}
		batches[0] = append(batches[0], &single.Call{Request: new(r)})
		r.Op = single.Release
		batches[1] = append(batches[1], &single.Call{Request: new(r)})
	}
	for _, batch := range batches {
		for _, c := range batch {
			m.Prepare(c.Request)
		}
	}
	for range b.N {
		for _, batch := range batches {
			m.Do(b.Context(), batch)
			for _, c := range batch {
				if c.Err != nil || c.Reply.Outcome != single.Granted {
					b.Fatalf("%+v: %+v, %v", *c.Request, c.Reply, c.Err)
				}
			}
		}
	}
}

// ended passes a call's end on to the goroutine that sent it.
type ended chan struct{}

func (e ended) Ended(*lane.Call) { e <- struct{}{} }

func BenchmarkLane(b *testing.B) {
	for _, callers := range []int{1, 16, 128, 1024} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			m := master(b)
			requests := held(b, m, callers)
			var batches errgroup.Group
			queue := lane.New(m, batches.Go, schedule.AfterFunc)
			var left atomic.Int64
			var group errgroup.Group
			b.ReportAllocs()
			b.ResetTimer()
			left.Store(int64(b.N))
			for _, r := range requests {
				group.Go(func() error { return extend(queue, r, &left) })
			}
			if err := group.Wait(); err != nil {
				b.Error(err)
			}
			b.StopTimer()
			queue.Close()
			if err := batches.Wait(); err != nil {
				b.Error(err)
			}
		})
	}
}

// held takes a key for every caller and returns the requests that extend them: one script each, always granted.
func held(b *testing.B, m *single.Master, callers int) []*single.Request {
	b.Helper()
	var out []*single.Request
	for i := range callers {
		r := single.Request{
			Op: single.Acquire, Keys: []string{"key-" + strconv.Itoa(i)}, Owner: "owner", TTL: time.Hour,
		}
		ask(b, m, r)
		r.Op = single.Extend
		m.Prepare(&r)
		out = append(out, &r)
	}
	return out
}

// extend sends one request again and again while there is something to extend.
func extend(queue *lane.Lane, request *single.Request, left *atomic.Int64) error {
	done := make(ended, 1)
	for left.Add(-1) >= 0 {
		c := &lane.Call{Call: single.Call{Request: request}, Deadline: time.Now().Add(10 * time.Second), To: done}
		queue.Send(c)
		<-done
		if c.Err != nil {
			return fmt.Errorf("extend %s: %w", request.Keys[0], c.Err)
		}
		if c.Reply.Outcome != single.Granted {
			return fmt.Errorf("extend %s: %+v", request.Keys[0], c.Reply)
		}
	}
	return nil
}
