package hold_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// repairs is a behaviour that holds for repairs.
func repairs(a Act) func(*single.Request) Act {
	return func(r *single.Request) Act {
		if r.Repair {
			return a
		}
		return Act{}
	}
}

// mended makes a lock on five masters, of which the given number have lost the key.
func mended(
	t *testing.T, lost int, do func(t *testing.T, lock *redlock.Lock, masters Fakes), opts ...redlock.Option,
) {
	t.Helper()
	Bubble(t, 5, func(t *testing.T, masters Fakes) {
		lock := Acquire(t, masters.Locker(t, redlock.Options{}), LongTTL, opts...)
		Settle(time.Millisecond)
		masters[:lost].Forget()
		do(t, lock, masters)
		_ = lock.Release(t.Context())
		Settle(LongTTL)
		masters.AllFree(t)
	})
}

// lostUnseen makes three of five masters lose the key, and lets an extension fail because two masters do not answer.
// It returns the error of the next extension.
func lostUnseen(t *testing.T) (err error) {
	t.Helper()
	mended(t, 3, func(t *testing.T, lock *redlock.Lock, masters Fakes) {
		for _, m := range masters[1:3] {
			m.Behave(On(single.Extend, Act{Lost: true}))
		}
		Is(t, lock.Extend(t.Context(), LongTTL), redlock.ErrNoQuorum)
		masters.Behave(nil)
		err = lock.Extend(t.Context(), LongTTL)
	})
	return err
}

// A majority had lost the key. So an extension must not win by keys that an earlier extension set again, although the
// earlier one was not decided.
func TestKeysThatAFailedExtensionSetDoNotCount(t *testing.T) {
	Is(t, lostUnseen(t), redlock.ErrNotHeld)
}

// A vote of an extension that was won comes late, and the next extension is not decided yet: it may still fail, because
// a majority has lost the key. So the late vote must not repair the masters where only the next one has found that.
func TestALateVoteRepairsNothingThatALaterExtensionHasFound(t *testing.T) {
	mended(t, 0, func(t *testing.T, lock *redlock.Lock, masters Fakes) {
		var asked atomic.Int32
		masters[4].Behave(func(r *single.Request) Act {
			if r.Op == single.Extend && asked.Add(1) > 1 {
				return Act{Lost: true}
			}
			return Act{After: 50 * time.Millisecond}
		})
		Must(t, lock.Extend(t.Context(), LongTTL)) // by the others
		Settle(time.Millisecond)
		masters[2:4].Forget()
		masters[1].Behave(On(single.Extend, Act{Lost: true}))
		Is(t, lock.Extend(t.Context(), LongTTL), redlock.ErrNoQuorum)
		if n := masters[2:4].Holders(lock.Owner()); n != 0 {
			t.Errorf("%d masters got the key back, and no extension was won after the loss", n)
		}
		Settle(time.Millisecond)
		masters.Behave(nil)
		masters[1].Forget()
		masters[4].Forget()
		Is(t, lock.Extend(t.Context(), LongTTL), redlock.ErrNotHeld)
	})
}

// A repair without an answer may have been done just now, so its key is no vote for the time before. When the other
// masters have confirmed the lock without that vote, the key is a vote again.
func TestARepairWithoutAnAnswerCountsWhenTheOthersHaveConfirmed(t *testing.T) {
	extendAfter := func(answer Act, confirmed bool) (err error) {
		mended(t, 1, func(t *testing.T, lock *redlock.Lock, masters Fakes) {
			masters[0].Behave(repairs(answer))
			Must(t, lock.Extend(t.Context(), LongTTL))
			Settle(time.Second)
			if confirmed {
				Must(t, lock.Extend(t.Context(), LongTTL))
				Settle(time.Second)
			}
			if n := masters.Holders(lock.Owner()); n != 5 {
				t.Fatalf("%d masters have the key", n)
			}
			masters[1].Forget()
			masters[2].Forget()
			err = lock.Extend(t.Context(), LongTTL)
		})
		return err
	}
	Must(t, extendAfter(Act{}, false))
	Must(t, extendAfter(Act{Mute: true}, true))
	err := extendAfter(Act{Mute: true}, false)
	Is(t, err, redlock.ErrNoQuorum)
	IsNot(t, err, redlock.ErrNotHeld)
	quorum, ok := errors.AsType[*redlock.QuorumError](err)
	if !ok || quorum.Nodes[0].Vote != redlock.Unknown || quorum.Nodes[0].Err == nil {
		t.Errorf("%v does not say why the first master did not count", err)
	}
}

// A repair is on its way for a long time, and a later one is not done. So the master has no key, and the first repair
// may still set it: that key, too, may not have been there all the time.
func TestALateRepairStaysInDoubtAfterOneThatWasNotDone(t *testing.T) {
	for name, undone := range map[string]struct {
		act   Act
		taken bool
	}{
		"an error reply": {Act{Err: ReplyError("OOM the master is full")}, false},
		"another's key":  {Act{Before: 10 * time.Millisecond}, true},
	} {
		t.Run(name, func(t *testing.T) {
			mended(t, 1, func(t *testing.T, lock *redlock.Lock, masters Fakes) {
				masters[0].Behave(repairs(Act{Before: 10 * time.Second}))
				Must(t, lock.Extend(t.Context(), LongTTL))
				Settle(time.Second)
				masters[0].Behave(repairs(undone.act))
				Must(t, lock.Extend(t.Context(), LongTTL)) // it has no key
				if undone.taken {
					masters[0].Take("somebody", time.Second)
				}
				Settle(10 * time.Second)
				if n := masters.Holders(lock.Owner()); n != 5 {
					t.Fatalf("%d masters have the key, so the first repair has not come late", n)
				}
				masters[1].Forget()
				masters[2].Forget()
				Is(t, lock.Extend(t.Context(), LongTTL), redlock.ErrNoQuorum)
			})
		})
	}
}

// Masters that answer after an extension has been decided get the key back, too.
func TestStragglersAreRepaired(t *testing.T) {
	mended(t, 2, func(t *testing.T, lock *redlock.Lock, masters Fakes) {
		for _, m := range masters[:2] {
			m.Behave(Away(10 * time.Millisecond))
		}
		Must(t, lock.Extend(t.Context(), LongTTL))
		if n := masters.Holders(lock.Owner()); n != 3 {
			t.Errorf("%d masters have the key at once: no master is late here", n)
		}
		Settle(100 * time.Millisecond)
		if n := masters.Holders(lock.Owner()); n != 5 {
			t.Errorf("%d masters have the key", n)
		}
		for _, m := range masters[:2] {
			if n := m.Count(single.Extend); n != 2 {
				t.Errorf("%s got %d extensions, want one and a repair", m.Name(), n)
			}
		}
	})
}

// A repair leaves a key alone that belongs to another owner by now. It also skips a master where the hold is over
// before the repair arrives.
func TestARepairTakesNoKeyFromAnotherOwner(t *testing.T) {
	mended(t, 1, func(t *testing.T, lock *redlock.Lock, masters Fakes) {
		masters[0].Behave(repairs(Act{Before: 10 * time.Millisecond}))
		Must(t, lock.Extend(t.Context(), LongTTL))
		masters[0].Take("somebody", 20*time.Second)
		Settle(time.Second)
		if holder := masters[0].Holder(); holder != "somebody" {
			t.Errorf("%q holds it on the first master", holder)
		}
		Must(t, lock.Extend(t.Context(), LongTTL)) // by the other four
		masters[1].Forget()
		masters[2].Forget()
		Is(t, lock.Extend(t.Context(), LongTTL), redlock.ErrNotHeld)
	})
}
