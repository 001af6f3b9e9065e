package scenarios_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
)

// Two sets of masters at a time (NewJoint): processes of neighbouring configurations. The root has failures of single
// masters.

// exchanges lists ways to exchange masters: the positions of the old and of the new masters among six.
var exchanges = map[string][2][]int{
	"one is replaced":    {{0, 1, 2}, {0, 1, 3}},
	"two are replaced":   {{0, 1, 2}, {0, 3, 4}},
	"all are replaced":   {{0, 1, 2}, {3, 4, 5}},
	"three become five":  {{0, 1, 2}, {0, 1, 2, 3, 4}},
	"five become three":  {{0, 1, 2, 3, 4}, {2, 3, 4}},
	"one becomes three":  {{0}, {1, 2, 3}},
	"an even number":     {{0, 1}, {0, 1, 2, 3}},
	"one more, replaced": {{0, 1, 2}, {1, 3, 4, 5}},
}

func these[T ~[]S, S any](all T, at []int) T {
	some := make(T, len(at))
	for i, n := range at {
		some[i] = all[n]
	}
	return some
}

// exchange is the Lockers of four processes while masters are exchanged: one with the old set, two with both, one with
// the new.
type exchange struct{ before, during, other, after *redlock.Locker }

// exchanging makes the Lockers over masters in memory. Their wall clocks are ahead by skew.
func exchanging(t *testing.T, masters memmaster.Masters, how [2][]int, skew time.Duration) exchange {
	t.Helper()
	before, after := these(masters, how[0]).All(), these(masters, how[1]).All()
	made := func(l *redlock.Locker, err error) *redlock.Locker {
		Must(t, err)
		ClosesAtLast(t, l)
		return l
	}
	opts := redlock.Options{Clock: memmaster.NewClock(skew)}
	return exchange{
		made(redlock.New(before, opts)), made(redlock.NewJoint(before, after, opts)),
		made(redlock.NewJoint(before, after, opts)), made(redlock.New(after, opts)),
	}
}

// neighbours lists pairs of processes that may run at the same time. The first process holds the lock that the second
// one waits for.
func (x exchange) neighbours() map[string][2]*redlock.Locker {
	return map[string][2]*redlock.Locker{
		"old, joint": {x.before, x.during}, "joint, old": {x.during, x.before}, "joint, joint": {x.during, x.other},
		"joint, new": {x.during, x.after}, "new, joint": {x.after, x.during},
	}
}

func TestLockersOfNeighbouringConfigurationsExcludeEachOther(t *testing.T) {
	for name, how := range exchanges {
		RunVirtual(t, name, func(t *testing.T) {
			for who, pair := range exchanging(t, memmaster.New(6), how, 0).neighbours() {
				excludes(t, who, pair)
			}
		})
	}
}

// excludes takes locks of each kind with one Locker and then with its neighbour, which sees who holds the key.
func excludes(t *testing.T, who string, pair [2]*redlock.Locker) {
	t.Helper()
	reader, writer := redlock.Shared(), redlock.Exclusive()
	for kind, c := range map[string]struct {
		holds, wants redlock.Option
		together     bool
	}{
		"plain":           {redlock.AutoRenew(), redlock.AutoRenew(), false},
		"fenced":          {redlock.Fenced(), redlock.Fenced(), false},
		"reader first":    {reader, writer, false},
		"writer first":    {writer, reader, false},
		"readers":         {reader, reader, true},
		"reentrant":       {redlock.Reentrant("one"), redlock.Reentrant("another"), false},
		"reentrant alike": {redlock.Reentrant("one"), redlock.Reentrant("one"), true},
		"several keys":    {redlock.AndKeys("second"), redlock.AndKeys("third"), false},
	} {
		lock := Acquire(t, pair[0], LongTTL, c.holds)
		h, err := pair[1].Holder(t.Context(), Key)
		if err != nil || !h.Held || h.ID != lock.ID() || h.Holds != 1 || h.TTL < LongTTL/2 {
			t.Errorf("%s, %s: Holder returned %+v, %v; held by %s", who, kind, h, err, lock.ID())
		}
		next, err := pair[1].TryAcquire(t.Context(), Key, LongTTL, c.wants)
		if !c.together {
			if OnlyIs(t, err, redlock.ErrHeld); err == nil {
				t.Errorf("%s, %s: two holders", who, kind)
			}
			Must(t, lock.Release(t.Context()))
			Must(t, Acquire(t, pair[1], LongTTL, c.wants).Release(t.Context()))
			Settle(time.Second)
			continue
		}
		Must(t, err)
		Must(t, lock.Release(t.Context()))
		Must(t, next.Verify(t.Context()))
		Must(t, next.Release(t.Context()))
		Settle(time.Second)
	}
}

// The danger is real: processes with the old and with the new set alone do not exclude each other.
func TestOldAndNewMastersAtOnceHaveTwoHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := exchanging(t, memmaster.New(6), exchanges["all are replaced"], 0)
		first, second := Acquire(t, x.before, LongTTL), Acquire(t, x.after, LongTTL)
		Must(t, first.Release(t.Context()))
		Must(t, second.Release(t.Context()))
	})
}

func TestTokensRiseFromOldOverJointToNew(t *testing.T) {
	for name, how := range exchanges {
		synctest.Test(t, func(t *testing.T) {
			masters := memmaster.New(6)
			fast := exchanging(t, masters, how, time.Hour)
			// which have seen none of the tokens, and propose smaller ones
			x := exchanging(t, masters, how, 0)
			last := uint64(0)
			for i, l := range []*redlock.Locker{
				fast.before, x.before, x.during, x.during, x.before, x.during, x.after, x.during, x.after,
			} {
				lock := Acquire(t, l, LongTTL, redlock.Fenced())
				if lock.Token() <= last {
					t.Errorf("%s: token %d after %d at step %d", name, lock.Token(), last, i)
				}
				last = lock.Token()
				Must(t, lock.Release(t.Context()))
			}
		})
	}
}

// On real servers. A waiter that asks every minute depends on a notification, no matter which masters the release has
// reached.
func TestAWaiterIsWokenByTheReleaseOfANeighbour(t *testing.T) {
	servers := redistest.StartN(t, 6)
	for _, name := range []string{"one is replaced", "all are replaced", "three become five"} {
		before, after := these(servers, exchanges[name][0]), these(servers, exchanges[name][1])
		none := redlock.Options{}
		x := exchange{
			Dial(t, before, none), DialJoint(t, before, after, none), DialJoint(t, before, after, none),
			Dial(t, after, none),
		}
		for who, pair := range x.neighbours() {
			k := name + who
			lock := Take(t, pair[0], k, LongTTL)
			w := Wait(t, t.Context(), pair[1], k, LongTTL, redlock.RetryEvery(LongTTL))
			redistest.Eventually(t, Promptly, func() bool {
				queued := 0
				for _, s := range servers {
					queued += Queued(t, s, k)
				}
				return queued >= 2
			}, "the waiter to have queued up")
			released := time.Now()
			Give(t, lock)
			Give(t, w.Get(t))
			if took := w.At.Sub(released); took > Promptly {
				t.Errorf("%s: the lock came %v after its release", k, took)
			}
		}
	}
}
