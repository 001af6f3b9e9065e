package single_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

func TestAWaitingWriterKeepsNewReadersOut(t *testing.T) {
	server, m := started(t)
	first := held("r:first:1")
	grants(t, m, first)
	refuses(t, m, "first", held("w:once:1")) // a writer that does not wait claims nothing
	grants(t, m, held("r:second:1"))
	grants(t, m, as(single.Release, held("r:second:1")))
	waits := by("w", 0, held("w:writer:1"))
	if got := refuses(t, m, "first", waits); !about(got.TTL, time.Minute) {
		t.Fatalf("the writer: %+v", got)
	}
	if got := refuses(t, m, "", held("r:late:1")); got.TTL <= 0 || got.TTL > single.WriterClaim {
		t.Errorf("a new reader: %+v, want refused for as long as the claim lasts", got)
	}
	grants(t, m, first) // it is in already
	grants(t, m, as(single.Extend, first))
	if got := grants(t, m, as(single.Release, first)); got.Token != 0 {
		t.Errorf("the first reader's release: %+v, a claim is no hold", got)
	}
	if got := grants(t, m, waits); got.Token != 1 {
		t.Fatalf("the writer's second attempt: %+v", got)
	}
	has(t, server, "key", "w:writer:1")
}

func TestAWaiterForAPlainLockKeepsNewReadersOut(t *testing.T) {
	server, m := started(t)
	grants(t, m, held("r:first:1"))
	if got := ask(t, m, acquire("key", "once", time.Minute)); got.Outcome != single.Refused || got.Claimed {
		t.Errorf("a caller that tries once: %+v", got)
	}
	grants(t, m, held("r:second:1"))
	waits := by("w", 0, acquire("key", "plain", time.Minute))
	for range 2 { // the second finds its own claim
		if got := refuses(t, m, "", waits); !got.Claimed || !about(got.TTL, time.Minute) {
			t.Fatalf("the waiter: %+v, want refused for a minute by readers, with a claim", got)
		}
	}
	if left := claim(t, server, "w").Sub(serverNow(t, server)); left <= 0 || left > single.WriterClaim {
		t.Errorf("its claim lasts for %v", left)
	}
	refuses(t, m, "", held("r:late:1"))
	grants(t, m, as(single.Release, held("r:first:1")))
	grants(t, m, as(single.Release, held("r:second:1")))
	grants(t, m, waits)
	if got := value(t, server, "key"); got != "plain" {
		t.Errorf("the key is %q, want the form of every plain lock", got)
	}
}

// A waiter for several keys must not claim a key from readers while another of its keys has a holder that is not a
// reader.
func TestAWaiterForSeveralKeysClaimsWhereOnlyReadersAreInItsWay(t *testing.T) {
	m := dial(t, redistest.Start(t).URL())
	waits := by("w", 0, together("waits", "a", "b", "c"))
	grants(t, m, on("a", held("r:first:1")))
	grants(t, m, on("b", held("r:first:1")))
	grants(t, m, acquire("c", "other", time.Minute))
	if got := ask(t, m, waits); got.Key != "a" || got.Claimed {
		t.Errorf("with a plain lock in the way: %+v", got)
	}
	grants(t, m, on("a", held("r:second:1")))
	grants(t, m, release("c", "other"))
	if got := ask(t, m, waits); got.Key != "a" || !got.Claimed {
		t.Errorf("with readers in the way: %+v", got)
	}
	refuses(t, m, "", on("a", held("r:late:1")))
	// The waiter can't have b while a's readers stay, so it lets others read b for as long.
	grants(t, m, on("b", held("r:late:1")))
	for _, name := range []string{"r:first:1", "r:second:1"} {
		grants(t, m, on("a", as(single.Release, held(name))))
	}
	if got := ask(t, m, waits); got.Key != "b" || !got.Claimed {
		t.Errorf("with readers of b in the way: %+v", got)
	}
	kept := func() { // by the waiter, from new readers
		t.Helper()
		for _, key := range waits.Keys[:2] {
			refuses(t, m, "", on(key, held("r:later:1")))
		}
	}
	kept()
	ask(t, m, single.Request{Op: single.Leave, Keys: []string{"a"}, Waiter: "w", Stays: true})
	kept() // when it has left a's queue for b's
	ask(t, m, single.Request{Op: single.Leave, Keys: waits.Keys, Waiter: "w"})
	for _, key := range []string{"a", "b"} {
		grants(t, m, on(key, held("r:late:1")))
	}
}

func TestReadersHearThatTheLastClaimHasGone(t *testing.T) {
	server, m := started(t)
	heard := listen(t, server, "one", "other", "reader", "second")
	for name, departs := range map[string]func(waiter string){
		"left the queue": func(waiter string) {
			ask(t, m, single.Request{Op: single.Leave, Keys: []string{"key"}, Waiter: waiter})
		},
		"released a plain lock": func(waiter string) { ask(t, m, by(waiter, 0, release("key", waiter))) },
		"released a lock to keep it": func(waiter string) {
			ask(t, m, by(waiter, 0, keeping("key", waiter, "kept")))
		},
		"released a hold": func(waiter string) {
			ask(t, m, by(waiter, 0, as(single.Release, held("w:"+waiter+":1"))))
		},
	} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		grants(t, m, held("r:first:1"))
		refuses(t, m, "first", by("one", 0, held("w:one:1")))
		refuses(t, m, "", by("other", 0, acquire("key", "other", time.Minute)))
		refuses(t, m, "", by("reader", time.Minute, held("r:late:1")))
		refuses(t, m, "", by("second", 0, held("r:later:1")))
		departs("one")
		silent(t, server, heard, "one") // another claim is left
		departs("other")
		for _, want := range []string{"reader key", "second key"} {
			if got := hears(t, heard); got != want {
				t.Errorf("after a waiter that had %s, %q was told, want %q", name, got, want)
			}
		}
		grants(t, m, held("r:late:1"))
		departs("other")
		silent(t, server, heard, "one")
	}
}

// The last reader's release has told the writer, which gives up before it tries; meanwhile other readers were refused.
func TestReadersHearThatTheLastClaimOnAFreeKeyHasGone(t *testing.T) {
	server, m := started(t)
	heard := listen(t, server, "writer", "reader", "second")
	grants(t, m, held("r:first:1"))
	refuses(t, m, "first", by("writer", 0, held("w:writer:1")))
	grants(t, m, as(single.Release, held("r:first:1")))
	hears(t, heard)
	refuses(t, m, "", by("reader", time.Minute, held("r:late:1")))
	refuses(t, m, "", by("second", 0, held("r:later:1")))
	ask(t, m, single.Request{Op: single.Leave, Keys: []string{"key"}, Waiter: "writer"})
	for _, want := range []string{"reader key", "second key"} {
		hearsThat(t, heard, want)
	}
}

// Claims only keep readers out: a shared key without holds, but with claims, is free for all other requests.
func TestClaimsKeepOnlyReadersOut(t *testing.T) {
	server, m := started(t)
	for _, r := range []single.Request{
		acquire("key", "plain", time.Minute), fenced("key", "fenced", 0), together("several", "key", "more"),
		extend("key", "repair", time.Minute, true), polite(by("polite", 0, acquire("key", "polite", time.Minute))),
		held("w:writer:1"),
	} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		grants(t, m, held("r:a:1"))
		ask(t, m, by("w", 0, acquire("key", "b", time.Minute)))
		grants(t, m, as(single.Release, held("r:a:1")))
		has(t, server, "key", "c:w")
		refuses(t, m, "", held("r:late:1"))
		if got := ask(t, m, r); got.Outcome == single.Refused {
			t.Errorf("%s: %+v", r.Owner, got)
		}
	}
}

func TestEachWaitingWriterHasItsOwnClaim(t *testing.T) {
	server, m := started(t)
	grants(t, m, held("r:a:1"))
	one, two := by("one", 0, held("w:1:1")), by("two", 0, held("w:2:1"))
	refuses(t, m, "a", one)
	refuses(t, m, "a", two)
	grants(t, m, as(single.Release, held("r:a:1")))
	grants(t, m, two) // claims only keep readers out
	if claim(t, server, "one").IsZero() || !claim(t, server, "two").IsZero() {
		t.Errorf("the key has %q, want the claim of the waiter", names(t, server, "key"))
	}
	if got := grants(t, m, as(single.Release, held("w:2:1"))); got.Token != 0 {
		t.Errorf("release: %+v", got)
	}
	refuses(t, m, "", held("r:b:1"))
}

// A reader gets past a claim only within an existing hold of the same owner.
func TestAClaimLetsReadersPassOnlyWithinAHoldOfTheirOwner(t *testing.T) {
	m := dial(t, redistest.Start(t).URL())
	ask(t, m, reader("me", "outer", time.Minute))
	ask(t, m, reader("other", "1", time.Minute))
	ask(t, m, by("w", 0, writer("w", "1", time.Hour)))
	under := func(owner, hold string) single.Outcome {
		r := reader(owner, "inner", time.Minute)
		r.Within = hold
		return ask(t, m, r).Outcome
	}
	for _, no := range [][2]string{{"me", ""}, {"me", "1"}, {"other", "outer"}, {"new", "outer"}, {"new", ""}} {
		if under(no[0], no[1]) != single.Refused {
			t.Errorf("%q under %q got past the claim", no[0], no[1])
		}
	}
	if under("me", "outer") != single.Granted {
		t.Error("a reader under its own hold is kept out by a writer that waits for it")
	}
}

func TestAClaimIsRenewedByEveryAttemptAndEndsByItself(t *testing.T) {
	t.Parallel()
	server, m := started(t)
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
	server, m := started(t)
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

func TestAWriterThatLeavesTakesItsClaimAway(t *testing.T) {
	server, m := started(t)
	grants(t, m, held("r:a:1"))
	refuses(t, m, "a", by("w", 0, held("w:w:1")))
	refuses(t, m, "", held("r:b:1")) // the control
	ask(t, m, leave("w", single.Exclusive))
	if got := grants(t, m, held("r:b:1")); got.Token != 2 || exists(t, server, queueOf("key")) {
		t.Errorf("a reader after the writer has left: %+v", got)
	}
}

// A waiter with a lock on other masters also releases it here, where readers have refused it and its claim keeps
// readers out.
func TestAReleaseTakesTheClaimOfItsWaiterAway(t *testing.T) {
	server, m := started(t)
	for name, test := range map[string]struct{ acquires, releases single.Request }{
		"plain":     {acquire("key", "w", time.Minute), release("key", "w")},
		"kept":      {acquire("key", "w", time.Minute), keeping("key", "w", "vm{}/1")},
		"exclusive": {held("w:w:1"), as(single.Release, held("w:w:1"))},
	} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		grants(t, m, held("r:a:1"))
		if got := ask(t, m, by("w", 0, test.acquires)); !got.Claimed {
			t.Errorf("%s: %+v, want a claim", name, got)
		}
		if got := ask(t, m, by("w", 0, test.releases)); got.Outcome != single.Refused {
			t.Errorf("%s: the release of nothing: %+v", name, got)
		}
		if got := names(t, server, "key"); !slices.Equal(got, []string{"r:a:1"}) {
			t.Errorf("%s: the key has %q", name, got)
		}
		grants(t, m, held("r:b:1"))
	}
}
