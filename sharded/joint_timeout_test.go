package sharded_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/sharded"
)

// A near group may have a short request timeout, and a far one the default. Keys that move between them need a timeout
// that is enough for both.
func TestAKeyThatMovesHasTimeForTheFarGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(6))
		masters[:3].SlowDown(60 * time.Millisecond)
		l, err := sharded.New([]sharded.Group{
			{Name: "a", Masters: masters[:3].All()},
			{Name: "b", Masters: masters[3:].All(), Options: redlock.Options{RequestTimeout: 20 * time.Millisecond}},
		}, transition)
		Must(t, err)
		defer func() { Must(t, l.Close(context.Background())) }()
		for i := range 20 {
			lock, err := l.Acquire(Within(t, 2*time.Second), fmt.Sprint("key", i), LongTTL)
			Must(t, err)
			Must(t, lock.Release(t.Context()))
		}
	})
}
