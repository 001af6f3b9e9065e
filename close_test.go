package redlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/leader"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/sharded"
)

// When Close has returned, its caller relies on it that nothing is left, whether or not this call was the first.
func TestASecondCloseWaitsForTheFirst(t *testing.T) {
	InMemory(t, func(t *testing.T, _ redlocktest.Masters, l *redlock.Locker) {
		lock := Acquire(t, l, LongTTL, redlock.AutoRenew())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- l.Close(context.Background()) }()
		synctest.Wait()
		go func() { second <- l.Close(context.Background()) }()
		Settle(10 * LongTTL)
		select {
		case err := <-second:
			t.Errorf("the second Close returned %v before the first had returned", err)
		default:
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("enough"))
		defer cancel()
		began := time.Now()
		err := l.Close(ctx)
		Is(t, err, context.DeadlineExceeded)
		if took := time.Since(began); took != time.Second {
			t.Errorf("Close took %v, and its context lasts 1s", took)
		}
		Must(t, lock.Err()) // and has shortened nothing
		Must(t, lock.Release(t.Context()))
		Must(t, <-first)
		Must(t, <-second)
		Must(t, l.Close(ctx)) // there is nothing left to wait for
	})
}

// When the context of a first Close ends, this Close returns, and its error says what is left. Then the second Close
// returns too.
func TestASecondCloseReturnsWhenTheContextOfTheFirstEnds(t *testing.T) {
	InMemory(t, func(t *testing.T, _ redlocktest.Masters, l *redlock.Locker) {
		Acquire(t, l, LongTTL, redlock.AutoRenew())
		ctx := Within(t, time.Second)
		first := make(chan error, 1)
		go func() { first <- l.Close(ctx) }()
		synctest.Wait()
		Must(t, l.Close(context.Background()))
		Is(t, <-first, context.DeadlineExceeded)
	})
}

func TestHazard111CloseWithoutADeadlineIsNotHeldUpByAMasterThatHangs(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		lock := Acquire(t, l, time.Hour)
		masters[0].SlowDown(time.Hour) // answers nothing in time
		closed := make(chan error, 1)
		go func() { closed <- l.Close(context.Background()) }()
		Settle(time.Minute)
		select {
		case err := <-closed:
			t.Fatalf("Close returned %v while a lock was held", err)
		default:
		}
		Must(t, lock.Release(t.Context()))
		began := time.Now()
		err := <-closed
		Is(t, err, context.DeadlineExceeded)
		if took := time.Since(began); took > 4*time.Second || !strings.Contains(err.Error(), "1 keys not confirmed") {
			t.Errorf("Close said after %v: %v; want within 4s that one key was not confirmed", took, err)
		}
	})
}

// The control: Close keeps to the caller's deadline, even if it is later.
func TestCloseWaitsForItsOwnDeadlineForAMasterThatHangs(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		lock := Acquire(t, l, time.Hour)
		masters[0].SlowDown(time.Hour)
		Must(t, lock.Release(t.Context()))
		ctx := Within(t, time.Minute)
		began := time.Now()
		Is(t, l.Close(ctx), context.DeadlineExceeded)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("Close returned after %v, and its context has a minute", took)
		}
		Settle(time.Minute) // the last request ends by its own timeout
	})
}

func TestZeroValuesAreRefused(t *testing.T) {
	ctx := t.Context()
	work := func(context.Context) error { return errors.New("it was run") }
	for name, l := range map[string]*redlock.Locker{"zero": {}, "nil": nil} {
		errs := map[string]error{"Do": l.Do(ctx, Key, LongTTL, work), "Close": l.Close(ctx)}
		_, errs["Acquire"] = l.Acquire(ctx, Key, LongTTL)
		_, errs["TryAcquire"] = l.TryAcquire(ctx, Key, LongTTL)
		_, errs["Holder"] = l.Holder(ctx, Key)
		_, errs["Check"] = l.Check(ctx)
		_, errs["NewElection"] = leader.NewElection(l, Key, LongTTL)
		for method, err := range errs {
			Refused(t, name+" "+method, err, "a Locker must be made by New or Dial")
		}
	}
	for name, s := range map[string]*sharded.Locker{"zero": {}, "nil": nil} {
		errs := map[string]error{"Do": s.Do(ctx, Key, LongTTL, work), "Close": s.Close(ctx)}
		_, errs["Acquire"] = s.Acquire(ctx, Key, LongTTL)
		_, errs["TryAcquire"] = s.TryAcquire(ctx, Key, LongTTL)
		_, errs["Holder"] = s.Holder(ctx, Key)
		_, errs["Check"] = s.Check(ctx)
		for method, err := range errs {
			Refused(t, "sharded, "+name+" "+method, err, "must be made by New")
		}
		if s.GroupOf(Key) != "" || s.Locker(Key) != nil {
			t.Errorf("sharded, %s: it has a group", name)
		}
	}
	for name, e := range map[string]*leader.Election{"zero": {}, "nil": nil} {
		_, campaigned := e.Campaign(ctx)
		_, asked := e.Leader(ctx)
		ran := e.Run(ctx, func(context.Context, *leader.Term) error { return errors.New("it was run") })
		for _, err := range []error{campaigned, asked, ran} {
			Refused(t, "Election, "+name, err, "must be made by NewElection")
		}
	}
}
