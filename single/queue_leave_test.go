package single_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/single"
)

// A waiter that leaves may be the only one that knows of a free key, or for how long a key is kept. When it leaves,
// the next one must learn it. A free key is then reserved for the next one.
func TestHazard49AWaiterThatLeavesNotifiesTheNext(t *testing.T) {
	server, m := started(t)
	heard := listen(t, server, "first", "next", "last")
	kept := owner.NewKept("me:1")
	const isKept = "redlock:kept:key"
	for name, c := range map[string]struct {
		then       func()
		told, tell string // what first hears, and then the others
	}{
		"is kept":           {func() { grants(t, m, keeping("key", "holder", kept)) }, isKept, isKept},
		"was released":      {func() { grants(t, m, reserving(time.Hour, release("key", "holder"))) }, "key", "key"},
		"is free by itself": {func() { must(t, server.Client().Del(t.Context(), "key").Err()) }, "", "key"},
	} {
		for _, kind := range allKinds {
			must(t, server.Client().FlushDB(t.Context()).Err())
			grants(t, m, acquire("key", "holder", time.Hour))
			for i, waiter := range []string{"last", "next", "first"} {
				refuses(t, m, "holder", waits(waiter, time.Duration(i)*time.Minute, kind))
			}
			if c.then(); c.told != "" && hears(t, heard) != "first "+c.told {
				t.Fatalf("kind %d: a key that %s: first heard something else", kind, name)
			}
			ask(t, m, reserving(time.Hour, leave("first", kind)))
			ask(t, m, reserving(time.Hour, leave("first", kind))) // it is not there any more
			for _, next := range []string{"next", "last"} {
				if got := hears(t, heard); got != next+" "+c.tell {
					t.Errorf("kind %d: a key that %s: %q was notified, want %s", kind, name, got, next)
				}
				if name != "is kept" {
					refuses(t, m, "", polite(by("other", 0, acquire("key", "o", time.Minute))))
					ask(t, m, leave("other", single.Plain))
				}
				ask(t, m, reserving(time.Hour, leave(next, kind)))
			}
			silent(t, server, heard, "first")
			if (value(t, server, "key") == kept) != (name == "is kept") || exists(t, server, queueOf("key")) {
				t.Errorf("kind %d: a key that %s is %q's, and %q wait", kind, name, value(t, server, "key"),
					names(t, server, queueOf("key")))
			}
		}
	}
}

// Attempts change the order, so the first waiter may not be the receiver of the message.
func TestAWaiterThatLeavesAKeptKeyNeedNotBeTheFirst(t *testing.T) {
	server, m := started(t)
	heard := listen(t, server, "first", "next")
	grants(t, m, acquire("key", "holder", time.Hour))
	refuses(t, m, "holder", waits("next", time.Minute, single.Plain))
	refuses(t, m, "holder", waits("first", time.Hour, single.Plain))
	grants(t, m, keeping("key", "holder", owner.NewKept("me:1")))
	hears(t, heard)
	ask(t, m, waits("first", time.Second, single.Plain)) // another goroutine of that process
	has(t, server, queueOf("key"), "next", "first")
	ask(t, m, leave("first", single.Plain))
	hearsThat(t, heard, "next redlock:kept:key")
}

// A leaving waiter leaves the queue and nothing else: it holds nothing, so it removes nothing. It sends nothing if the
// next waiter could do nothing, or if another waiter knows of the key.
func TestAWaiterThatLeavesSendsNoNeedlessMessages(t *testing.T) {
	server, m := started(t)
	heard := listen(t, server, "first", "next", "third")
	client := server.Client()
	gone := func() { must(t, client.Del(t.Context(), "key").Err()) }
	for name, then := range map[string]func(){
		"it is held":          func() {},
		"it is held for good": func() { must(t, client.Persist(t.Context(), "key").Err()) },
		"it is held by a published value": func() {
			must(t, client.Set(t.Context(), "key", owner.NewPublished("me", 1, "{"), 0).Err())
		},
		"it is kept as whatever somebody chose": func() {
			ask(t, m, keeping("key", "holder", "kept"))
			hears(t, heard)
		},
		"braces are not enough": func() {
			must(t, client.Set(t.Context(), "key", "{}/"+strings.Repeat("0", 32), 0).Err())
		},
		"it is read":            func() { gone(); grants(t, m, held("r:r:1")) },
		"it is written":         func() { gone(); grants(t, m, held("w:w:1")) },
		"it is somebody's data": func() { gone(); foreign(t, server) },
		"somebody's data is in the queue's place": func() {
			must(t, client.Set(t.Context(), queueOf("key"), "data", 0).Err())
		},
		"it is free and reserved for a third": func() {
			ask(t, m, waits("third", 2*time.Hour, single.Plain))
			ask(t, m, reserving(time.Minute, release("key", "holder")))
			hears(t, heard)
		},
	} {
		for _, kind := range allKinds {
			must(t, client.FlushDB(t.Context()).Err())
			grants(t, m, acquire("key", "holder", time.Hour))
			refuses(t, m, "holder", waits("next", time.Minute, kind))
			refuses(t, m, "holder", waits("first", time.Hour, kind))
			then()
			was := client.Dump(t.Context(), "key").Val()
			ask(t, m, leave("first", kind))
			ask(t, m, leave("nobody", kind))
			silent(t, server, heard, "first")
			if t.Failed() {
				t.Fatalf("a key of which %s, left as kind %d", name, kind)
			}
			if client.Dump(t.Context(), "key").Val() != was ||
				client.ZScore(t.Context(), queueOf("key"), "first").Err() == nil {
				t.Errorf("leaving as kind %d changed a key of which %s, or left the waiter in its queue", kind, name)
			}
		}
	}
}

// A release wants to keep its keys and finds that one key is not its owner's. It then leaves that key's queue as any
// leaving waiter does: the next waiter may not know that the key is free, or kept by another owner.
func TestKeepingAnotherOwnersKeyNotifiesTheNextWaiter(t *testing.T) {
	server, m := started(t)
	heard := listen(t, server, "first", "next")
	kept := owner.NewKept("me:1")
	for name, c := range map[string]struct {
		then func()
		want string
	}{
		"free": {func() { must(t, server.Client().Del(t.Context(), "key").Err()) }, "next key"},
		"kept by another": {
			func() { must(t, server.Client().Set(t.Context(), "key", kept, time.Hour).Err()) }, "next redlock:kept:key",
		},
		"held by another": {func() {}, ""},
		"somebody's holds": {func() {
			must(t, server.Client().Del(t.Context(), "key").Err())
			ask(t, m, reader("r", "1", time.Minute))
		}, ""},
	} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		ask(t, m, acquire("key", "holder", time.Hour))
		ask(t, m, waits("next", time.Minute, single.Plain))
		ask(t, m, waits("first", time.Hour, single.Plain))
		c.then()
		request := keeping("key", "me", owner.NewKept("me:2"))
		request.Waiter, request.Reserve = "first", time.Minute
		if got := ask(t, m, request); got.Outcome != single.Refused {
			t.Errorf("%s: %+v", name, got)
		}
		if c.want == "" {
			silent(t, server, heard, "first")
		} else if got := hears(t, heard); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if name == "free" {
			if got := ask(t, m, polite(by("other", 0, acquire("key", "o", time.Minute)))); got.Outcome !=
				single.Refused {
				t.Errorf("the key is not reserved: %+v", got)
			}
		}
	}
}
