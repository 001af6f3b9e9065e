package redlocktest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/redlocktest"
)

// A Locker that the code under test makes uses the masters' time without further settings.
func TestALockerOfNewGoesByTheMastersTime(t *testing.T) {
	masters := redlocktest.New(t)
	l, err := redlock.New(masters.All(), redlock.Options{})
	must(t, err)
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = l.Close(ctx)
	}()
	lock, err := l.TryAcquire(t.Context(), key, time.Hour)
	must(t, err)
	must(t, lock.Err())
	masters.Advance(2 * time.Hour)
	is(t, lock.Err(), redlock.ErrNotHeld)
	masters.Hold(key) // the masters' key has expired too
	masters.Release(key)
}

func TestALockerThatIsLeftOpenInABubbleFailsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, closes := range map[string]bool{"left open": false, "closed": true} {
			test := &recorder{}
			l, err := redlock.New(redlocktest.New(test).All(), redlock.Options{})
			must(t, err)
			lock, err := l.TryAcquire(t.Context(), key, time.Hour)
			must(t, err)
			must(t, lock.Release(t.Context()))
			if closes {
				must(t, l.Close(context.WithoutCancel(t.Context())))
			}
			test.end()
			if said := strings.Join(test.said, ""); closes && said != "" || !closes &&
				!strings.Contains(said, "defer its Close in the bubble") {
				t.Errorf("%s: it says %q", name, said)
			}
			must(t, l.Close(context.WithoutCancel(t.Context())))
		}
	})
}

func TestMastersFromOutsideOfABubbleAreRefusedInIt(t *testing.T) {
	for name, use := range map[string]func(redlocktest.TB, redlocktest.Masters){
		"New":    func(_ redlocktest.TB, m redlocktest.Masters) { _, _ = redlock.New(m.All(), redlock.Options{}) },
		"Clock":  func(_ redlocktest.TB, m redlocktest.Masters) { m.Clock() },
		"Locker": func(tb redlocktest.TB, m redlocktest.Masters) { m.Locker(tb, redlock.Options{}) },
	} {
		test := &recorder{}
		masters := redlocktest.New(test)
		synctest.Test(t, func(*testing.T) { test.run(func(tb redlocktest.TB) { use(tb, masters) }) })
		if said := strings.Join(test.said, ""); !strings.Contains(said, "call redlocktest.New in the bubble") {
			t.Errorf("%s: it says %q", name, said)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		pass(30 * 365 * 24 * time.Hour) // which is later than the present outside
		if said := failure(func(tb redlocktest.TB) { redlocktest.New(tb).Locker(tb, redlock.Options{}) }); said != "" {
			t.Errorf("masters of this bubble: %s", said)
		}
	})
}
