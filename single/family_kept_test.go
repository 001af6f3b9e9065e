package single_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// keeping releases key, and keeps it for another owner for a minute.
func keeping(key, owner, as string) single.Request {
	return single.Request{Op: single.Release, Keys: []string{key}, Owner: owner, Keep: time.Minute, KeepAs: as}
}

var allKinds = []single.Kind{single.Plain, single.Shared, single.Exclusive}

// waits is an acquisition of key by a waiter, of any kind of lock.
func waits(name string, waited time.Duration, kind single.Kind) single.Request {
	if kind == single.Plain {
		return by(name, waited, acquire("key", name, time.Minute))
	}
	return by(name, waited, hold(single.Acquire, kind, name, "1", time.Minute))
}

// The first waiter in the queue knows for how long a key is kept. When it leaves, the next one must learn it.
func TestAWaiterThatLeavesTheQueueOfAKeptKeyNotifiesTheNext(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	heard := listen(t, server, "first", "next", "last")
	for _, kind := range allKinds {
		must(t, server.Client().FlushDB(t.Context()).Err())
		kept := owner.NewKept("me:1")
		ask(t, m, acquire("key", "holder", time.Hour))
		ask(t, m, waits("last", time.Second, kind))
		ask(t, m, waits("next", time.Minute, kind))
		ask(t, m, waits("first", time.Hour, kind))
		ask(t, m, keeping("key", "holder", kept))
		if got := hears(t, heard); got != "first redlock:kept:key" {
			t.Fatalf("kind %d: %q", kind, got)
		}
		for _, leaver := range []string{"first", "first", "next", "last"} { // the second time it is not there
			ask(t, m, leave(leaver, kind))
		}
		for _, next := range []string{"next", "last"} {
			if got := hears(t, heard); got != next+" redlock:kept:key" {
				t.Errorf("kind %d: %q, want a message to %s", kind, got, next)
			}
		}
		silent(t, server, heard, "first")
		if value(t, server, "key") != kept || exists(t, server, queueOf("key")) {
			t.Errorf("kind %d: the key is %q's, and %q wait", kind, value(t, server, "key"),
				names(t, server, queueOf("key")))
		}
	}
}

// Attempts change the order, so the first waiter may not be the receiver of the message.
func TestAWaiterThatLeavesAKeptKeyNeedNotBeTheFirst(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	heard := listen(t, server, "first", "next")
	ask(t, m, acquire("key", "holder", time.Hour))
	ask(t, m, waits("next", time.Minute, single.Plain))
	ask(t, m, waits("first", time.Hour, single.Plain))
	ask(t, m, keeping("key", "holder", owner.NewKept("me:1")))
	hears(t, heard)
	ask(t, m, waits("first", time.Second, single.Plain)) // another goroutine of that process
	if got := names(t, server, queueOf("key")); !slices.Equal(got, []string{"next", "first"}) {
		t.Fatalf("control: %q", got)
	}
	ask(t, m, leave("first", single.Plain))
	if got := hears(t, heard); got != "next redlock:kept:key" {
		t.Errorf("%q", got)
	}
}

// A kept key becomes free by itself. Only the waiter that received the message knows when.
func TestAWaiterThatLeavesTheQueueOfAFreeKeyNotifiesTheNext(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	heard := listen(t, server, "first", "next")
	for _, kind := range allKinds {
		must(t, server.Client().FlushDB(t.Context()).Err())
		ask(t, m, acquire("key", "holder", time.Hour))
		ask(t, m, waits("next", time.Minute, kind))
		ask(t, m, waits("first", time.Hour, kind))
		must(t, server.Client().Del(t.Context(), "key").Err())
		ask(t, m, reserving(time.Minute, leave("first", kind)))
		if got := hears(t, heard); got != "next key" {
			t.Errorf("kind %d: %q", kind, got)
		}
		if got := ask(t, m, polite(by("other", 0, acquire("key", "o", time.Minute)))); got.Outcome != single.Refused {
			t.Errorf("kind %d: the key is not reserved: %+v", kind, got)
		}
	}
}

// A leaving waiter sends nothing if the next waiter could do nothing, or if another waiter knows of the key.
func TestAWaiterThatLeavesSendsNoNeedlessMessages(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	heard := listen(t, server, "first", "next", "third")
	client := server.Client()
	random := strings.Repeat("0", 32)
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
			must(t, client.Set(t.Context(), "key", "{}/"+random, 0).Err())
		},
		"it is read": func() {
			must(t, client.Del(t.Context(), "key").Err())
			ask(t, m, reader("r", "1", time.Minute))
		},
		"it is somebody's data": func() {
			must(t, client.Del(t.Context(), "key").Err())
			foreign(t, server)
		},
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
			ask(t, m, acquire("key", "holder", time.Hour))
			ask(t, m, waits("next", time.Minute, kind))
			ask(t, m, waits("first", time.Hour, kind))
			then()
			was := client.Dump(t.Context(), "key").Val()
			ask(t, m, leave("first", kind))
			ask(t, m, leave("nobody", kind))
			silent(t, server, heard, "first")
			if t.Failed() {
				t.Fatalf("a key of which %s, left as kind %d", name, kind)
			}
			if client.Dump(t.Context(), "key").Val() != was {
				t.Errorf("leaving as kind %d changed a key of which %s", kind, name)
			}
		}
	}
}

// A user without the right to notify leaves all the same, without an error.
func TestAWaiterWithoutTheRightsToNotifyStillLeaves(t *testing.T) {
	server := redistest.Start(t)
	loud := dial(t, server.URL())
	for _, right := range []string{"publish", "zrange", "time", "pttl", "pexpire", "get"} {
		must(t, server.Client().Do(t.Context(), "acl", "setuser", "less", "on", ">secret", "~*", "&*", "+@all",
			"-"+right).Err())
		m := dial(t, "redis://less:secret@"+server.Addr())
		for _, kind := range allKinds {
			for name, then := range map[string]func(){
				"kept": func() { ask(t, loud, keeping("key", "holder", owner.NewKept("me:1"))) },
				"free": func() { must(t, server.Client().Del(t.Context(), "key").Err()) },
				"held": func() {},
			} {
				must(t, server.Client().FlushDB(t.Context()).Err())
				ask(t, loud, acquire("key", "holder", time.Hour))
				ask(t, loud, waits("next", time.Minute, kind))
				ask(t, loud, waits("first", time.Hour, kind))
				then()
				was := server.Client().Get(t.Context(), "key").Val()
				request := leave("first", kind)
				if _, err := m.Ask(t.Context(), request); err != nil && right != "time" && right != "get" {
					t.Errorf("without %s, kind %d, of a key that is %s: %v", right, kind, name, err)
				}
				if got := server.Client().Get(t.Context(), "key").Val(); got != was {
					t.Errorf("without %s, kind %d, of a key that is %s: it is %q's, was %q's", right, kind, name, got,
						was)
				}
				if left := server.Client().PTTL(t.Context(), queueOf("key")).Val(); left < 0 && left != -2 {
					t.Errorf("without %s, kind %d, of a key that is %s: the queue lives for ever", right, kind, name)
				}
			}
		}
	}
}

// A release wants to keep its keys and finds that one key is not its owner's. It then leaves that key's queue as any
// leaving waiter does: the next waiter may not know that the key is free, or kept by another owner.
func TestKeepingAnotherOwnersKeyNotifiesTheNextWaiter(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
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
