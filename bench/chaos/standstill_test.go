package main

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// hold is an attempt with its times in milliseconds: call, grant, end of the hold, release. A time is 0 if the event
// did not happen.
type hold struct{ call, granted, release, released int64 }

func view(end int64, holds ...hold) *history.View {
	events := []history.Event{{At: 0, Type: history.Healed}, {At: end * int64(time.Millisecond), Type: history.Healed}}
	add := func(id int, at int64, e history.Event) {
		if at > 0 {
			e.At, e.Attempt, e.Key = at*int64(time.Millisecond), uint64(id+1), "k"
			events = append(events, e)
		}
	}
	for i, h := range holds {
		add(i, h.call, history.Event{Type: history.AcquireCall})
		add(i, h.granted, history.Event{
			Type: history.AcquireReturn, Outcome: history.Acquired, Until: (h.granted + 2000) * int64(time.Millisecond),
		})
		add(i, h.release, history.Event{Type: history.ReleaseCall})
		add(i, h.released, history.Event{Type: history.ReleaseReturn, Outcome: history.Acquired})
	}
	return history.NewView(events)
}

func TestStandstillIsTheLongestWaitWhileNoHolderActs(t *testing.T) {
	for name, tt := range map[string]struct {
		view *history.View
		want int64 // in milliseconds
	}{
		"no client asks":  {view(1000), 0},
		"granted at once": {view(1000, hold{100, 101, 200, 201}), 1},
		"no client asks between two holds": {
			view(1000, hold{100, 101, 200, 201}, hold{800, 803, 810, 811}), 3,
		},
		"a release that hangs": {
			view(3000, hold{100, 101, 200, 1500}, hold{150, 1502, 1510, 1511}), 1302,
		},
		"a holder acts during the release": {
			view(3000, hold{100, 101, 1400, 1500}, hold{150, 1502, 1510, 1511}), 102,
		},
		"never granted": {view(1000, hold{400, 0, 0, 0}), 600},
		"two holders at a time, and none afterwards": {
			view(1000, hold{100, 101, 500, 501}, hold{100, 101, 300, 301}, hold{450, 700, 710, 711}), 200,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := standstill(tt.view).Milliseconds(); got != tt.want {
				t.Errorf("%d ms, want %d ms", got, tt.want)
			}
		})
	}
}
