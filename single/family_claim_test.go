package single_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// claim reads until when a writer keeps readers out of the key.
func claim(tb testing.TB, s *redistest.Server, waiter string) time.Time {
	tb.Helper()
	for _, z := range members(tb, s, "key") {
		if z.Member == "c:"+waiter {
			return time.UnixMilli(int64(-z.Score))
		}
	}
	return time.Time{}
}

func TestAWaitingWriterKeepsNewReadersOut(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	first, late := reader("first", "1", time.Minute), reader("late", "1", time.Minute)
	ask(t, m, first)
	waits := by("w", 0, writer("writer", "1", time.Minute))
	if got := ask(t, m, waits); got.Outcome != single.Refused || got.Holder != "first" || !about(got.TTL, time.Minute) {
		t.Fatalf("the writer: %+v", got)
	}
	got := ask(t, m, late)
	if got.Outcome != single.Refused || got.Holder != "" || got.TTL <= 0 || got.TTL > single.WriterClaim {
		t.Errorf("a new reader: %+v, want refused for as long as the claim lasts", got)
	}
	if got := ask(t, m, first); got.Outcome != single.Granted {
		t.Errorf("the first reader's repeated request: %+v, want granted: it is in already", got)
	}
	if got := ask(t, m, as(single.Extend, first)); got.Outcome != single.Granted {
		t.Errorf("the first reader's extension: %+v", got)
	}
	if got := ask(t, m, as(single.Release, first)); got.Outcome != single.Granted || got.Token != 0 {
		t.Errorf("the first reader's release: %+v, a claim is no hold", got)
	}
	if got := ask(t, m, waits); got.Outcome != single.Granted || got.Token != 1 {
		t.Fatalf("the writer's second attempt: %+v", got)
	}
	if got := names(t, server, "key"); !slices.Equal(got, []string{"w:writer:1"}) {
		t.Errorf("the key has %q: the claim has become a hold", got)
	}
}

func TestAWriterThatDoesNotWaitClaimsNothing(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, reader("a", "1", time.Minute))
	ask(t, m, writer("w", "1", time.Minute))
	if got := ask(t, m, reader("b", "1", time.Minute)); got.Outcome != single.Granted {
		t.Errorf("a reader after a writer that tried once: %+v", got)
	}
}

func TestAClaimIsRenewedByEveryAttemptAndEndsByItself(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, reader("a", "1", time.Hour))
	waits := by("w", 0, writer("writer", "1", time.Minute))
	ask(t, m, waits)
	first := claim(t, server, "w")
	if left := first.Sub(serverNow(t, server)); left <= 0 || left > single.WriterClaim {
		t.Fatalf("the claim lasts for %v, want up to %v", left, single.WriterClaim)
	}
	redistest.Eventually(t, patience, func() bool {
		ask(t, m, waits)
		return claim(t, server, "w").After(first)
	}, "an attempt to renew the claim")
	last := claim(t, server, "w")
	redistest.Eventually(t, patience, func() bool {
		got := ask(t, m, reader("b", "1", time.Minute))
		now := serverNow(t, server)
		if got.Outcome == single.Granted && now.Before(last) {
			t.Errorf("a reader got in %v before the end of the claim", last.Sub(now))
		}
		return got.Outcome == single.Granted
	}, "readers to get in when the writer has died")
	if got := claim(t, server, "w"); !got.IsZero() {
		t.Errorf("the claim is still there: %v", got)
	}
}

func TestAClaimDoesNotOutliveItsKey(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	m := dial(t, server.URL())
	waits := by("w", 0, writer("w", "1", time.Minute))
	redistest.Eventually(t, patience, func() bool { // on a busy machine the reader may be gone before the writer comes
		ask(t, m, reader("a", "1", 50*time.Millisecond))
		refused := ask(t, m, waits).Outcome != single.Granted
		if !refused {
			must(t, server.Client().Del(t.Context(), "key").Err())
		}
		return refused
	}, "a writer to wait behind a reader")
	if left := life(t, server, "key"); left > single.WriterClaim {
		t.Errorf("the key lives for %v because of the claim, want at most %v", left, single.WriterClaim)
	}
	redistest.Eventually(t, patience, func() bool { return !exists(t, server, "key") },
		"the key to expire with the claim")
}

func TestEachWaitingWriterHasItsOwnClaim(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, reader("a", "1", time.Minute))
	one, two := by("one", 0, writer("1", "1", time.Minute)), by("two", 0, writer("2", "1", time.Minute))
	ask(t, m, one)
	ask(t, m, two)
	ask(t, m, as(single.Release, reader("a", "1", 0)))
	if got := ask(t, m, two); got.Outcome != single.Granted {
		t.Fatalf("a writer, with another writer's claim: %+v: claims only keep readers out", got)
	}
	if claim(t, server, "one").IsZero() || !claim(t, server, "two").IsZero() {
		t.Errorf("the key has %q, want the claim of the waiter", names(t, server, "key"))
	}
	if got := ask(t, m, as(single.Release, writer("2", "1", 0))); got.Token != 0 {
		t.Errorf("release: %+v", got)
	}
	if got := ask(t, m, reader("b", "1", time.Minute)); got.Outcome != single.Refused {
		t.Errorf("a reader, while a writer claims: %+v", got)
	}
}

func TestTheLastReleaseOfASharedKeyNotifiesItsWaiters(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	const waiters = 10
	var all []string
	for i := range waiters {
		all = append(all, fmt.Sprint("waiter", i))
	}
	heard := listen(t, server, append(all, "w")...)
	ask(t, m, by("w", 0, writer("w", "1", time.Minute)))
	ask(t, m, by("w", 0, writer("w", "2", time.Minute)))
	ask(t, m, by("w", time.Hour, reader("w", "3", time.Minute))) // has queued up itself: it is not to be called
	for i, name := range all {
		ask(t, m, by(name, time.Duration(waiters-i)*time.Second, reader(name, "1", time.Minute)))
	}
	drop := by("w", 0, as(single.Release, writer("w", "1", 0)))
	ask(t, m, drop)
	silent(t, server, heard, "w") // a hold is left
	drop.Hold = "2"
	ask(t, m, drop)
	for _, name := range all[:8] {
		if got := hears(t, heard); got != name+" key" {
			t.Errorf("%q was notified, want %s: waiters are notified in order", got, name)
		}
	}
	silent(t, server, heard, "w")
	if got := names(t, server, queueOf("key")); !slices.Equal(got, all[8:]) {
		t.Errorf("%q still queue, want %q: a notified waiter leaves", got, all[8:])
	}
	ask(t, m, drop)
	silent(t, server, heard, "w") // a release of nothing notifies no waiter
}

func TestASharedWaiterQueuesLikeAnyOther(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, writer("holder", "1", time.Minute))
	for i := range 300 {
		ask(t, m, by(fmt.Sprint("w", i), time.Duration(i)*time.Second, reader("r", "1", time.Minute)))
	}
	queue := names(t, server, queueOf("key"))
	if len(queue) != 256 || queue[0] != "w299" || queue[255] != "w44" {
		t.Errorf("%d waiters from %q to %q, want the 256 that have waited longest", len(queue), queue[0],
			queue[len(queue)-1])
	}
	if left := life(t, server, queueOf("key")); !about(left, single.QueueKeep) {
		t.Errorf("the queue is kept for %v", left)
	}
	ask(t, m, as(single.Release, writer("holder", "1", 0)))
	if got := ask(t, m, by("w50", 0, reader("r", "1", time.Minute))); got.Outcome != single.Granted {
		t.Fatalf("a waiter's acquire: %+v", got)
	}
	if got := ask(t, m, by("w51", 0, reader("r", "2", time.Minute))); got.Outcome != single.Granted {
		t.Fatalf("another owner's acquire: %+v", got)
	}
	if got := names(t, server, queueOf("key")); slices.Contains(got, "w51") {
		t.Error("the waiter that was granted beside another still queues")
	}
	// As with a plain lock, a waiter that has found the key free leaves its queue entry with its release.
	ask(t, m, by("w50", 0, as(single.Release, reader("r", "1", 0))))
	if got := names(t, server, queueOf("key")); slices.Contains(got, "w50") {
		t.Error("the waiter that has released still queues")
	}
}

func TestHoldIdsAreCheckedBeforeAnythingIsSent(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for name, r := range map[string]single.Request{
		"no hold id": reader("a", "", time.Minute),
		"a colon":    reader("a", "1:2", time.Minute),
		"two keys": {
			Op: single.Acquire, Kind: single.Shared, Keys: []string{"a", "b"}, Owner: "a", Hold: "1", TTL: time.Minute,
		},
		"a fence": {
			Op: single.Acquire, Kind: single.Exclusive, Keys: []string{"a"}, Owner: "a", Hold: "1", TTL: time.Minute,
			Fence: true,
		},
		"an unknown kind": {
			Op: single.Acquire, Kind: 9, Keys: []string{"a"}, Owner: "a", Hold: "1", TTL: time.Minute,
		},
		"a fence of two": {
			Op: single.Acquire, Keys: []string{"a", "b"}, Owner: "a", TTL: time.Minute, Fence: true,
		},
		"a raise of two": {Op: single.Raise, Keys: []string{"a", "b"}, Owner: "a", Token: 1},
		"too high a token": {
			Op: single.Acquire, Keys: []string{"a"}, Owner: "a", TTL: time.Minute, Fence: true, Token: single.MaxToken +
				1,
		},
		"a transfer of two": {
			Op: single.Transfer, Keys: []string{"a", "b"}, Owner: "a", From: "b", TTL: time.Minute,
		},
		"a transfer from itself": transfer("a", "a", "a", 1),
		"a transfer from nobody": transfer("a", "a", "", 1),
		"a shared transfer": {
			Op: single.Transfer, Kind: single.Shared, Keys: []string{"a"}, Owner: "a", Hold: "1", From: "b",
			TTL: time.Minute,
		},
		"a transfer for no time": {Op: single.Transfer, Keys: []string{"a"}, Owner: "a", From: "b"},
		"an acquisition from another": {
			Op: single.Acquire, Keys: []string{"a"}, Owner: "a", From: "b", TTL: time.Minute,
		},
		"too high a raise": {Op: single.Raise, Keys: []string{"a"}, Owner: "a", Token: single.MaxToken + 1},
	} {
		if _, err := m.Ask(t.Context(), r); err == nil || !strings.HasPrefix(err.Error(), "single: ") {
			t.Errorf("%s: %v, want an error of our own", name, err)
		}
	}
	if keys := server.Client().Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("keys were set: %q", keys)
	}
}

// A claim and a reservation, written by hand, have ended long ago: neither keeps a waiter out.
func TestEndedClaimsAndReservationsKeepNoWaiterOut(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	long := -float64(serverNow(t, server).Add(-time.Second).UnixMilli())
	setMarked(t, server, "key", redis.Z{Score: long, Member: "c:dead"})
	if got := ask(t, m, reader("r", "1", time.Minute)); got.Outcome != single.Granted {
		t.Errorf("a reader behind a claim that has ended: %+v", got)
	}
	must(t, server.Client().FlushDB(t.Context()).Err())
	setMarked(t, server, queueOf("key"), redis.Z{Score: long, Member: "!dead"})
	polite := by("w", 0, acquire("key", "me", time.Minute))
	polite.Polite = true
	if got := ask(t, m, polite); got.Outcome != single.Granted {
		t.Errorf("a polite waiter behind a reservation that has ended: %+v", got)
	}
}
