package single_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// lets sends a request that must be granted.
func lets(tb testing.TB, m *single.Master, what string, r single.Request) {
	tb.Helper()
	if got := ask(tb, m, r); got.Outcome == single.Refused {
		tb.Errorf("%s at %q: %+v, want granted", what, r.Keys, got)
	}
}

// together asks for plain locks of these keys together.
func together(owner string, keys ...string) single.Request {
	r := acquire(keys[0], owner, time.Minute)
	r.Keys = keys
	return r
}

func TestAWaiterForAPlainLockKeepsNewReadersOut(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	lets(t, m, "a reader", reader("first", "1", time.Minute))
	if got := ask(t, m, acquire("key", "once", time.Minute)); got.Outcome != single.Refused || got.Claimed {
		t.Errorf("a caller that tries once: %+v", got)
	}
	lets(t, m, "a reader behind one that tried once", reader("second", "1", time.Minute))
	waits := by("w", 0, acquire("key", "plain", time.Minute))
	for range 2 { // the second finds its own claim
		got := ask(t, m, waits)
		if got.Outcome != single.Refused || !got.Claimed || got.Holder != "" || !about(got.TTL, time.Minute) {
			t.Fatalf("the waiter: %+v, want refused for a minute by readers, with a claim", got)
		}
	}
	if left := claim(t, server, "w").Sub(serverNow(t, server)); left <= 0 || left > single.WriterClaim {
		t.Errorf("its claim lasts for %v", left)
	}
	if got := ask(t, m, reader("late", "1", time.Minute)); got.Outcome != single.Refused || got.Holder != "" {
		t.Errorf("a new reader: %+v", got)
	}
	lets(t, m, "the release", as(single.Release, reader("first", "1", 0)))
	lets(t, m, "the release", as(single.Release, reader("second", "1", 0)))
	lets(t, m, "the waiter, when the readers have gone", waits)
	if got := value(t, server, "key"); got != "plain" {
		t.Errorf("the key is %q, want the form of every plain lock", got)
	}
}

// Claims only keep readers out: a shared key without holds, but with claims, is free for all other requests.
func TestClaimsKeepOnlyReadersOut(t *testing.T) {
	fenced := acquire("key", "fenced", time.Minute)
	fenced.Fence = true
	repair := as(single.Extend, acquire("key", "lost", time.Minute))
	repair.Repair = true
	polite := by("polite", 0, acquire("key", "polite", time.Minute))
	polite.Polite = true
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for name, r := range map[string]single.Request{
		"plain": acquire("key", "plain", time.Minute), "fenced": fenced, "several": together("several", "key", "more"),
		"repair": repair,
		"polite": polite, "writer": writer("writer", "1", time.Minute),
	} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		lets(t, m, "a reader", reader("a", "1", time.Minute))
		ask(t, m, by("w", 0, acquire("key", "b", time.Minute)))
		lets(t, m, "the release", as(single.Release, reader("a", "1", 0)))
		if got := names(t, server, "key"); !slices.Equal(got, []string{"c:w"}) {
			t.Fatalf("the key has %q, want a claim", got)
		}
		if got := ask(t, m, reader("late", "1", time.Minute)); got.Outcome != single.Refused {
			t.Errorf("a reader: %+v", got)
		}
		lets(t, m, name, r)
	}
}

// A waiter for several keys must not claim a key from readers while another of its keys has a holder that is not a
// reader.
func TestAWaiterForSeveralKeysClaimsWhereOnlyReadersAreInItsWay(t *testing.T) {
	m := dial(t, redistest.Start(t).URL())
	waits := by("w", 0, together("waits", "a", "b", "c"))
	lets(t, m, "a reader", on("a", reader("first", "1", time.Minute)))
	lets(t, m, "a reader", on("b", reader("first", "1", time.Minute)))
	lets(t, m, "a plain lock", acquire("c", "other", time.Minute))
	if got := ask(t, m, waits); got.Key != "a" || got.Claimed {
		t.Errorf("with a plain lock in the way: %+v", got)
	}
	lets(t, m, "another reader", on("a", reader("second", "1", time.Minute)))
	lets(t, m, "the release", as(single.Release, acquire("c", "other", 0)))
	if got := ask(t, m, waits); got.Key != "a" || !got.Claimed {
		t.Errorf("with readers in the way: %+v", got)
	}
	if got := ask(t, m, on("a", reader("late", "1", time.Minute))); got.Outcome != single.Refused {
		t.Errorf("a new reader of a: %+v", got)
	}
	// The waiter can't have b while a's readers stay, so it lets others read b for as long.
	lets(t, m, "a new reader of b", on("b", reader("late", "1", time.Minute)))
	for _, name := range []string{"first", "second"} {
		lets(t, m, "the release", on("a", as(single.Release, reader(name, "1", 0))))
	}
	if got := ask(t, m, waits); got.Key != "b" || !got.Claimed {
		t.Errorf("with readers of b in the way: %+v", got)
	}
	kept := func(what string) {
		t.Helper()
		for _, key := range waits.Keys[:2] {
			if got := ask(t, m, on(key, reader("later", "1", time.Minute))); got.Outcome != single.Refused {
				t.Errorf("a new reader of %s, %s: %+v", key, what, got)
			}
		}
	}
	kept("which the waiter keeps claimed")
	ask(t, m, single.Request{Op: single.Leave, Keys: []string{"a"}, Waiter: "w", Stays: true})
	kept("when the waiter has left a's queue for b's")
	ask(t, m, single.Request{Op: single.Leave, Keys: waits.Keys, Waiter: "w"})
	for _, key := range []string{"a", "b"} {
		lets(t, m, "a reader, when the waiter has left", on(key, reader("late", "1", time.Minute)))
	}
}
