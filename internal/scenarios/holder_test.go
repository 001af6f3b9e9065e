package scenarios_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/redlocktest"
)

// SOURCES S3: ask whether a given owner holds the lock.
func TestS3HolderSaysWhoHoldsAKey(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	h := holderOf(t, b, key)
	if h.Held || h.Identity != "" || h.Holds != 0 || h.TTL != 0 || len(h.Nodes) != 3 {
		t.Errorf("Holder of a free key: %+v", h)
	}
	lock := take(t, a, key, longTTL)
	h = holderOf(t, b, key)
	if !h.Held || h.ID != lock.ID() || h.Holds != 1 || h.TTL <= longTTL-promptly || h.TTL > longTTL {
		t.Errorf("Holder of a held key: %+v, want %s for a minute", h, lock.ID())
	}
	give(t, lock)
	h = holderOf(t, b, key)
	if h.Held {
		t.Errorf("Holder of a released key: %+v", h)
	}
}

// Keys on a minority of masters belong to no lock; the report lists the masters that have the keys.
func TestHolderNamesNoOwnerOfOrphansOnAMinority(t *testing.T) {
	servers, l := started(t, 5)
	setByHand(t, servers[:2], "orphan", longTTL)
	setByHand(t, servers[2:3], "other", longTTL)
	h := holderOf(t, l, key)
	if h.Held || h.Identity != "" || h.TTL != 0 {
		t.Errorf("three orphans of two owners: %+v, want no holder", h)
	}
	named := map[string]int{}
	for _, node := range h.Nodes {
		if node.Vote == redlock.Granted {
			named[node.Holder]++
		}
	}
	if named["#88f6811ab5d8"] != 2 || named["#d9298a10d1b0"] != 1 {
		t.Errorf("the masters named %v", named)
	}
	setByHand(t, servers[3:4], "orphan", longTTL) // three of five
	h = holderOf(t, l, key)
	if !h.Held || h.Identity != "#88f6811ab5d8" {
		t.Errorf("a majority: %+v", h)
	}
}

// For how long a quorum keeps the key: the least of the quorum that keeps it longest.
func TestHolderReportsHowLongAQuorumKeepsTheKey(t *testing.T) {
	servers, l := started(t, 3)
	setByHand(t, servers[:1], "me", time.Hour)
	setByHand(t, servers[1:2], "me", 30*time.Minute)
	setByHand(t, servers[2:3], "me", time.Minute)
	h := holderOf(t, l, key)
	// It may be decided before the third has answered, by two of the three.
	if !h.Held || h.TTL > 30*time.Minute || h.TTL < time.Minute-promptly {
		t.Errorf("%+v, want up to half an hour", h)
	}
	tellAll(t, servers, "persist", key)
	h = holderOf(t, l, key)
	if !h.Held || h.TTL >= 0 {
		t.Errorf("Holder of a key without an expiry: %+v, want a negative TTL", h)
	}
}

func TestHolderOfASharedKeyNamesTheLongestHold(t *testing.T) {
	_, l := started(t, 3)
	first := take(t, l, key, longTTL, redlock.Shared())
	second := take(t, l, key, 2*longTTL, redlock.Shared())
	redistest.Eventually(t, promptly, func() bool { return holderOf(t, l, key).Holds == 2 }, "both readers to be counted")
	h := holderOf(t, l, key)
	if !h.Held || h.ID != second.ID() && h.ID != "" || h.TTL > 2*longTTL+time.Millisecond || h.TTL < longTTL-promptly {
		t.Errorf("Holder of a key with two readers: %+v, want the reader that holds longest", h)
	}
	give(t, second)
	h = holderOf(t, l, key)
	if !h.Held || h.ID != first.ID() || h.Holds != 1 {
		t.Errorf("Holder of a key with one reader: %+v", h)
	}
	give(t, first)
	writer := take(t, l, key, longTTL, redlock.Reentrant("me"))
	again := take(t, l, key, longTTL, redlock.Reentrant("me"))
	redistest.Eventually(t, promptly, func() bool { return holderOf(t, l, key).Holds == 2 }, "both holds to be counted")
	h = holderOf(t, l, key)
	if !h.Held || h.ID != again.ID() || h.Identity != "#"+h.ID {
		t.Errorf("Holder of a key whose owner entered it again: %+v", h)
	}
	give(t, writer, again)
}

func TestHolderNeedsAQuorumOfAnswers(t *testing.T) {
	inMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		lock := acquire(t, l, longTTL)
		settle(time.Second)
		masters[0].SlowDown(time.Hour) // it does not answer
		began := time.Now()
		h := holderOf(t, l, key)
		if !h.Held || h.ID != lock.ID() {
			t.Errorf("with one master silent: %+v", h)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("Holder took %v: two masters that agree are enough", took)
		}
		must(t, lock.Verify(t.Context()))
		masters[1].SlowDown(time.Hour)
		_, err := l.Holder(t.Context(), key)
		onlyIs(t, err, redlock.ErrNoQuorum)
		onlyIs(t, lock.Verify(t.Context()), redlock.ErrNoQuorum)
		must(t, lock.Err()) // that they can't be asked does not end it
		masters.SlowDown(0)
		settle(time.Second)
		must(t, lock.Verify(t.Context()))
		give(t, lock)
	})
}

func TestHeldAsksTheMasters(t *testing.T) {
	servers, l := started(t, 3)
	for name, opts := range map[string][]redlock.Option{
		"plain": nil, "fenced": {redlock.Fenced()}, "shared": {redlock.Shared()}, "reentrant": {
			redlock.Reentrant("me"),
		},
		"several": {redlock.AndKeys("more")},
	} {
		lock := take(t, l, key, longTTL, opts...)
		everywhere(t, servers, lock)
		left := lock.Remaining()
		must(t, lock.Verify(t.Context()))
		if lock.Remaining() > left {
			t.Errorf("%s: asking prolonged the lock", name)
		}
		if life := servers[0].Client().PTTL(t.Context(), key).Val(); life > longTTL+2*time.Millisecond ||
			life < longTTL-promptly {
			t.Errorf("%s: asking changed the key's life to %v", name, life)
		}
		must(t, servers[0].Client().Del(t.Context(), key).Err())
		must(t, lock.Verify(t.Context())) // a quorum is left
		must(t, servers[1].Client().Del(t.Context(), key).Err())
		is(t, lock.Verify(t.Context()), redlock.ErrNotHeld)
		if n := servers[0].Client().Exists(t.Context(), key).Val(); n != 0 {
			t.Errorf("%s: asking set the key again", name)
		}
		is(t, lock.Release(t.Context()), redlock.ErrNotHeld)
		is(t, lock.Verify(t.Context()), redlock.ErrNotHeld)
		nowhere(t, servers, key)
	}
	var nothing *redlock.Lock
	is(t, nothing.Verify(t.Context()), redlock.ErrNotHeld)
}

func TestHolderRefusesBadArguments(t *testing.T) {
	masters := newFakes(3)
	l := masters.Locker(t, redlock.Options{})
	_, err := l.Holder(t.Context(), "")
	is(t, err, redlock.ErrInvalid)
	_, err = l.Holder(nil, key) //nolint:staticcheck // what it refuses
	is(t, err, redlock.ErrInvalid)
	masters.NotAsked(t)
	closeLocker(t, l)
	_, err = l.Holder(t.Context(), key)
	is(t, err, redlock.ErrClosed)
}

// Callers use Verify before they act, and many may do so at once. Each of these calls goes ahead without the others.
// The renewal goes ahead too, because otherwise it would come too late.
func TestVerifyDelaysNoOtherOperation(t *testing.T) {
	bubble(t, 5, func(t *testing.T, masters fakes) {
		lock := acquire(t, masters.Locker(t, redlock.Options{}), 2*time.Second, redlock.AutoRenew())
		masters.Behave(away(20 * time.Millisecond)) // of a request timeout of 100 ms
		end := time.Now().Add(4 * time.Second)
		var failed atomic.Int32
		concurrently(10, func(int) {
			for time.Now().Before(end) {
				if lock.Verify(t.Context()) != nil {
					failed.Add(1)
					<-time.After(time.Millisecond)
				}
			}
		})
		if n := failed.Load(); n > 0 || lock.Err() != nil {
			t.Errorf("%d times not verified; the lock: %v", n, lock.Err())
		}
		began := time.Now()
		must(t, lock.Release(t.Context()))
		if took := time.Since(began); took > 30*time.Millisecond {
			t.Errorf("released after %v", took)
		}
	})
}
