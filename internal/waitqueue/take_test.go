package waitqueue_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/internal/waitqueue"
)

func anybody(any) bool { return true }

// takes takes the entry that has the turn for the key; nil if there is none.
func takes(q *waitqueue.Queue) *waitqueue.Entry {
	_, e := q.Take("key", 0, anybody)
	return e
}

// After an entry's wait has ended, no key is passed to it. An entry that has been taken knows it wherever it looks.
func TestAnEntryIsTakenOrLeaves(t *testing.T) {
	q := waitqueue.New(atLeast(2), func(time.Duration, func()) {})
	var first, second waitqueue.Entry
	q.Enter(&first, waitqueue.Want{Keys: []string{"key"}, Waiter: "first"})
	q.Enter(&second, waitqueue.Want{Keys: []string{"key"}, Waiter: "second"})
	if taken, _ := q.Taken(&first); taken {
		t.Fatal("the entry was not taken")
	}
	if e := takes(q); e != nil {
		t.Error("an entry whose wait has ended was taken")
	}
	q.GiveUp(&first, at(0), nil, 0)
	waiter, e := q.Take("key", 0, anybody)
	if e != &second || waiter != "second" {
		t.Fatalf("took %v", waiter)
	}
	if taken, passed := q.Taken(&second); !taken || passed {
		t.Errorf("taken %v, passed %v; want it to be taken only", taken, passed)
	}
	if !q.Begin(&second, 0).Taken || q.Start(&second) || !q.Status(&second).Taken {
		t.Error("a taken entry may make an attempt")
	}
	q.Pass(&second)
	select {
	case <-q.Woken(&second):
	default:
		t.Error("it is not woken, because it was not asleep yet")
	}
	if _, passed := q.Taken(&second); !passed {
		t.Error("it was passed the key")
	}
}

// Four kinds of entries are not taken: an entry that is making an attempt, one that wants more keys, one that does
// not fit the lock, and one behind another entry.
func TestOnlyTheFirstRestingEntryIsTaken(t *testing.T) {
	for name, tt := range map[string]struct {
		want waitqueue.Want
		do   func(q *waitqueue.Queue, e *waitqueue.Entry)
		fits func(any) bool
	}{
		"it makes an attempt":             {do: func(q *waitqueue.Queue, e *waitqueue.Entry) { q.Begin(e, 0) }},
		"it makes one out of its turn":    {do: func(q *waitqueue.Queue, e *waitqueue.Entry) { q.Start(e) }},
		"it wants another key, too":       {want: waitqueue.Want{Keys: []string{"key", "other"}}},
		"the lock is not what it wants":   {fits: func(any) bool { return false }},
		"it is the first that is not fit": {fits: func(w any) bool { return w == "second" }},
	} {
		q := waitqueue.New(atLeast(2), func(time.Duration, func()) {})
		var first, second waitqueue.Entry
		if tt.want.Keys == nil {
			tt.want.Keys = []string{"key"}
		}
		q.Enter(&first, tt.want)
		q.Enter(&second, waitqueue.Want{Keys: []string{"key"}, Waiter: "second"})
		if tt.do != nil {
			tt.do(q, &first)
		}
		fits := tt.fits
		if fits == nil {
			fits = anybody
		}
		if waiter, e := q.Take("key", 0, fits); e != nil {
			t.Errorf("%s: took %v", name, waiter)
		}
	}
}

// TestEveryWaiterIsTakenOrWoken is a property. Each entry is taken, tries or leaves, one at a time and in the order
// of arrival. No entry is forgotten when its predecessor has left quietly and the reminder has come.
func TestEveryWaiterIsTakenOrWoken(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := waitqueue.New(atLeast(2), func(time.Duration, func()) {})
		entries := make([]waitqueue.Entry, rapid.IntRange(1, 8).Draw(rt, "entries"))
		for i := range entries {
			q.Enter(&entries[i], waitqueue.Want{Keys: []string{"key"}, Waiter: i})
		}
		for next := 0; next < len(entries); {
			e := &entries[next]
			switch rapid.SampledFrom([]string{"taken", "tries", "gives up", "fails"}).Draw(rt, "what it does") {
			case "taken":
				if waiter, got := q.Take("key", 0, anybody); got != e {
					rt.Fatalf("entry %d waits, and %v was taken", next, waiter)
				}
				q.Pass(e)
				if taken, passed := q.Taken(e); !taken || !passed {
					rt.Fatal("it does not know")
				}
				q.LeaveQuietly(e, time.Second)
			case "tries":
				if q.Begin(e, 0).Followed != (next+1 < len(entries)) {
					rt.Fatal("it does not know whether an entry waits behind it")
				}
				if takes(q) != nil {
					rt.Fatal("an entry was taken during an attempt of the first")
				}
				q.LeaveQuietly(e, time.Second)
				q.Remind("key", time.Second)
				if next+1 < len(entries) && q.Status(&entries[next+1]).Why&waitqueue.First == 0 {
					rt.Fatal("the next one was not reminded")
				}
			case "gives up":
				if taken, _ := q.Taken(e); taken || takes(q) != nil {
					rt.Fatal("an entry that leaves was taken")
				}
				q.GiveUp(e, at(0), nil, 0)
			case "fails":
				q.Begin(e, 0)
				q.End(e)
				continue
			}
			next++
		}
		if takes(q) != nil {
			rt.Fatal("an entry is left")
		}
	})
}

// A process passes a key on. The entries that can be passed the key do not try until the process releases the key or
// its time is over. All other entries may try.
func TestPatientEntriesWaitWhileTheKeyIsPassedOn(t *testing.T) {
	const until = 100 * time.Millisecond
	for name, tt := range map[string]struct {
		want     waitqueue.Want
		now      time.Duration
		released bool
		yields   time.Duration
	}{
		"patient": {
			waitqueue.Want{Keys: []string{"key"}, Patient: true}, 30 * time.Millisecond, false, 70 * time.Millisecond,
		},
		"its time is over": {waitqueue.Want{Keys: []string{"key"}, Patient: true}, until, false, 0},
		"the key was released": {
			waitqueue.Want{Keys: []string{"key"}, Patient: true}, 30 * time.Millisecond, true, 0,
		},
		"another key": {
			waitqueue.Want{Keys: []string{"other"}, Patient: true}, 30 * time.Millisecond, false, 0,
		},
		"not patient": {waitqueue.Want{Keys: []string{"key"}}, 30 * time.Millisecond, false, 0},
		"wants another key as well": {
			waitqueue.Want{Keys: []string{"key", "other"}, Patient: true}, 30 * time.Millisecond, false, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := waitqueue.New(atLeast(2), func(time.Duration, func()) {})
			var holder, e waitqueue.Entry
			q.Enter(&holder, waitqueue.Want{Keys: []string{"key"}})
			q.Begin(&holder, 0)
			q.Enter(&e, tt.want)
			q.LeaveQuietly(&holder, until)
			if tt.released {
				q.HandOver([]string{"key"})
			}
			q.Wake([]string{"key"}) // no entry tries because of that alone
			if turn, d := q.Yield(&e, at(tt.now)); !turn || d != tt.yields {
				t.Errorf("its turn: %t, yields for %v, want %v", turn, d, tt.yields)
			}
		})
	}
}

// A reminder may come a moment before its time. An entry that is passed the key after that keeps it for the rest of
// that time, without another reminder. So the entries behind it are not patient.
func TestNoEntryIsPatientAfterTheReminder(t *testing.T) {
	const until = 100 * time.Millisecond
	q := waitqueue.New(atLeast(2), func(time.Duration, func()) {})
	var holder, second, third waitqueue.Entry
	q.Enter(&holder, waitqueue.Want{Keys: []string{"key"}})
	q.Begin(&holder, 0)
	for _, e := range []*waitqueue.Entry{&second, &third} {
		q.Enter(e, waitqueue.Want{Keys: []string{"key"}, Patient: true})
	}
	q.LeaveQuietly(&holder, until)
	q.Remind("key", until)
	if e := takes(q); e != &second {
		t.Fatalf("took %v, want the second", e)
	}
	q.Pass(&second)
	q.LeaveQuietly(&second, until)
	if turn, d := q.Yield(&third, at(until/2)); !turn || d != 0 {
		t.Errorf("its turn: %t, yields for %v, want none", turn, d)
	}
}
