package single_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// leave takes a waiter out of the queue of key.
func leave(waiter string, kind single.Kind) single.Request {
	return single.Request{Op: single.Leave, Kind: kind, Keys: []string{"key"}, Waiter: waiter}
}

func TestAWaiterThatLeavesIsNotNotified(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, acquire("key", "holder", time.Minute))
	ask(t, m, by("gone", time.Hour, acquire("key", "g", time.Minute)))
	ask(t, m, by("next", 0, acquire("key", "n", time.Minute)))
	heard := listen(t, server, "gone", "next")
	ask(t, m, leave("gone", single.Plain))
	if got := names(t, server, queueOf("key")); !slices.Equal(got, []string{"next"}) ||
		value(t, server, "key") != "holder" {
		t.Errorf("the queue is %q, the key %q's", got, value(t, server, "key"))
	}
	ask(t, m, leave("gone", single.Plain)) // again: nothing happens
	silent(t, server, heard, "gone")
	ask(t, m, release("key", "holder"))
	if got := hears(t, heard); got != "next key" {
		t.Errorf("%q was notified", got)
	}
}

func TestANotifiedWaiterThatLeavesNotifiesTheNext(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	heard := listen(t, server, "gone", "next")
	ask(t, m, acquire("key", "holder", time.Minute))
	ask(t, m, by("gone", time.Hour, acquire("key", "g", time.Minute)))
	ask(t, m, by("next", 0, acquire("key", "n", time.Minute)))
	ask(t, m, reserving(time.Hour, release("key", "holder")))
	if got := hears(t, heard); got != "gone key" {
		t.Fatalf("%q was notified", got)
	}
	ask(t, m, reserving(time.Hour, leave("gone", single.Plain)))
	if got := hears(t, heard); got != "next key" {
		t.Errorf("%q was notified, want the next: the key is free", got)
	}
	if got := ask(t, m, polite(by("next", 0, acquire("key", "n", time.Minute)))); got.Outcome != single.Granted {
		t.Errorf("the next: %+v", got)
	}
}

func TestAWriterThatLeavesTakesItsClaimAway(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, reader("a", "1", time.Minute))
	ask(t, m, by("w", 0, writer("w", "1", time.Minute)))
	if got := ask(t, m, reader("b", "1", time.Minute)); got.Outcome != single.Refused {
		t.Fatalf("control: a reader gets past the claim: %+v", got)
	}
	ask(t, m, leave("w", single.Exclusive))
	if got := ask(t, m, reader("b", "1", time.Minute)); got.Outcome != single.Granted || got.Token != 2 {
		t.Errorf("a reader after the writer has left: %+v", got)
	}
	if exists(t, server, queueOf("key")) {
		t.Error("the writer still queues")
	}
}

// A leaving waiter holds nothing, so it removes nothing, whatever is at the key.
func TestLeavingRemovesNoLock(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for name, set := range map[string]func(){
		"a plain lock":   func() { plain(t, server) },
		"something else": func() { foreign(t, server) },
		"a shared lock":  func() { ask(t, m, reader("a", "1", time.Minute)) },
		"a writer":       func() { ask(t, m, writer("a", "1", time.Minute)) },
	} {
		for _, kind := range []single.Kind{single.Plain, single.Shared, single.Exclusive} {
			must(t, server.Client().FlushDB(t.Context()).Err())
			set()
			was := server.Client().Dump(t.Context(), "key").Val()
			ask(t, m, leave("w", kind))
			if server.Client().Dump(t.Context(), "key").Val() != was {
				t.Errorf("leaving as kind %d changed %s", kind, name)
			}
		}
	}
}

// A reader gets past a claim only within an existing hold of the same owner.
func TestAClaimLetsReadersPassOnlyWithinAHoldOfTheirOwner(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
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

// A waiter that leaves is in no queue any more, and gets no needless notification, whatever has happened to the key.
func TestHazard49AWaiterThatLeavesASharedKeyLeavesItsQueue(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for name, then := range map[string]func(){
		"is free":                  func() {},
		"is a plain lock's":        func() { ask(t, m, acquire("key", "next", time.Minute)) },
		"is held":                  func() { ask(t, m, writer("next", "1", time.Minute)) },
		"is something else by now": func() { foreign(t, server) },
	} {
		for _, kind := range []single.Kind{single.Shared, single.Exclusive} {
			must(t, server.Client().FlushDB(t.Context()).Err())
			ask(t, m, writer("holder", "1", time.Minute))
			ask(t, m, by("gone", 0, hold(single.Acquire, kind, "g", "1", time.Minute)))
			must(t, server.Client().Del(t.Context(), "key").Err()) // it ended
			then()
			if got := names(t, server, queueOf("key")); !slices.Equal(got, []string{"gone"}) {
				t.Fatalf("control: %q wait", got)
			}
			ask(t, m, leave("gone", kind))
			if exists(t, server, queueOf("key")) {
				t.Errorf("the key %s: %q still wait", name, names(t, server, queueOf("key")))
			}
		}
	}
}

// A free key is reserved for a waiter that leaves: the next one is notified.
func TestHazard49ANotifiedWaiterThatLeavesASharedKeyNotifiesTheNext(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	heard := listen(t, server, "gone", "next")
	ask(t, m, acquire("key", "holder", time.Minute))
	ask(t, m, by("gone", time.Hour, reader("g", "1", time.Minute)))
	ask(t, m, by("next", 0, writer("n", "1", time.Minute)))
	ask(t, m, reserving(time.Hour, release("key", "holder")))
	if got := hears(t, heard); got != "gone key" {
		t.Fatalf("%q was notified", got)
	}
	ask(t, m, reserving(time.Hour, leave("gone", single.Shared)))
	if got := hears(t, heard); got != "next key" {
		t.Errorf("%q was notified, want the next: the key is free", got)
	}
}

// A waiter that has its lock on other masters releases it also where it was refused by readers, whom it keeps out.
func TestAReleaseTakesTheClaimOfItsWaiterAway(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	keeping := as(single.Release, acquire("key", "w", 0))
	keeping.Keep, keeping.KeepAs = time.Second, "vm{}/1"
	for name, test := range map[string]struct{ acquires, releases single.Request }{
		"plain":     {acquire("key", "w", time.Minute), as(single.Release, acquire("key", "w", 0))},
		"kept":      {acquire("key", "w", time.Minute), keeping},
		"exclusive": {writer("w", "1", time.Minute), as(single.Release, writer("w", "1", 0))},
	} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		ask(t, m, reader("a", "1", time.Minute))
		if got := ask(t, m, by("w", 0, test.acquires)); !got.Claimed {
			t.Errorf("%s: %+v, want a claim", name, got)
		}
		if got := ask(t, m, by("w", 0, test.releases)); got.Outcome != single.Refused {
			t.Errorf("%s: the release of nothing: %+v", name, got)
		}
		if got := names(t, server, "key"); !slices.Equal(got, []string{"r:a:1"}) {
			t.Errorf("%s: the key has %q", name, got)
		}
		lets(t, m, "a reader behind a "+name+" lock that was released", reader("b", "1", time.Minute))
	}
}
