package redlocktest_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/redlocktest"
)

// told is a TB that records its failures. end runs its clean-ups.
type told struct {
	errors   []string
	cleanups []func()
}

func (*told) Helper()                     {}
func (f *told) Cleanup(c func())          { f.cleanups = append(f.cleanups, c) }
func (f *told) Errorf(s string, a ...any) { f.errors = append(f.errors, fmt.Sprintf(s, a...)) }
func (f *told) Fatalf(s string, a ...any) { f.Errorf(s, a...); runtime.Goexit() }
func (f *told) end() {
	for _, c := range f.cleanups {
		c()
	}
}

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
			test := &told{}
			l, err := redlock.New(redlocktest.New(test).All(), redlock.Options{})
			must(t, err)
			lock, err := l.TryAcquire(t.Context(), key, time.Hour)
			must(t, err)
			must(t, lock.Release(t.Context()))
			if closes {
				must(t, l.Close(context.WithoutCancel(t.Context())))
			}
			test.end()
			if told := strings.Join(test.errors, ""); closes && told != "" || !closes &&
				!strings.Contains(told, "defer its Close in the bubble") {
				t.Errorf("%s: told %q", name, told)
			}
			must(t, l.Close(context.WithoutCancel(t.Context())))
		}
	})
}

func TestMastersFromOutsideOfABubbleAreRefusedInIt(t *testing.T) {
	for name, use := range map[string]func(redlocktest.Masters){
		"New":   func(m redlocktest.Masters) { _, _ = redlock.New(m.All(), redlock.Options{}) },
		"Clock": func(m redlocktest.Masters) { m.Clock() },
	} {
		test := &told{}
		masters := redlocktest.New(test)
		synctest.Test(t, func(*testing.T) {
			done := make(chan struct{})
			go func() { defer close(done); use(masters) }()
			<-done
		})
		if told := strings.Join(test.errors, ""); !strings.Contains(told, "call redlocktest.New in the bubble") {
			t.Errorf("%s: told %q", name, told)
		}
	}
}
