package redlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/fence"
	"github.com/seed-624411e5/redlock/redlocktest"
)

var errSkipped = errors.New("skipped: another process is at it")

// nightly makes the report unless another process makes it. The examples test this function.
func nightly(ctx context.Context, locker *redlock.Locker, report func(ctx context.Context, token uint64) error) error {
	lock, err := locker.TryAcquire(ctx, "reports:nightly", time.Minute, redlock.AutoRenew(), redlock.Fenced())
	if errors.Is(err, redlock.ErrHeld) {
		return errSkipped
	}
	if err != nil {
		return err
	}
	err = report(lock.Context(ctx), lock.Token())
	return errors.Join(err, lock.Release(context.WithoutCancel(ctx)))
}

// inTest takes the place of the *testing.T, which an Example does not have.
type inTest struct{ cleanups []func() }

func (*inTest) Helper()                           {}
func (t *inTest) Cleanup(f func())                { t.cleanups = append(t.cleanups, f) }
func (*inTest) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (*inTest) Fatalf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func (t *inTest) end() {
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
}

// My job is skipped when another holds the lock.
func Example() {
	ctx, t := context.Background(), new(inTest) // in a test: t.Context() and t
	defer t.end()

	masters := redlocktest.New(t) // five, in this process
	locker := masters.Locker(t, redlock.Options{})
	report := func(context.Context, uint64) error { fmt.Println("reporting"); return nil }

	masters.Hold("reports:nightly") // another process has it
	fmt.Println(nightly(ctx, locker, report))

	masters.Release("reports:nightly")
	fmt.Println(nightly(ctx, locker, report))
	fmt.Println("still held:", masters.Held())
	// Output:
	// skipped: another process is at it
	// reporting
	// <nil>
	// still held: []
}

// My job stops when its lock is lost.
func ExampleMasters_Lose() {
	ctx, t := context.Background(), new(inTest)
	defer t.end()
	masters := redlocktest.New(t)
	locker := masters.Locker(t, redlock.Options{})

	err := nightly(ctx, locker, func(ctx context.Context, _ uint64) error {
		masters.Lose("reports:nightly")
		masters.Advance(time.Minute / 3) // a third of the ttl: the next renewal is due, and finds out
		<-ctx.Done()
		return context.Cause(ctx)
	})
	fmt.Println("stopped because the lock was lost:", errors.Is(err, redlock.ErrNotHeld))
	// Output:
	// stopped because the lock was lost: true
}

// Each write carries the token, so that a holder that was overtaken can't overwrite it.
func ExampleMasters_Locker() {
	ctx, t := context.Background(), new(inTest)
	defer t.end()
	masters := redlocktest.New(t)
	mine, other := masters.Locker(t, redlock.Options{}), masters.Locker(t, redlock.Options{}) // two processes

	table := fence.New(0) // in place of a database that compares numbers
	write := func(who string) func(context.Context, uint64) error {
		return func(_ context.Context, token uint64) error {
			return table.Do("report", token, func() error { fmt.Println("written by", who); return nil })
		}
	}
	err := nightly(ctx, mine, func(ctx context.Context, token uint64) error {
		masters.Lose("reports:nightly") // while I am paused, another takes over
		fmt.Println(nightly(ctx, other, write("the other")))
		return write("me")(ctx, token)
	})
	_, stale := errors.AsType[*fence.StaleError](err)
	fmt.Println("mine was refused:", stale)
	// Output:
	// written by the other
	// <nil>
	// mine was refused: true
}

// Three of five masters are away; then they are back.
func ExampleMasters_Stop() {
	ctx, t := context.Background(), new(inTest)
	defer t.end()
	masters := redlocktest.New(t)
	locker := masters.Locker(t, redlock.Options{})
	report := func(context.Context, uint64) error { fmt.Println("reporting"); return nil }

	masters[:3].Stop()
	err := nightly(ctx, locker, report)
	fmt.Println("no quorum:", errors.Is(err, redlock.ErrNoQuorum))

	masters[:1].Start() // three of five are enough
	fmt.Println(nightly(ctx, locker, report))
	// Output:
	// no quorum: true
	// reporting
	// <nil>
}

// The next attempt fails, with the error that the masters are to give.
func ExampleMasters_FailNext() {
	ctx, t := context.Background(), new(inTest)
	defer t.end()
	masters := redlocktest.New(t)
	locker := masters.Locker(t, redlock.Options{})

	masters.FailNext(redlocktest.ReplyError("OOM command not allowed when used memory > 'maxmemory'."))
	_, err := locker.TryAcquire(ctx, "reports:nightly", time.Minute)
	fmt.Println("no quorum:", errors.Is(err, redlock.ErrNoQuorum))
	_, err = locker.TryAcquire(ctx, "reports:nightly", time.Minute)
	fmt.Println(err)
	// Output:
	// no quorum: true
	// <nil>
}

// In a bubble of testing/synctest an hour takes no time, and things happen in their order.
func TestTheReportKeepsItsLockForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t) // made in the bubble, for its time
		locker := masters.Locker(t, redlock.Options{})
		err := nightly(t.Context(), locker, func(ctx context.Context, _ uint64) error {
			select {
			case <-time.After(time.Hour):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
}
