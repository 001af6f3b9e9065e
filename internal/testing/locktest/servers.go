package locktest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// Calls sums up how often the servers have performed the commands, scripts' own commands included.
func Calls(tb testing.TB, servers []*redistest.Server, commands ...string) int {
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

// TellAll sends a command to each server.
func TellAll(tb testing.TB, servers []*redistest.Server, words ...any) {
	tb.Helper()
	for _, s := range servers {
		Must(tb, s.Client().Do(tb.Context(), words...).Err())
	}
}

// Queued is the number of waiters in the arrival queue of key on a server.
func Queued(tb testing.TB, s *redistest.Server, key string) int {
	tb.Helper()
	n, err := s.Client().ZCard(tb.Context(), "redlock:queue:{"+key+"}").Result()
	if err != nil {
		tb.Fatal(err)
	}
	return max(0, int(n)-1) // its mark is none
}

// AwaitQueue waits until n waiters are in the arrival queue of key on a majority of the servers. A server without the
// holder's key grants the waiters instead.
func AwaitQueue(tb testing.TB, servers []*redistest.Server, key string, n int) {
	tb.Helper()
	redistest.Eventually(tb, Promptly, func() bool {
		have := 0
		for _, s := range servers {
			if Queued(tb, s, key) >= n {
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

// AwaitEars waits until each server has n subscriptions.
func AwaitEars(tb testing.TB, servers []*redistest.Server, n int) {
	tb.Helper()
	redistest.Eventually(tb, Promptly, func() bool {
		for _, s := range servers {
			if listeners(tb, s) != n {
				return false
			}
		}
		return true
	}, fmt.Sprintf("%d subscriptions on each master", n))
}

// Settled counts the requests that the servers have got, once no more arrive.
func Settled(tb testing.TB, servers []*redistest.Server) int {
	tb.Helper()
	last := -1
	redistest.Eventually(tb, Promptly, func() bool {
		before := last
		last = Calls(tb, servers, "set", "evalsha", "eval")
		return last == before
	}, "requests to settle")
	return last
}

// Nowhere waits until no server has key.
func Nowhere(tb testing.TB, servers []*redistest.Server, key string) {
	tb.Helper()
	redistest.Eventually(tb, Promptly, func() bool {
		n := 0
		for _, s := range servers {
			n += int(s.Client().Exists(tb.Context(), key).Val())
		}
		return n == 0
	}, fmt.Sprintf("%q to go", key))
}

// Demote makes a server a replica of a port without a server.
func Demote(tb testing.TB, s *redistest.Server) {
	tb.Helper()
	Must(tb, s.Client().Do(tb.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
}

// Listening counts the subscriptions on all servers.
func Listening(tb testing.TB, servers []*redistest.Server) int {
	tb.Helper()
	n := 0
	for _, s := range servers {
		n += listeners(tb, s)
	}
	return n
}

// Value reads the key on one server; "" when it is not there.
func Value(tb testing.TB, s *redistest.Server) string {
	tb.Helper()
	got, err := s.Client().Get(tb.Context(), Key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		tb.Fatal(err)
	}
	return got
}

// Holders counts the servers on which owner holds the key, or any owner if it is "".
func Holders(tb testing.TB, servers []*redistest.Server, owner string) int {
	tb.Helper()
	n := 0
	for _, s := range servers {
		if held := Value(tb, s); held != "" && (owner == "" || held == owner) {
			n++
		}
	}
	return n
}

// SetByHand takes the key on servers as any other implementation would. A quorum decides a release, so the release of
// the previous lock may still be on its way to a server.
func SetByHand(tb testing.TB, servers []*redistest.Server, owner string, ttl time.Duration) {
	tb.Helper()
	for _, s := range servers {
		redistest.Eventually(tb, Promptly, func() bool {
			ok, err := s.Client().SetNX(tb.Context(), Key, owner, ttl).Result()
			Must(tb, err)
			return ok
		}, s.Addr()+" to grant SET NX by hand")
	}
}
