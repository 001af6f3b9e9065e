package oracle_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// permit is a hold of key from start to its bound, or to its release where that is earlier.
func permit(id uint64, key string, start, until, release int64) []history.Event {
	e := history.Event{Attempt: id, Client: int(id), Key: key, Kind: history.Shared}
	call, got, gone := e, e, e
	call.Type, call.At = history.AcquireCall, start-1
	got.Type, got.At, got.Outcome, got.Until = history.AcquireReturn, start, history.Acquired, until
	events := []history.Event{call, got}
	if release > 0 {
		gone.Type, gone.At = history.ReleaseCall, release
		events = append(events, gone)
	}
	return events
}

func TestMoreThanNHoldersAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		holds [][]history.Event
		want  int
	}{
		"as many as there may be": {[][]history.Event{permit(1, "k", 10, 90, 0), permit(2, "k", 20, 90, 0)}, 0},
		"one more": {
			[][]history.Event{permit(1, "k", 10, 90, 0), permit(2, "k", 20, 90, 0), permit(3, "k", 30, 90, 0)}, 1,
		},
		"two more": {
			[][]history.Event{
				permit(1, "k", 10, 90, 0), permit(2, "k", 20, 90, 0), permit(3, "k", 30, 90, 0),
				permit(4, "k", 40, 90, 0),
			}, 2,
		},
		"after a release": {
			[][]history.Event{permit(1, "k", 10, 90, 25), permit(2, "k", 20, 90, 0), permit(3, "k", 30, 90, 0)}, 0,
		},
		"after a bound": {
			[][]history.Event{permit(1, "k", 10, 25, 80), permit(2, "k", 20, 90, 0), permit(3, "k", 30, 90, 0)}, 0,
		},
		"before a release": {
			[][]history.Event{permit(1, "k", 10, 90, 35), permit(2, "k", 20, 90, 0), permit(3, "k", 30, 90, 0)}, 1,
		},
		"one of another semaphore": {
			[][]history.Event{permit(1, "k", 10, 90, 0), permit(2, "l", 20, 90, 0), permit(3, "k", 30, 90, 0)}, 0,
		},
	} {
		var events []history.Event
		for _, h := range c.holds {
			events = append(events, h...)
		}
		if found := oracle.AtMost(history.NewView(events), 2); len(found) != c.want {
			t.Errorf("%s: %v", name, found)
		}
	}
}
