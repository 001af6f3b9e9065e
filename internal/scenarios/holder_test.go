package scenarios_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
)

// SOURCES S3: ask whether a given owner holds the lock.
func TestS3HolderSaysWhoHoldsAKey(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	h := HolderOf(t, b, Key)
	if h.Held || h.Identity != "" || h.Holds != 0 || h.TTL != 0 || len(h.Nodes) != 3 {
		t.Errorf("Holder of a free key: %+v", h)
	}
	lock := Take(t, a, Key, LongTTL)
	h = HolderOf(t, b, Key)
	if !h.Held || h.ID != lock.ID() || h.Holds != 1 || h.TTL <= LongTTL-Promptly || h.TTL > LongTTL {
		t.Errorf("Holder of a held key: %+v, want %s for a minute", h, lock.ID())
	}
	Give(t, lock)
	h = HolderOf(t, b, Key)
	if h.Held {
		t.Errorf("Holder of a released key: %+v", h)
	}
}

// Keys on a minority of masters belong to no lock; the report lists the masters that have the keys.
func TestHolderNamesNoOwnerOfOrphansOnAMinority(t *testing.T) {
	servers, l := Started(t, 5)
	SetByHand(t, servers[:2], "orphan", LongTTL)
	SetByHand(t, servers[2:3], "other", LongTTL)
	h := HolderOf(t, l, Key)
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
	SetByHand(t, servers[3:4], "orphan", LongTTL) // three of five
	h = HolderOf(t, l, Key)
	if !h.Held || h.Identity != "#88f6811ab5d8" {
		t.Errorf("a majority: %+v", h)
	}
}

// For how long a quorum keeps the key: the least of the quorum that keeps it longest.
func TestHolderReportsHowLongAQuorumKeepsTheKey(t *testing.T) {
	servers, l := Started(t, 3)
	SetByHand(t, servers[:1], "me", time.Hour)
	SetByHand(t, servers[1:2], "me", 30*time.Minute)
	SetByHand(t, servers[2:3], "me", time.Minute)
	h := HolderOf(t, l, Key)
	// It may be decided before the third has answered, by two of the three.
	if !h.Held || h.TTL > 30*time.Minute || h.TTL < time.Minute-Promptly {
		t.Errorf("%+v, want up to half an hour", h)
	}
	TellAll(t, servers, "persist", Key)
	h = HolderOf(t, l, Key)
	if !h.Held || h.TTL >= 0 {
		t.Errorf("Holder of a key without an expiry: %+v, want a negative TTL", h)
	}
}

func TestHolderOfASharedKeyNamesTheLongestHold(t *testing.T) {
	_, l := Started(t, 3)
	first := Take(t, l, Key, LongTTL, redlock.Shared())
	second := Take(t, l, Key, 2*LongTTL, redlock.Shared())
	redistest.Eventually(t, Promptly, func() bool { return HolderOf(t, l, Key).Holds == 2 },
		"both readers to be counted")
	h := HolderOf(t, l, Key)
	if !h.Held || h.ID != second.ID() && h.ID != "" || h.TTL > 2*LongTTL+time.Millisecond || h.TTL < LongTTL-Promptly {
		t.Errorf("Holder of a key with two readers: %+v, want the reader that holds longest", h)
	}
	Give(t, second)
	h = HolderOf(t, l, Key)
	if !h.Held || h.ID != first.ID() || h.Holds != 1 {
		t.Errorf("Holder of a key with one reader: %+v", h)
	}
	Give(t, first)
	writer := Take(t, l, Key, LongTTL, redlock.Reentrant("me"))
	again := Take(t, l, Key, LongTTL, redlock.Reentrant("me"))
	redistest.Eventually(t, Promptly, func() bool { return HolderOf(t, l, Key).Holds == 2 }, "both holds to be counted")
	h = HolderOf(t, l, Key)
	if !h.Held || h.ID != again.ID() || h.Identity != "#"+h.ID {
		t.Errorf("Holder of a key whose owner entered it again: %+v", h)
	}
	Give(t, writer, again)
}

func TestHolderNeedsAQuorumOfAnswers(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		lock := Acquire(t, l, LongTTL)
		Settle(time.Second)
		masters[0].SlowDown(time.Hour) // it does not answer
		began := time.Now()
		h := HolderOf(t, l, Key)
		if !h.Held || h.ID != lock.ID() {
			t.Errorf("with one master silent: %+v", h)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("Holder took %v: two masters that agree are enough", took)
		}
		Must(t, lock.Verify(t.Context()))
		masters[1].SlowDown(time.Hour)
		_, err := l.Holder(t.Context(), Key)
		OnlyIs(t, err, redlock.ErrNoQuorum)
		OnlyIs(t, lock.Verify(t.Context()), redlock.ErrNoQuorum)
		Must(t, lock.Err()) // that they can't be asked does not end it
		masters.SlowDown(0)
		Settle(time.Second)
		Must(t, lock.Verify(t.Context()))
		Give(t, lock)
	})
}

func TestHeldAsksTheMasters(t *testing.T) {
	servers, l := Started(t, 3)
	for name, opts := range map[string][]redlock.Option{
		"plain": nil, "fenced": {redlock.Fenced()}, "shared": {redlock.Shared()}, "reentrant": {
			redlock.Reentrant("me"),
		},
		"several": {redlock.AndKeys("more")},
	} {
		lock := Take(t, l, Key, LongTTL, opts...)
		Everywhere(t, servers, lock)
		left := lock.Remaining()
		Must(t, lock.Verify(t.Context()))
		if lock.Remaining() > left {
			t.Errorf("%s: asking prolonged the lock", name)
		}
		if life := servers[0].Client().PTTL(t.Context(), Key).Val(); life > LongTTL+2*time.Millisecond ||
			life < LongTTL-Promptly {
			t.Errorf("%s: asking changed the key's life to %v", name, life)
		}
		Must(t, servers[0].Client().Del(t.Context(), Key).Err())
		Must(t, lock.Verify(t.Context())) // a quorum is left
		Must(t, servers[1].Client().Del(t.Context(), Key).Err())
		Is(t, lock.Verify(t.Context()), redlock.ErrNotHeld)
		if n := servers[0].Client().Exists(t.Context(), Key).Val(); n != 0 {
			t.Errorf("%s: asking set the key again", name)
		}
		Is(t, lock.Release(t.Context()), redlock.ErrNotHeld)
		Is(t, lock.Verify(t.Context()), redlock.ErrNotHeld)
		Nowhere(t, servers, Key)
	}
	var nothing *redlock.Lock
	Is(t, nothing.Verify(t.Context()), redlock.ErrNotHeld)
}

func TestHolderRefusesBadArguments(t *testing.T) {
	masters := NewFakes(3)
	l := masters.Locker(t, redlock.Options{})
	_, err := l.Holder(t.Context(), "")
	Is(t, err, redlock.ErrInvalid)
	_, err = l.Holder(nil, Key) //nolint:staticcheck // what it refuses
	Is(t, err, redlock.ErrInvalid)
	masters.NotAsked(t)
	CloseLocker(t, l)
	_, err = l.Holder(t.Context(), Key)
	Is(t, err, redlock.ErrClosed)
}

// Callers use Verify before they act, and many may do so at once. Each of these calls goes ahead without the others.
// The renewal goes ahead too, because otherwise it would come too late.
func TestVerifyDelaysNoOtherOperation(t *testing.T) {
	Bubble(t, 5, func(t *testing.T, masters Fakes) {
		lock := Acquire(t, masters.Locker(t, redlock.Options{}), 2*time.Second, redlock.AutoRenew())
		masters.Behave(Away(20 * time.Millisecond)) // of a request timeout of 100 ms
		end := time.Now().Add(4 * time.Second)
		var failed atomic.Int32
		Concurrently(10, func(int) {
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
		Must(t, lock.Release(t.Context()))
		if took := time.Since(began); took > 30*time.Millisecond {
			t.Errorf("released after %v", took)
		}
	})
}
