package single_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// hold is a request for one hold of the shared key "key".
func hold(op single.Op, kind single.Kind, owner, id string, ttl time.Duration) single.Request {
	return single.Request{Op: op, Kind: kind, Keys: []string{"key"}, Owner: owner, Hold: id, TTL: ttl}
}

// reader and writer are acquisitions of one hold.
func reader(owner, id string, ttl time.Duration) single.Request {
	return hold(single.Acquire, single.Shared, owner, id, ttl)
}

func writer(owner, id string, ttl time.Duration) single.Request {
	return hold(single.Acquire, single.Exclusive, owner, id, ttl)
}

// on is the same request for another key.
func on(key string, r single.Request) single.Request {
	r.Keys = []string{key}
	return r
}

// as turns a request into another operation of the same hold.
func as(op single.Op, r single.Request) single.Request {
	r.Op = op
	return r
}

// by sets the request's waiter.
func by(waiter string, waited time.Duration, r single.Request) single.Request {
	r.Waiter, r.Waited = waiter, waited
	return r
}

// queueOf is the name of a key's arrival queue, spelled out.
func queueOf(key string) string { return "redlock:queue:{" + key + "}" }

// serverNow is the server's time.
func serverNow(tb testing.TB, s *redistest.Server) time.Time {
	tb.Helper()
	now, err := s.Client().Time(tb.Context()).Result()
	must(tb, err)
	return now
}

// setMarked adds to a sorted set as the scripts make them.
func setMarked(tb testing.TB, s *redistest.Server, key string, more ...redis.Z) {
	tb.Helper()
	must(tb,
		s.Client().ZAdd(tb.Context(), key,
			append(more, redis.Z{Score: single.LeastScore, Member: single.Mark(key)})...).Err())
}

// members reads a sorted set, without the mark.
func members(tb testing.TB, s *redistest.Server, key string) []redis.Z {
	tb.Helper()
	zs, err := s.Client().ZRangeWithScores(tb.Context(), key, 0, -1).Result()
	must(tb, err)
	if len(zs) > 0 && zs[0].Member == single.Mark(key) {
		return zs[1:]
	}
	return zs
}

// names reads the members of a sorted set in their order, without the mark.
func names(tb testing.TB, s *redistest.Server, key string) []string {
	tb.Helper()
	var all []string
	for _, z := range members(tb, s, key) {
		all = append(all, z.Member.(string))
	}
	return all
}

// exists reports that a key is there.
func exists(tb testing.TB, s *redistest.Server, key string) bool {
	tb.Helper()
	n, err := s.Client().Exists(tb.Context(), key).Result()
	must(tb, err)
	return n == 1
}

// listen subscribes to the channels of waiters. Their notifications arrive on the returned channel as "waiter key".
func listen(tb testing.TB, s *redistest.Server, waiters ...string) <-chan string {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	channels := make([]string, len(waiters))
	for i, w := range waiters {
		channels[i] = "redlock:free:" + w
	}
	sub := s.Client().Subscribe(ctx, channels...)
	heard := make(chan string, 100)
	for range waiters {
		if _, err := sub.ReceiveTimeout(ctx, patience); err != nil { // the confirmations
			tb.Fatal(err)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			message, err := sub.ReceiveMessage(ctx)
			if err != nil {
				return
			}
			heard <- message.Channel[len("redlock:free:"):] + " " + message.Payload
		}
	}()
	tb.Cleanup(func() {
		cancel()
		_ = sub.Close()
		<-ended
	})
	return heard
}

// hears waits for the next notification.
func hears(tb testing.TB, heard <-chan string) string {
	tb.Helper()
	select {
	case call := <-heard:
		return call
	case <-time.After(patience):
		tb.Fatal("no waiter was notified")
		return ""
	}
}

// silent fails the test if a waiter was notified. It publishes to a sentinel, and no other message may come before
// that one.
func silent(tb testing.TB, s *redistest.Server, heard <-chan string, waiter string) {
	tb.Helper()
	must(tb, s.Client().Publish(tb.Context(), "redlock:free:"+waiter, "-").Err())
	if got := hears(tb, heard); got != waiter+" -" {
		tb.Errorf("%q was notified", got)
	}
}
