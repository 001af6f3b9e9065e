package single_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

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
			server := redistest.Start(t)
			m := dial(t, server.URL())
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
	server := redistest.Start(t)
	m := dial(t, server.URL())
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
