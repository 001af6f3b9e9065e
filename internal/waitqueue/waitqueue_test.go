package waitqueue_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/internal/waitqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// atLeast says that any quorum masters are a majority.
func atLeast(quorum int) func(masters uint64) bool {
	return func(masters uint64) bool { return bits.OnesCount64(masters) >= quorum }
}

func newQueue() *waitqueue.Queue {
	return waitqueue.New(atLeast(2), func(d time.Duration, f func()) { time.AfterFunc(d, f) })
}

// enter adds an entry that waits for keys.
func enter(q *waitqueue.Queue, keys ...string) *waitqueue.Entry {
	e := new(waitqueue.Entry)
	q.Enter(e, waitqueue.Want{Keys: keys})
	return e
}

// at is a clock that shows the same time for ever.
func at(now time.Duration) func() time.Duration { return func() time.Duration { return now } }

// yields is for how long e yields at a time.
func yields(q *waitqueue.Queue, e *waitqueue.Entry, now time.Duration) time.Duration {
	_, d := q.Yield(e, at(now))
	return d
}

func hasTurn(q *waitqueue.Queue, e *waitqueue.Entry) bool {
	turn, _ := q.Yield(e, at(0))
	return turn
}

// woken reports whether e has been woken.
func woken(q *waitqueue.Queue, e *waitqueue.Entry) bool {
	select {
	case <-q.Woken(e):
		return true
	default:
		return false
	}
}

func turns(q *waitqueue.Queue, all ...*waitqueue.Entry) (have []int) {
	for i, e := range all {
		if hasTurn(q, e) {
			have = append(have, i)
		}
	}
	return have
}

func TestAnEntryBlockedByAnotherKeyMakesRoom(t *testing.T) {
	q := newQueue()
	both, a1, a2 := enter(q, "a", "b"), enter(q, "a"), enter(q, "a")
	if got := turns(q, both, a1, a2); !slices.Equal(got, []int{0}) {
		t.Fatalf("%v have the turn, want the first", got)
	}
	q.Begin(both, 0)
	q.Blocked(both, []string{"b"}, 0)
	if got := turns(q, both, a1, a2); !slices.Equal(got, []int{0, 1}) || !woken(q, a1) {
		t.Errorf("%v have the turn, want the first of each queue, the new one woken", got)
	}
	// It returns to its position by age when a is in its way.
	q.Begin(both, 0)
	q.Blocked(both, []string{"a"}, 0)
	if got := turns(q, both, a1, a2); !slices.Equal(got, []int{0}) {
		t.Errorf("%v have the turn, want the oldest", got)
	}
}

func TestAKeyIsUnclaimedWhenItsQueueEmptiesWhileMastersHaveTheProcessQueued(t *testing.T) {
	q := newQueue()
	e := enter(q, "a", "b")
	q.Begin(e, 0)
	if got := q.Blocked(e, []string{"b"}, 0); got != nil {
		t.Errorf("%v are unclaimed, but no master has refused because of a", got)
	}
	q.Begin(e, 0)
	if got := q.Blocked(e, []string{"a"}, 0); !slices.Equal(got, []string{"b"}) {
		t.Errorf("%v are unclaimed, want b", got)
	}
	other := enter(q, "a")
	if unclaimed, _ := q.GiveUp(e, at(0), nil, 0); !slices.Equal(unclaimed, []string{"b"}) {
		t.Errorf("%v are unclaimed, want b: an entry waits for a", unclaimed)
	}
	if unclaimed, _ := q.GiveUp(other, at(0), nil, 0); !slices.Equal(unclaimed, []string{"a"}) {
		t.Errorf("%v are unclaimed, want the position that it has inherited", unclaimed)
	}
}

func TestTheNewFirstEntryTriesOnceForAllThatHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		var all []*waitqueue.Entry
		for range 5 {
			all = append(all, enter(q, "a"))
		}
		for _, e := range all[:3] {
			q.GiveUp(e, at(0), nil, time.Second)
			if status := q.Status(all[3]); status.Why != 0 {
				t.Errorf("it is woken for %v while others give up", status.Why)
			}
			<-time.After(time.Second / 4)
		}
		<-time.After(time.Second / 4)
		synctest.Wait()
		if status := q.Status(all[3]); !status.Turn || status.Why != waitqueue.First {
			t.Errorf("a second after the first had left, the remaining one has %+v", status)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if status := q.Status(all[3]); status.Why != 0 {
			t.Errorf("it is woken again, for %v", status.Why)
		}
		q.Wake([]string{"a"}) // none of the entries has tried since, so the next one does at once
		q.GiveUp(all[3], at(0), nil, time.Second)
		if status := q.Status(all[4]); status.Why != waitqueue.First {
			t.Errorf("the key is free, and the new first entry is woken for %v", status.Why)
		}
	})
}

func TestAnotherClassGetsAChanceAndTheOrderWithinAClassStays(t *testing.T) {
	q := newQueue()
	var all []*waitqueue.Entry
	for _, class := range []waitqueue.Class{1, 1, 2, 3, 2} {
		e := new(waitqueue.Entry)
		q.Enter(e, waitqueue.Want{Keys: []string{"a"}, Class: class})
		all = append(all, e)
	}
	var order []int
	for range 9 {
		have := turns(q, all...)
		if len(have) != 1 {
			t.Fatalf("%v have the turn", have)
		}
		order = append(order, have[0])
		q.Begin(all[have[0]], 0)
		q.StepBack(all[have[0]])
	}
	seen := make(map[int]int)
	for _, i := range order {
		seen[i]++
	}
	if seen[0] < 2 || seen[2] < 2 || seen[3] < 2 || seen[1]+seen[4] > 0 {
		t.Errorf("the turn went %v, want the first of each class in turns", order)
	}
}

// Entries step back, and then move to another key's queue. Whatever order they had, one of them has the turn there, and
// each gets it in the end.
func TestEntriesThatHaveSteppedBackMoveTogether(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := newQueue()
		var all []*waitqueue.Entry
		for range rapid.IntRange(2, 6).Draw(rt, "entries") {
			e := new(waitqueue.Entry)
			class := waitqueue.Class(rapid.IntRange(1, 3).Draw(rt, "class"))
			q.Enter(e, waitqueue.Want{Keys: []string{"a", "b"}, Class: class})
			all = append(all, e)
		}
		back := rapid.IntRange(0, 6).Draw(rt, "steps back")
		for n := 0; len(all) > 0; n++ {
			have := turns(q, all...)
			if len(have) != 1 {
				rt.Fatalf("%v of %d have the turn", have, len(all))
			}
			first := all[have[0]]
			q.Begin(first, 0)
			q.End(first)
			switch {
			case n < back:
				q.StepBack(first)
			case n == back:
				q.Blocked(first, []string{"b"}, 0)
			default:
				q.GiveUp(first, at(0), nil, 0)
				all = slices.Delete(all, have[0], have[0]+1)
			}
		}
	})
}

func TestANotificationGoesToTheFirstEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		first, second := enter(q, "a"), enter(q, "a")
		q.Begin(first, 0)
		q.Notify("a", 0, time.Millisecond)
		if woken(q, first) {
			t.Error("one master is no quorum")
		}
		q.GiveUp(first, at(0), nil, 0) // it gives up, and can't use it
		q.Status(second)
		q.Notify("a", 2, time.Millisecond)
		if !woken(q, second) {
			t.Error("two masters are a quorum, no matter which entry was first when they notified")
		}
		if q.Begin(second, 0).Polite {
			t.Error("polite although a quorum has notified")
		}
		q.Notify("a", 1, time.Millisecond)
		<-time.After(time.Millisecond)
		synctest.Wait()
		if !woken(q, second) {
			t.Error("notified by some, it should try after a while")
		}
	})
}

func TestAFavourKeepsKeysFromYoungerEntriesForAShortTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		older, both, younger := enter(q, "a"), enter(q, "a", "b"), enter(q, "b")
		now := time.Second
		q.Leave(older, at(now))
		q.Begin(both, now)
		q.Blocked(both, []string{"b"}, now)
		d := yields(q, younger, now)
		if d <= 0 || yields(q, both, now) > 0 {
			t.Fatalf("the younger yields for %v", d)
		}
		sum := time.Duration(0)
		for ; now < 11*time.Second; now += time.Millisecond { // it goes on failing
			q.Blocked(both, []string{"b"}, now)
			if yields(q, younger, now) > 0 {
				sum += time.Millisecond
			}
		}
		if sum < time.Second || sum > 2500*time.Millisecond {
			t.Errorf("of ten seconds the younger yielded for %v, want a fifth at the most", sum)
		}
		for yields(q, younger, now) == 0 {
			now += time.Millisecond
			q.Blocked(both, []string{"b"}, now)
		}
		q.GiveUp(both, at(now), nil, 0)
		if d := yields(q, younger, now); d > 0 || !woken(q, younger) {
			t.Errorf("after its end it is yielded to for %v", d)
		}
	})
}

// A favour keeps keys only from younger entries: older ones go first as before.
func TestAFavourTakesNothingFromOlderEntries(t *testing.T) {
	q := newQueue()
	older, both, younger := enter(q, "b"), enter(q, "a", "b"), enter(q, "b")
	q.Begin(both, time.Second)
	q.Blocked(both, []string{"b"}, time.Second)
	if yields(q, younger, time.Second) == 0 {
		t.Fatal("no entry is favoured")
	}
	if d := yields(q, older, time.Second); d != 0 {
		t.Errorf("the older yields for %v", d)
	}
}

// A key is not passed on inside the process to an entry that would leave it alone if it were free.
func TestAFavouredKeyIsNotPassedOnToAYoungerEntry(t *testing.T) {
	q := newQueue()
	enter(q, "b")
	both, younger := enter(q, "a", "b"), enter(q, "a")
	q.Begin(both, time.Second)
	q.Blocked(both, []string{"b"}, time.Second)
	if _, e := q.Take("a", time.Second, anybody); e != nil {
		t.Error("the younger one is passed the key")
	}
	if _, e := q.Take("a", 2*time.Second, anybody); e != younger {
		t.Error("no entry is passed the key when the favour is over")
	}
}

// An older entry overtakes the entry that began the queue, and leaves. The overtaken one inherits its position in the
// masters' queues.
func TestTheNewFirstEntryInheritsThePosition(t *testing.T) {
	q := newQueue()
	a, both := enter(q, "a"), enter(q, "a", "b")
	b := enter(q, "b") // begins b's queue
	q.Leave(a, at(0))
	q.Begin(both, 0)
	q.Blocked(both, []string{"b"}, 0) // to the front, by its age
	if got := turns(q, both, b); !slices.Equal(got, []int{0}) {
		t.Fatalf("%v have the turn, want the older", got)
	}
	q.Leave(both, at(0))
	if unclaimed, _ := q.GiveUp(b, at(0), nil, 0); !slices.Equal(unclaimed, []string{"b"}) {
		t.Errorf("%v are unclaimed, want b", unclaimed)
	}
}

func TestHazard48RivalsAreForgottenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		e := enter(q, "k5")
		for i := range 5000 { // more than are ever contended
			q.Rival([]string{fmt.Sprintf("k%d", i)}, time.Second, 2*time.Second)
		}
		if d := yields(q, e, 0); d != time.Second {
			t.Errorf("it yields for %v, want a second", d)
		}
		if !q.Begin(e, time.Second).Polite {
			t.Error("not polite while the rival is remembered")
		}
		<-time.After(time.Minute)
		if q.Begin(e, 0).Polite {
			t.Error("a rival is remembered for a minute")
		}
	})
}

// After any sequence of steps exactly one entry of each queue has the turn: the first. An entry that gets the turn
// without doing anything is woken. No entry is lost.
func TestEveryQueueHasOneTurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := waitqueue.New(atLeast(2), func(time.Duration, func()) {})
		keys := []string{"a", "b", "c"}
		type waiter struct {
			e    *waitqueue.Entry
			keys []string
			line string // in which it is, as the model says
		}
		var all []*waiter // by age
		turn := func(w *waiter) bool { return hasTurn(q, w.e) }
		now := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 50).Draw(t, "ms")) * time.Millisecond
			had := make(map[*waiter]bool)
			for _, w := range all {
				had[w] = turn(w)
				q.Status(w.e)
			}
			var acting *waiter
			if len(all) > 0 {
				acting = all[rapid.IntRange(0, len(all)-1).Draw(t, "who")]
			}
			switch op := rapid.IntRange(0, 3).Draw(t, "op"); {
			case acting == nil || op == 0:
				from := rapid.IntRange(0, 2).Draw(t, "from")
				w := &waiter{e: new(waitqueue.Entry), keys: keys[from : from+rapid.IntRange(1, 3-from).Draw(t, "n")]}
				w.line = w.keys[0]
				for _, k := range w.keys {
					if slices.ContainsFunc(all, func(o *waiter) bool { return o.line == k }) {
						w.line = k
						break
					}
				}
				q.Enter(w.e, waitqueue.Want{Keys: w.keys, Since: now})
				all = append(all, w)
				acting = w
			case op == 1:
				if rapid.Bool().Draw(t, "won") {
					q.Leave(acting.e, at(now))
				} else {
					q.GiveUp(acting.e, at(now), nil, 0)
				}
				all = slices.DeleteFunc(all, func(o *waiter) bool { return o == acting })
			case had[acting]:
				q.Begin(acting.e, now)
				from, to := acting.line, rapid.SampledFrom(acting.keys).Draw(t, "in the way")
				for _, w := range all {
					if w.line == from && slices.Contains(w.keys, to) { // that key holds it up, too
						w.line = to
					}
				}
				q.Blocked(acting.e, []string{to}, now)
			}
			first := make(map[string]*waiter)
			for _, w := range all {
				if first[w.line] == nil {
					first[w.line] = w
				}
			}
			for _, w := range all {
				if got, want := turn(w), first[w.line] == w; got != want {
					t.Fatalf("of the line of %s: turn is %v, want %v", w.line, got, want)
				}
				if turn(w) && !had[w] && w != acting && q.Status(w.e).Why&waitqueue.First == 0 {
					t.Fatalf("the first in the line of %s was not woken", w.line)
				}
			}
		}
		for _, w := range all {
			q.GiveUp(w.e, at(now), nil, 0)
		}
		if unclaimed := q.HandOver(keys); len(unclaimed) != 3 {
			t.Fatalf("everybody has left, and only %v are unclaimed", unclaimed)
		}
	})
}

// A key that has become free is tried by the entry that has its queue's turn, no matter which entry heard of it. An
// older entry may come to the front when another one has heard of it or is about to try, and only the entry with the
// turn tries.
func TestNewsOfAFreeKeyIsNotLostWhenTheTurnChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := waitqueue.New(atLeast(2), func(time.Duration, func()) {})
		keys := []string{"a", "b"}
		type waiter struct {
			e     *waitqueue.Entry
			keys  []string
			line  string
			awake bool // it has taken notice, and tries next
			at    int  // the step in which its attempt began that is under way, 0: none is
		}
		var all []*waiter // by age
		news := make(map[string]int)
		first := func(key string) *waiter {
			for _, w := range all {
				if w.line == key {
					return w
				}
			}
			return nil
		}
		for step := range rapid.IntRange(1, 100).Draw(t, "steps") {
			var w *waiter
			if len(all) > 0 {
				w = all[rapid.IntRange(0, len(all)-1).Draw(t, "who")]
			}
			switch op := rapid.IntRange(0, 4).Draw(t, "op"); {
			case w == nil || op == 0:
				from := rapid.IntRange(0, 1).Draw(t, "from")
				w = &waiter{
					e: new(waitqueue.Entry), keys: keys[from : from+rapid.IntRange(1, 2-from).Draw(t, "n")],
					awake: true,
				}
				w.line = w.keys[0]
				if at := slices.IndexFunc(w.keys, func(k string) bool { return first(k) != nil }); at >= 0 {
					w.line = w.keys[at]
				}
				q.Enter(w.e, waitqueue.Want{Keys: w.keys})
				all = append(all, w)
			case op == 1:
				key := rapid.SampledFrom(keys).Draw(t, "freed")
				q.Wake([]string{key})
				news[key] = 1 + step
			case op == 2 && w.at == 0:
				s := q.Status(w.e)
				w.awake = w.awake || s.Turn && s.Why&(waitqueue.First|waitqueue.Free) != 0
			case op == 3 && w.at == 0:
				if w.awake && hasTurn(q, w.e) {
					q.Begin(w.e, 0)
					w.at, news[w.line] = 1+step, 0 // it looks
				}
				w.awake = false
			case op == 4 && w.at > 0:
				from, to := w.line, rapid.SampledFrom(w.keys).Draw(t, "in the way")
				for _, other := range all {
					if other.line == from && slices.Contains(other.keys, to) { // that key holds it up, too
						other.line = to
					}
				}
				if news[to] < w.at { // another waiter has it by now
					news[to] = 0
				}
				w.at = 0
				q.Blocked(w.e, []string{to}, 0)
			}
			for _, key := range keys {
				w := first(key)
				if w == nil {
					news[key] = 0
				}
				if news[key] > 0 && !w.awake && len(q.Woken(w.e)) == 0 {
					t.Fatalf("%s is free, and the entry with the turn does not know", key)
				}
			}
		}
	})
}

// The first entry of a queue knows that the key is free, and has not tried yet. Then an older entry comes to the
// front.
func TestNewsOfAFreeKeyGoesToTheEntryWithTheTurn(t *testing.T) {
	q := newQueue()
	both, a, b := enter(q, "a", "b"), enter(q, "a"), enter(q, "b")
	q.Begin(both, 0) // is refused because of b, which is then released
	q.Wake([]string{"b"})
	q.Status(b) // it is about to try
	q.Blocked(both, []string{"b"}, 0)
	if got := turns(q, both, a, b); !slices.Equal(got, []int{0, 1}) {
		t.Fatalf("%v have the turn", got)
	}
	if why := q.Status(both).Why; why&waitqueue.Free == 0 {
		t.Error("b is free, and the entry with the turn does not know")
	}
}
