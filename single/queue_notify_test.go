package single_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

func TestAReleaseNotifiesTheLongestWaiterAndReservesTheKey(t *testing.T) {
	server, m := started(t)
	heard := listen(t, server, "first", "second")
	const reserve = time.Hour
	ask(t, m, acquire("key", "holder", time.Minute))
	first := polite(by("first", time.Minute, acquire("key", "f", time.Minute)))
	second := polite(by("second", time.Second, acquire("key", "s", time.Minute)))
	ask(t, m, second)
	ask(t, m, first)

	if got := ask(t, m, reserving(reserve, release("key", "other"))); got.Outcome != single.Refused || got.Called {
		t.Errorf("a foreign release: %+v", got)
	}
	silent(t, server, heard, "first")
	if got := ask(t, m, reserving(reserve, release("key", "holder"))); got.Outcome != single.Granted || !got.Called {
		t.Fatalf("release: %+v, want granted, and a waiter notified", got)
	}
	hearsThat(t, heard, "first key")
	got := ask(t, m, second)
	if got.Outcome != single.Refused || got.Holder != "" || !about(got.TTL, reserve) || exists(t, server, "key") {
		t.Errorf("a polite waiter that was not notified: %+v, want refused for as long as the reservation lasts", got)
	}
	grants(t, m, first)
	has(t, server, queueOf("key"), "second")
}

func TestTheLastReleaseOfASharedKeyNotifiesItsWaiters(t *testing.T) {
	server, m := started(t)
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
		hearsThat(t, heard, name+" key")
	}
	silent(t, server, heard, "w")
	has(t, server, queueOf("key"), all[8:]...) // a notified waiter leaves
	ask(t, m, drop)
	silent(t, server, heard, "w") // a release of nothing notifies no waiter
}

func TestAReleaseOfSeveralKeysNotifiesForEach(t *testing.T) {
	server, m := started(t)
	heard := listen(t, server, "wa", "wb", "wc")
	all := together("holder", "a", "b", "c")
	ask(t, m, all)
	ask(t, m, by("wa", 0, acquire("a", "x", time.Minute)))
	ask(t, m, by("wc", 0, acquire("c", "y", time.Minute)))
	if got := ask(t, m, reserving(time.Minute, as(single.Release, all))); got.Outcome != single.Granted || !got.Called {
		t.Errorf("release: %+v", got)
	}
	called := []string{hears(t, heard), hears(t, heard)}
	slices.Sort(called)
	if !slices.Equal(called, []string{"wa a", "wc c"}) {
		t.Errorf("notified %q", called)
	}
}

func TestAReleaserThatWasQueuedItselfIsNotNotified(t *testing.T) {
	server, m := started(t)
	heard := listen(t, server, "me", "other")
	ask(t, m, acquire("key", "holder", time.Minute))
	ask(t, m, by("me", time.Hour, acquire("key", "me", time.Minute)))
	ask(t, m, release("key", "holder"))
	hears(t, heard)
	ask(t, m, acquire("key", "holder", time.Minute))
	ask(t, m, by("me", time.Hour, acquire("key", "me", time.Minute)))
	ask(t, m, by("other", 0, acquire("key", "o", time.Minute)))
	ask(t, m, by("me", 0, release("key", "holder")))
	hearsThat(t, heard, "other key")
}

func TestADeadWaiterIsNotifiedOnce(t *testing.T) {
	server, m := started(t)
	heard := listen(t, server, "dead", "next")
	for _, name := range []string{"dead", "next"} {
		ask(t, m, acquire("key", "holder", time.Minute))
		ask(t, m, by("dead", time.Hour, acquire("key", "d", time.Minute)))
		if name == "next" { // the dead one has been called, and died since
			must(t, server.Client().ZRem(t.Context(), queueOf("key"), "dead").Err())
		}
		ask(t, m, by("next", 0, acquire("key", "n", time.Minute)))
		ask(t, m, reserving(time.Millisecond, release("key", "holder")))
		hearsThat(t, heard, name+" key")
	}
	// A dead waiter cannot leave the queue itself: the release that notifies it takes it out.
	ask(t, m, acquire("key", "holder", time.Minute))
	ask(t, m, by("dead", time.Hour, acquire("key", "d", time.Minute)))
	for _, owner := range []string{"holder", "next"} {
		ask(t, m, acquire("key", owner, time.Minute))
		got := ask(t, m, reserving(time.Millisecond, release("key", owner)))
		if want := owner == "holder"; got.Called != want {
			t.Errorf("release by %s: notified a waiter: %t, want %t", owner, got.Called, want)
		}
	}
	hearsThat(t, heard, "dead key")
	silent(t, server, heard, "dead")
}

// A message goes to the first waiter that listens, and the waiters before it leave the queue. The key is reserved for
// that waiter; if none listens, it is not reserved.
func TestHazard108AMessageGoesToAWaiterThatListens(t *testing.T) {
	kept := release("key", "holder")
	kept.Keep, kept.KeepAs = time.Minute, "a{}/1"
	for name, c := range map[string]struct {
		takes, releases single.Request
		says            string
		left            []string
	}{
		"released": {
			acquire("key", "holder", time.Minute), reserving(time.Hour, release("key", "holder")), "alive key",
			[]string{"!alive", "behind"},
		},
		"kept":   {acquire("key", "holder", time.Minute), kept, "alive redlock:kept:key", []string{"alive", "behind"}},
		"shared": {reader("holder", "1", time.Minute), as(single.Release, reader("holder", "1", 0)), "alive key", nil},
	} {
		t.Run(name, func(t *testing.T) {
			server, m := started(t)
			heard := listen(t, server, "alive")
			ask(t, m, c.takes)
			for i := range 12 {
				ask(t, m, by(fmt.Sprint("dead ", i), time.Hour, acquire("key", "d", time.Minute)))
			}
			ask(t, m, by("alive", time.Minute, acquire("key", "a", time.Minute)))
			ask(t, m, by("behind", 0, acquire("key", "b", time.Minute)))
			got := ask(t, m, c.releases)
			if got.Outcome != single.Granted || got.Called != (name == "released") {
				t.Errorf("the release: %+v", got)
			}
			if said := hears(t, heard); said != c.says {
				t.Errorf("the waiter receives %q, want %q", said, c.says)
			}
			if left := names(t, server, queueOf("key")); !slices.Equal(left, c.left) {
				t.Errorf("the queue is %q, want %q", left, c.left)
			}
			if name == "released" {
				other := ask(t, m, polite(by("behind", 0, acquire("key", "b", time.Minute))))
				if own := ask(t, m, polite(by("alive", 0, acquire("key", "a", time.Minute)))); other.Outcome !=
					single.Refused || own.Outcome != single.Granted {
					t.Errorf("another waiter %+v, the notified waiter %+v: want the key reserved for the notified one",
						other, own)
				}
			}
		})
	}
}

// One release passes over at most 32 waiters that do not listen, so that a script does not take long. If none
// listens, the key is not reserved.
func TestHazard108AReleasePassesOverAtMost32DeafWaiters(t *testing.T) {
	server, m := started(t)
	ask(t, m, acquire("key", "holder", time.Minute))
	for i := range 40 {
		ask(t, m, by(fmt.Sprint("dead ", i), time.Hour, acquire("key", "d", time.Minute)))
	}
	for _, left := range []int{8, 0} {
		ask(t, m, acquire("key", "holder", time.Minute))
		if got := ask(t, m, reserving(time.Hour, release("key", "holder"))); got.Outcome != single.Granted ||
			got.Called {
			t.Errorf("a release without listening waiters: %+v", got)
		}
		if n := len(names(t, server, queueOf("key"))); n != left {
			t.Errorf("%d waiters are left, want %d", n, left)
		}
	}
	if exists(t, server, queueOf("key")) {
		t.Error("an empty queue is left")
	}
}
