package single_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// A program removes the expiry of a shared key (PERSIST). The next request must not set an expiry before the holds
// have ended.
func TestSharePersistedKeyKeepsItsHolds(t *testing.T) {
	for name, next := range map[string]single.Request{
		"refused writer":  by("w", 0, writer("b", "1", time.Minute)),
		"reader":          reader("b", "1", time.Millisecond),
		"shorter request": reader("a", "1", time.Millisecond),
		"extension":       as(single.Extend, reader("a", "1", time.Millisecond)),
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			m := dial(t, server.URL())
			ask(t, m, reader("a", "1", time.Minute))
			ask(t, m, reader("z", "1", time.Millisecond)) // makes a set, in which the hold has its own end
			must(t, server.Client().Persist(t.Context(), "key").Err())
			ask(t, m, next)
			if left := life(t, server, "key"); !about(left, time.Minute) {
				t.Errorf("the key lives for %v, and a hold in it for a minute", left)
			}
		})
	}
}
