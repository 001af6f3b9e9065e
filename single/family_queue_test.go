package single_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// polite makes an acquisition respect reservations.
func polite(r single.Request) single.Request {
	r.Polite = true
	return r
}

// reserving makes a release reserve the key for the waiter that it notifies.
func reserving(d time.Duration, r single.Request) single.Request {
	r.Reserve = d
	return r
}

func TestWaitersQueueByTheTimeTheyHaveWaited(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, acquire("key", "holder", time.Minute))
	// does not wait
	ask(t, m, acquire("key", "nobody", time.Minute))
	// not by their names
	for name, waited := range map[string]time.Duration{"b": 2 * time.Second, "a": time.Second, "c": time.Hour} {
		got := ask(t, m, by(name, waited, acquire("key", "me", time.Minute)))
		if got.Outcome != single.Refused || got.Holder != "holder" || !about(got.TTL, time.Minute) {
			t.Errorf("a waiter gets the reply %+v", got)
		}
	}
	if got := names(t, server, queueOf("key")); !slices.Equal(got, []string{"c", "b", "a"}) {
		t.Errorf("the queue is %q", got)
	}
	// A later attempt has waited longer by the time that has passed, and so keeps its position.
	ask(t, m, by("a", 2*time.Second-time.Millisecond, acquire("key", "me", time.Minute)))
	if got := names(t, server, queueOf("key")); !slices.Equal(got, []string{"c", "b", "a"}) {
		t.Errorf("after a repeated attempt the queue is %q", got)
	}
	if left := life(t, server, queueOf("key")); !about(left, single.QueueKeep) || single.QueueKeep > time.Hour {
		t.Errorf("the queue is kept for %v, want %v", left, single.QueueKeep)
	}
}

func TestTheQueueIsBoundedAndKeepsThoseWhoWaitedLongest(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, acquire("key", "holder", time.Minute))
	const waiters, bound = 300, 256
	for i := range waiters {
		ask(t, m, by(fmt.Sprint("w", i), time.Duration(waiters-i)*time.Second, acquire("key", "me", time.Minute)))
	}
	queue := names(t, server, queueOf("key"))
	if len(queue) != bound || queue[0] != "w0" || queue[bound-1] != "w255" {
		t.Errorf("%d waiters from %s to %s, want the first %d", len(queue), queue[0], queue[len(queue)-1], bound)
	}
}

func TestTheQueueExpiresWithoutFurtherAttempts(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, acquire("key", "holder", time.Minute))
	ask(t, m, by("w", 0, acquire("key", "me", time.Minute)))
	if left := life(t, server, queueOf("key")); !about(left, single.QueueKeep) {
		t.Errorf("the first attempt has made a queue for %v, want %v", left, single.QueueKeep)
	}
	must(t, server.Client().PExpire(t.Context(), queueOf("key"), time.Second).Err())
	ask(t, m, by("w2", 0, acquire("key", "me", time.Minute)))
	if left := life(t, server, queueOf("key")); !about(left, single.QueueKeep) {
		t.Errorf("an attempt renewed the queue to %v, want %v", left, single.QueueKeep)
	}
	must(t, server.Client().PExpire(t.Context(), queueOf("key"), 50*time.Millisecond).Err())
	redistest.Eventually(t, patience, func() bool { return !exists(t, server, queueOf("key")) }, "the queue to expire")
	if got := ask(t, m, release("key", "holder")); got.Outcome != single.Granted || got.Called {
		t.Errorf("release with an expired queue: %+v", got)
	}
}

func TestAReleaseNotifiesTheLongestWaiterAndReservesTheKey(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
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
	if got := hears(t, heard); got != "first key" {
		t.Errorf("notified %q, want the longest waiter, for the key", got)
	}
	got := ask(t, m, second)
	if got.Outcome != single.Refused || got.Holder != "" || !about(got.TTL, reserve) || exists(t, server, "key") {
		t.Errorf("a polite waiter that was not notified: %+v, want refused for as long as the reservation lasts", got)
	}
	if got := ask(t, m, first); got.Outcome != single.Granted {
		t.Errorf("the notified waiter: %+v", got)
	}
	if got := names(t, server, queueOf("key")); !slices.Equal(got, []string{"second"}) {
		t.Errorf("the queue is %q, want the reservation gone and the other waiter still there", got)
	}
}

func TestAReservationKeepsOnlyThePoliteOut(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	listen(t, server, "next")
	for name, r := range map[string]single.Request{
		"no waiter":         acquire("key", "me", time.Minute),
		"a waiter":          by("rude", 0, acquire("key", "me", time.Minute)),
		"several keys":      {Op: single.Acquire, Keys: []string{"key", "more"}, Owner: "me", TTL: time.Minute},
		"a fenced one":      {Op: single.Acquire, Keys: []string{"key"}, Owner: "me", TTL: time.Minute, Fence: true},
		"called and polite": polite(by("next", 0, acquire("key", "me", time.Minute))),
	} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		ask(t, m, acquire("key", "holder", time.Minute))
		ask(t, m, by("next", 0, acquire("key", "n", time.Minute)))
		ask(t, m, reserving(time.Hour, release("key", "holder")))
		if got := ask(t, m, polite(by("other", 0, acquire("key", "o", time.Minute)))); got.Outcome != single.Refused {
			t.Fatalf("control: a polite waiter gets past the reservation: %+v", got)
		}
		if got := ask(t, m, r); got.Outcome != single.Granted {
			t.Errorf("%s: %+v: a reservation is a hint and holds nothing", name, got)
		}
	}
}

func TestAReservedKeyOfSeveralKeepsThePoliteOut(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	listen(t, server, "next")
	for _, keys := range [][]string{{"key", "more"}, {"more", "key"}, {"a", "key", "more"}} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		ask(t, m, acquire("key", "holder", time.Minute))
		ask(t, m, by("next", 0, acquire("key", "n", time.Minute)))
		ask(t, m, reserving(time.Hour, release("key", "holder")))
		several := polite(by("other", 0, single.Request{Op: single.Acquire, Keys: keys, Owner: "o", TTL: time.Minute}))
		if got := ask(t, m, several); got.Outcome != single.Refused || got.Key != "key" {
			t.Errorf("%q: a polite waiter gets past the reservation: %+v", keys, got)
		}
		several.Polite = false
		if got := ask(t, m, several); got.Outcome != single.Granted {
			t.Errorf("control: %q: %+v", keys, got)
		}
	}
}

func TestAReservationEndsByItself(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	m := dial(t, server.URL())
	listen(t, server, "dead") // a process that stands still
	ask(t, m, acquire("key", "holder", time.Minute))
	ask(t, m, by("dead", 0, acquire("key", "d", time.Minute)))
	ask(t, m, by("next", 0, acquire("key", "n", time.Minute)))
	const reserve = 200 * time.Millisecond
	released := serverNow(t, server)
	ask(t, m, reserving(reserve, release("key", "holder")))
	redistest.Eventually(t, patience, func() bool {
		return ask(t, m, polite(by("next", 0, acquire("key", "n", time.Minute)))).Outcome == single.Granted
	}, "the reservation of a dead waiter to end")
	if took := serverNow(t, server).Sub(released); took < reserve-time.Millisecond {
		t.Errorf("the reservation ended after %v, want %v", took, reserve)
	}
}

func TestADeadWaiterIsNotifiedOnce(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	heard := listen(t, server, "dead", "next")
	for _, name := range []string{"dead", "next"} {
		ask(t, m, acquire("key", "holder", time.Minute))
		ask(t, m, by("dead", time.Hour, acquire("key", "d", time.Minute)))
		if name == "next" { // the dead one has been called, and died since
			must(t, server.Client().ZRem(t.Context(), queueOf("key"), "dead").Err())
		}
		ask(t, m, by("next", 0, acquire("key", "n", time.Minute)))
		ask(t, m, reserving(time.Millisecond, release("key", "holder")))
		if got := hears(t, heard); got != name+" key" {
			t.Errorf("%q was notified, want %s", got, name)
		}
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
	if got := hears(t, heard); got != "dead key" {
		t.Errorf("%q was notified", got)
	}
	silent(t, server, heard, "dead")
}

func TestAReleaserThatWasQueuedItselfIsNotNotified(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	heard := listen(t, server, "me", "other")
	ask(t, m, acquire("key", "holder", time.Minute))
	ask(t, m, by("me", time.Hour, acquire("key", "me", time.Minute)))
	ask(t, m, release("key", "holder"))
	hears(t, heard)
	ask(t, m, acquire("key", "holder", time.Minute))
	ask(t, m, by("me", time.Hour, acquire("key", "me", time.Minute)))
	ask(t, m, by("other", 0, acquire("key", "o", time.Minute)))
	ask(t, m, by("me", 0, release("key", "holder")))
	if got := hears(t, heard); got != "other key" {
		t.Errorf("%q was notified, want the other: the releaser has had its turn", got)
	}
}

func TestAReleaseOfSeveralKeysNotifiesForEach(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	heard := listen(t, server, "wa", "wb", "wc")
	all := acquire("", "holder", time.Minute)
	all.Keys = []string{"a", "b", "c"}
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

func TestAWaiterForSeveralKeysQueuesForTheOneInTheWay(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, acquire("b", "holder", time.Minute))
	all := by("w", 0, acquire("", "me", time.Minute))
	all.Keys = []string{"a", "b", "c"}
	if got := ask(t, m, all); got.Outcome != single.Refused || got.Key != "b" || got.Holder != "holder" {
		t.Errorf("the waiter gets the reply %+v", got)
	}
	for _, key := range all.Keys {
		if got := exists(t, server, queueOf(key)); got != (key == "b") {
			t.Errorf("it queues for %s: %t", key, got)
		}
	}
	ask(t, m, release("b", "holder"))
	if got := ask(t, m, polite(all)); got.Outcome != single.Granted {
		t.Errorf("the notified waiter: %+v", got)
	}
}

func TestARepeatedAcquireOfAWaiterIsGrantedAgain(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	r := polite(by("w", 0, acquire("key", "me", time.Minute)))
	for range 3 {
		if got := ask(t, m, r); got.Outcome != single.Granted {
			t.Errorf("%+v, want granted", got)
		}
	}
	must(t, server.Client().Persist(t.Context(), "key").Err())
	ask(t, m, r)
	if left := life(t, server, "key"); left >= 0 {
		t.Errorf("the key that had no expiry lives for %v now", left)
	}
}

// A waiter that gets the key is not queued for it any more.
func TestAWaiterThatGetsTheKeyLeavesTheQueue(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, acquire("key", "holder", time.Minute))
	r := polite(by("w", 0, acquire("key", "me", time.Minute)))
	ask(t, m, r)
	if got := names(t, server, queueOf("key")); !slices.Equal(got, []string{"w"}) {
		t.Fatalf("the queue is %q", got)
	}
	must(t, server.Client().Del(t.Context(), "key").Err())
	if got := ask(t, m, r); got.Outcome != single.Granted || exists(t, server, queueOf("key")) {
		t.Errorf("%+v, want granted, and the queue is %q", got, names(t, server, queueOf("key")))
	}
}

func TestAUserWithoutTheRightToPublishStillReleases(t *testing.T) {
	server := redistest.Start(t)
	rules := []any{"acl", "setuser", "mute", "on", ">secret", "~*", "resetchannels", "+@all"}
	must(t, server.Client().Do(t.Context(), rules...).Err())
	m, loud := dial(t, "redis://mute:secret@"+server.Addr()), dial(t, server.URL())
	ask(t, m, acquire("key", "me", time.Minute))
	ask(t, loud, by("w", 0, acquire("key", "w", time.Minute)))
	if got := ask(t, m, release("key", "me")); got.Outcome != single.Granted || exists(t, server, "key") {
		t.Errorf("plain: %+v", got)
	}
	ask(t, m, writer("me", "1", time.Minute))
	ask(t, loud, by("w", 0, writer("w", "1", time.Minute)))
	if got := ask(t, m, as(single.Release, writer("me", "1", 0))); got.Outcome != single.Granted || got.Token != 0 {
		t.Errorf("exclusive: %+v", got)
	}
}
