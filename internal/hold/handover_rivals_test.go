package hold_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// A waiter asks for the lock again and again, and masters that refuse it raise the counter all the same.
func TestALockIsHandedOverPastItsWaiters(t *testing.T) {
	for name, opt := range map[string]redlock.Option{
		"fenced": redlock.Fenced(), "published": redlock.Published("10.0.0.1:80"),
	} {
		t.Run(name, func(t *testing.T) { handOverBesideWaiters(t, opt) })
	}
}

func handOverBesideWaiters(t *testing.T, opt redlock.Option) {
	t.Helper()
	servers, l := Started(t, 3)
	waiters := make([]*redlock.Locker, 3)
	for i := range waiters {
		waiters[i] = Dial(t, servers, redlock.Options{})
		// so that it asks in one round trip
		Must(t, Take(t, waiters[i], "job", time.Minute, redlock.Fenced()).Release(t.Context()))
	}
	lock := Take(t, l, "job", time.Minute, opt)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, waiter := range waiters {
		all.Go(func() {
			for ctx.Err() == nil {
				if lock, err := waiter.TryAcquire(ctx, "job", time.Minute, redlock.Fenced()); err == nil {
					t.Errorf("another owner has the lock in between, with token %d", lock.Token())
					_ = lock.Release(context.WithoutCancel(ctx))
				}
			}
		})
	}
	defer all.Wait()
	defer stop()
	for range 10 {
		next := attach(t, l, handover(t, lock), time.Minute)
		if next.Token() <= lock.Token() {
			t.Errorf("token %d and then %d", lock.Token(), next.Token())
		}
		lock = next
	}
	stop()
	all.Wait()
	Must(t, lock.Release(t.Context()))
}

// handover hands a lock over, and returns the Handover after its way to another process.
func handover(t *testing.T, lock *redlock.Lock) redlock.Handover {
	t.Helper()
	h, err := lock.Handover()
	Must(t, err)
	return Sent(t, h)
}

// attach continues a lock that was handed over.
func attach(t *testing.T, l *redlock.Locker, h redlock.Handover, ttl time.Duration, opts ...redlock.Option,
) *redlock.Lock {
	t.Helper()
	lock, err := l.Attach(t.Context(), h, ttl, opts...)
	Must(t, err)
	return lock
}

// handedOver takes a lock and returns it with its Handover.
func handedOver(t *testing.T, masters memmaster.Masters, opts ...redlock.Option) (*redlock.Lock, redlock.Handover) {
	t.Helper()
	lock := Take(t, MemLocker(t, masters), "job", handedTTL, append(opts, redlock.Fenced())...)
	Pass(time.Millisecond) // until all masters have it
	return lock, handover(t, lock)
}

const handedTTL = 20 * time.Second

// transfers sets the fates of transfers on the masters. Other requests are not affected.
func transfers(masters memmaster.Masters, fates ...memmaster.Fate) {
	masters.Behave(nil)
	for i, fate := range fates {
		masters[i].Behave(memmaster.On(single.Transfer, fate))
	}
}

// An attempt that fails releases every key that it may have got, also if a grant was not answered or comes later.
func TestAnAttachWithUnknownOutcomeLeavesNoKey(t *testing.T) {
	const late = handedTTL/20 + 100*time.Millisecond // behind the first release, which follows the timeout at once
	for name, fates := range map[string][]memmaster.Fate{
		"answers are lost":     {{Mute: true}, {Mute: true}},
		"requests arrive late": {{Before: late}, {Before: late}, {Before: late}},
	} {
		RunVirtual(t, name, func(t *testing.T) {
			masters := memmaster.New(3)
			_, h := handedOver(t, masters)
			transfers(masters, fates...)
			_, err := MemLocker(t, masters).Attach(t.Context(), h, handedTTL)
			Is(t, err, redlock.ErrNoQuorum)
			Pass(2 * time.Second)
			next, err := MemLocker(t, masters).TryAcquire(t.Context(), "job", handedTTL, redlock.Fenced())
			Must(t, err)
			Must(t, next.Release(t.Context()))
		})
	}
}

// An attempt that got too few votes takes nothing from the next attempt, whether that is in the same process or in
// another.
func TestAFailedAttachCanBeRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(3)
		lock, h := handedOver(t, masters)
		l := MemLocker(t, masters)
		transfers(masters, memmaster.Fate{}, memmaster.Fate{Lost: true}, memmaster.Fate{Lost: true})
		_, err := l.Attach(t.Context(), h, handedTTL)
		Is(t, err, redlock.ErrNoQuorum)
		transfers(masters)
		next := attach(t, l, h, handedTTL)
		if next.Token() <= lock.Token() {
			t.Errorf("token %d and then %d", lock.Token(), next.Token())
		}
		Must(t, next.Extend(t.Context(), handedTTL)) // which gives it back what the first attempt has given up
		Pass(time.Second)
		Must(t, next.Release(t.Context()))
		Pass(time.Second) // a quorum has confirmed it
		for _, m := range masters {
			if owner := m.Owner("job"); owner != "" {
				t.Errorf("a master still has the owner %q", owner)
			}
		}
	})
}

// Another owner had the lock in between. An old request that takes the lock has reached one master late, and that
// vote does not count, also if the new process knows that master by another name.
func TestAKeyThatWasSetLateIsNotHandedOver(t *testing.T) {
	for _, name := range []string{"m3:6379", "m3.example.com:6379"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { setLate(t, name) })
		})
	}
}

// renamed is a Master with another name.
type renamed struct {
	redlock.Master
	name string
}

func (r renamed) Name() string { return r.name }

func setLate(t *testing.T, name string) {
	masters := memmaster.New(3)
	masters[2].Behave(memmaster.Always(memmaster.Fate{Before: 6 * time.Second}))
	lock := Take(t, MemLocker(t, masters), "job", handedTTL, redlock.Fenced())
	synctest.Wait() // the third master has the request
	h := handover(t, lock)
	masters[2].Behave(nil)
	masters[0].Forget()
	other, err := MemLocker(t, masters).TryAcquire(t.Context(), "job", time.Second, redlock.Fenced())
	Must(t, err)
	Must(t, other.Release(t.Context()))
	Pass(7 * time.Second)
	if masters[1].Owner("job") != lock.Owner() || masters[2].Owner("job") != lock.Owner() {
		t.Fatalf("the test shows nothing: m2 has %q, m3 %q", masters[1].Owner("job"), masters[2].Owner("job"))
	}
	next := LockerOver(t, []redlock.Master{masters[0], masters[1], renamed{masters[2], name}},
		redlock.Options{Clock: memmaster.NewClock(0)})
	if _, err := next.Attach(t.Context(), h, handedTTL); err == nil {
		t.Errorf("attached, though another owner had the lock (token %d) in between", other.Token())
	}
}

// Holder returns the published value and the present token.
func TestAPublishedValueSurvivesAHandover(t *testing.T) {
	servers := redistest.StartN(t, 3)
	before, after := Dial(t, servers, redlock.Options{Identity: "old"}),
		Dial(t, servers, redlock.Options{Identity: "new"})
	lock := Take(t, before, "job", time.Minute, redlock.Published("10.0.0.1:80\xff}/"))
	for range 3 {
		next := attach(t, after, handover(t, lock), time.Minute)
		holder, err := before.Holder(t.Context(), "job")
		Must(t, err)
		if holder.Value != "10.0.0.1:80\xff}/" || holder.Token != next.Token() || next.Token() <= lock.Token() ||
			holder.Identity != "new" || holder.ID != next.ID() {
			t.Errorf("token %d and then %d, and the masters say %+v", lock.Token(), next.Token(), holder)
		}
		lock = next
	}
	Must(t, lock.Release(t.Context()))
}

// The number of locks that events count as held is the number of locks that are held.
func TestObserversSeeAHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(3)
		var told []string
		clock := memmaster.NewClock(0)
		l := LockerOver(t, masters.All(), redlock.Options{Clock: clock, Observer: func(e redlock.Event) {
			if e.Kind == redlock.EventVote {
				return
			}
			told = append(told,
				fmt.Sprintf("%v %s %t %v", e.Kind, e.Op, e.Held, errors.Is(e.Err, redlock.ErrNotHeld)))
		}})
		lock := Take(t, l, "job", handedTTL, redlock.Fenced())
		Settle(time.Second)
		told = nil
		h := handover(t, lock)
		next := attach(t, l, h, handedTTL)
		_, err := l.Attach(t.Context(), h, handedTTL)
		Is(t, err, redlock.ErrNotHeld)
		Settle(time.Second)
		Must(t, next.Release(t.Context()))
		Settle(time.Second)
		want := []string{
			"handover attach true false", "acquire attach false false", "returned attach false false",
			"acquire attach false true", "release release false true", "returned attach false true",
			"release release true false",
		}
		if !slices.Equal(slices.Sorted(slices.Values(told)), slices.Sorted(slices.Values(want))) {
			t.Errorf("the events are %q, want %q", told, want)
		}
	})
}
