package single_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

func TestEachHoldOfASharedKeyEndsByItself(t *testing.T) {
	t.Parallel()
	m := dial(t, redistest.Start(t).URL())
	ask(t, m, reader("long", "1", time.Hour))
	ask(t, m, reader("short", "1", 2*time.Second))
	if got := ask(t, m, inspect("key")); got.Token != 2 || got.Holder != "long" || !about(got.TTL, time.Hour) {
		t.Fatalf("inspect of two readers: %+v", got)
	}
	redistest.Eventually(t, patience, func() bool { return ask(t, m, inspect("key")).Token == 1 },
		"the short hold to end")
	refuses(t, m, "", as(single.Extend, reader("short", "1", time.Hour))) // which has ended
	grants(t, m, as(single.Extend, reader("long", "1", time.Hour)))
}

// A test finds that a hold has ended. If that is at most so many milliseconds after its request, it did not have its
// ttl. The server counts whole milliseconds. A lone hold is a string, and Redis 8.0 may remove a string at the
// beginning of its last millisecond. Every validity subtracts two milliseconds for that (redlock's
// expiryGranularity).
func TestNoHoldOfASharedKeyEndsBeforeItsTTL(t *testing.T) {
	t.Parallel()
	const ttl = 5 * time.Millisecond
	server, m := started(t)
	version, err := server.Client().InfoMap(t.Context(), "server").Result()
	must(t, err)
	alone := ttl
	if strings.HasPrefix(version["Server"]["redis_version"], "8.") { // Valkey says 7.2 there
		alone -= time.Millisecond
	}
	for name, c := range map[string]struct{ again, beside bool }{
		"acquired alone": {}, "extended alone": {again: true}, "acquired beside another": {beside: true},
		"extended beside another": {again: true, beside: true},
	} {
		others, least := uint64(0), alone
		if c.beside {
			least = ttl
			others = ask(t, m, reader("other", "1", time.Hour)).Token
		}
		for range 100 {
			began := time.Now()
			ask(t, m, reader("a", "1", ttl))
			if c.again {
				began = time.Now()
				if ask(t, m, as(single.Extend, reader("a", "1", ttl))).Outcome != single.Granted {
					continue // a busy machine
				}
			}
			for ask(t, m, inspect("key")).Token > others {
				continue
			}
			if lived := time.Since(began); lived < least {
				t.Fatalf("%s: it was over after %v", name, lived)
			}
		}
		ask(t, m, as(single.Release, reader("other", "1", 0)))
	}
}

// Holds, a claim and a reservation are left by hand, as if no command had touched them since they ended long ago.
func TestAnEndedHoldBlocksNoOtherOwner(t *testing.T) {
	server, m := started(t)
	ended := float64(serverNow(t, server).Add(-time.Second).UnixMilli())
	for _, r := range []single.Request{held("w:w:1"), held("r:r:1")} {
		for left, score := range map[string]float64{"w:other:1": ended, "r:other:1": ended, "c:dead": -ended} {
			must(t, server.Client().FlushDB(t.Context()).Err())
			setMarked(t, server, "key", redis.Z{Score: score, Member: left})
			refuses(t, m, "", inspect("key"))
			if got := grants(t, m, r); got.Token != 1 {
				t.Errorf("%s has ended, and the next request gets %+v", left, got)
			}
			if got := names(t, server, "key"); slices.Contains(got, left) {
				t.Errorf("the key still has %q", got)
			}
		}
	}
	must(t, server.Client().FlushDB(t.Context()).Err())
	setMarked(t, server, queueOf("key"), redis.Z{Score: -ended, Member: "!dead"})
	grants(t, m, polite(by("w", 0, acquire("key", "me", time.Minute))))
}

func TestAHoldIsNeverShortened(t *testing.T) {
	server, m := started(t)
	for _, beside := range []bool{false, true} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		ask(t, m, reader("a", "1", time.Hour))
		if beside {
			ask(t, m, reader("z", "1", time.Minute))
		}
		for _, c := range []struct {
			name    string
			request single.Request
		}{
			{"acquired again", reader("a", "1", time.Minute)},
			{"extended", as(single.Extend, reader("a", "1", time.Minute))},
			{"joined by another", reader("b", "1", time.Minute)},
		} {
			ask(t, m, c.request)
			if got := ask(t, m, inspect("key")); !about(got.TTL, time.Hour) ||
				!about(life(t, server, "key"), time.Hour) {
				t.Errorf("%s for less, beside another: %t: %+v; the key lives for %v, want an hour", c.name, beside,
					got, life(t, server, "key"))
			}
		}
	}
}

// The key of a hold may have lost its expiry (PERSIST), or end before the hold does. The next request must not set an
// expiry before the holds have ended.
func TestSharePersistedKeyKeepsItsHolds(t *testing.T) {
	server, m := started(t)
	briefly := func(r single.Request) single.Request {
		r.TTL = time.Millisecond
		return r
	}
	for _, early := range []bool{false, true} {
		for name, next := range map[string]single.Request{
			"its extension":       as(single.Extend, briefly(held("r:a:1"))),
			"another's extension": as(single.Extend, held("r:z:1")),
			"a refused writer":    by("w", 0, held("w:b:1")),
			"a reader":            briefly(held("r:b:1")),
			"a shorter request":   briefly(held("r:a:1")),
		} {
			if early && next.Op != single.Extend {
				continue
			}
			must(t, server.Client().FlushDB(t.Context()).Err())
			long := held("r:a:1")
			long.TTL = time.Hour
			grants(t, m, long)
			grants(t, m, held("r:z:1")) // each hold in a set has its own end
			must(t, server.Client().Persist(t.Context(), "key").Err())
			if early {
				must(t, server.Client().PExpire(t.Context(), "key", time.Minute).Err())
			}
			ask(t, m, next)
			if left := life(t, server, "key"); !about(left, time.Hour) {
				t.Errorf("%s, early %t: the key lives for %v, and a hold in it for an hour", name, early, left)
			}
		}
	}
}

// Neither a hold that ended nor a claim of a writer that has gone blocks others. A released hold does not block them
// for the rest of its ttl either. Plain locks see only whether the key is there.
func TestAReleasedHoldDoesNotLeaveItsTimeToTheKey(t *testing.T) {
	t.Parallel()
	server, m := started(t)
	ask(t, m, reader("long", "1", time.Hour))
	ask(t, m, reader("short", "1", 100*time.Millisecond))
	ask(t, m, by("w", 0, writer("w", "1", time.Minute)))
	ask(t, m, as(single.Release, reader("long", "1", 0)))
	if left := life(t, server, "key"); left > single.WriterClaim {
		t.Errorf("the key lives for %v, though its last hold and claim end in %v", left, single.WriterClaim)
	}
	redistest.Eventually(t, patience, func() bool {
		return ask(t, m, acquire("key", "plain", time.Minute)).Outcome == single.Granted
	}, "a plain lock to get the key")
}
