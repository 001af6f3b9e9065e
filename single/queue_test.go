package single_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

func TestWaitersQueueByTheTimeTheyHaveWaited(t *testing.T) {
	server, m := started(t)
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
	has(t, server, queueOf("key"), "c", "b", "a")
	// A later attempt has waited longer by the time that has passed, and so keeps its position.
	ask(t, m, by("a", 2*time.Second-time.Millisecond, acquire("key", "me", time.Minute)))
	has(t, server, queueOf("key"), "c", "b", "a")
	if left := life(t, server, queueOf("key")); !about(left, single.QueueKeep) || single.QueueKeep > time.Hour {
		t.Errorf("the queue is kept for %v, want %v", left, single.QueueKeep)
	}
}

func TestTheQueueIsBoundedAndKeepsThoseWhoWaitedLongest(t *testing.T) {
	server, m := started(t)
	const waiters, bound = 300, 256
	for _, kind := range []single.Kind{single.Plain, single.Shared} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		grants(t, m, acquire("key", "holder", time.Minute))
		for i := range waiters {
			refuses(t, m, "holder", waits(fmt.Sprint("w", i), time.Duration(waiters-i)*time.Second, kind))
		}
		queue := names(t, server, queueOf("key"))
		if len(queue) != bound || queue[0] != "w0" || queue[bound-1] != "w255" {
			t.Errorf("kind %d: %d waiters from %s to %s, want the first %d", kind, len(queue), queue[0],
				queue[len(queue)-1], bound)
		}
		if left := life(t, server, queueOf("key")); !about(left, single.QueueKeep) {
			t.Errorf("kind %d: the queue is kept for %v", kind, left)
		}
	}
}

func TestTheQueueExpiresWithoutFurtherAttempts(t *testing.T) {
	server, m := started(t)
	ask(t, m, acquire("key", "holder", time.Minute))
	ask(t, m, by("w", 0, acquire("key", "me", time.Minute)))
	lives(t, server, queueOf("key"), single.QueueKeep)
	must(t, server.Client().PExpire(t.Context(), queueOf("key"), time.Second).Err())
	ask(t, m, by("w2", 0, acquire("key", "me", time.Minute)))
	lives(t, server, queueOf("key"), single.QueueKeep)
	must(t, server.Client().PExpire(t.Context(), queueOf("key"), 50*time.Millisecond).Err())
	redistest.Eventually(t, patience, func() bool { return !exists(t, server, queueOf("key")) }, "the queue to expire")
	if got := ask(t, m, release("key", "holder")); got.Outcome != single.Granted || got.Called {
		t.Errorf("release with an expired queue: %+v", got)
	}
}

func TestAWaiterForSeveralKeysQueuesForTheOneInTheWay(t *testing.T) {
	server, m := started(t)
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
	grants(t, m, polite(all))
}

// A waiter that gets the key, beside others or alone, leaves the queue.
func TestAWaiterThatGetsTheKeyLeavesTheQueue(t *testing.T) {
	server, m := started(t)
	for _, kind := range []single.Kind{single.Plain, single.Shared} { // where a script grants it
		must(t, server.Client().FlushDB(t.Context()).Err())
		grants(t, m, acquire("key", "holder", time.Minute))
		r := polite(waits("w", 0, kind))
		refuses(t, m, "holder", r)
		has(t, server, queueOf("key"), "w")
		must(t, server.Client().Del(t.Context(), "key").Err())
		if kind == single.Shared {
			grants(t, m, held("r:other:1"))
		}
		if grants(t, m, r); exists(t, server, queueOf("key")) {
			t.Errorf("kind %d: the queue is %q", kind, names(t, server, queueOf("key")))
		}
	}
}

func TestAReservationKeepsOnlyThePoliteOut(t *testing.T) {
	server, m := started(t)
	listen(t, server, "next")
	for _, r := range []single.Request{
		acquire("key", "nobody waits", time.Minute), by("rude", 0, acquire("key", "rude", time.Minute)),
		together("several", "key", "more"), fenced("key", "fenced", 0),
		polite(by("next", 0, acquire("key", "called and polite", time.Minute))),
	} {
		reservedFor(t, server, m, "next")
		grants(t, m, r) // a reservation is a hint and holds nothing
	}
}

func TestAReservedKeyOfSeveralKeepsThePoliteOut(t *testing.T) {
	server, m := started(t)
	listen(t, server, "next")
	for _, keys := range [][]string{{"key", "more"}, {"more", "key"}, {"a", "key", "more"}} {
		reservedFor(t, server, m, "next")
		several := by("other", 0, together("o", keys...))
		if got := refuses(t, m, "", polite(several)); got.Key != "key" {
			t.Errorf("%q: %+v", keys, got)
		}
		grants(t, m, several) // the control
	}
}

func TestAReservationEndsByItself(t *testing.T) {
	t.Parallel()
	server, m := started(t)
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
