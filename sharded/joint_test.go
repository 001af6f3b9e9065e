package sharded_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/sharded"
)

// transition adds group b to group a.
var transition = sharded.Options{Before: []string{"a"}, After: []string{"a", "b"}}

// oldTransitionNew are three processes: one of before b was added, one of the transition, one of after.
func (f fleet) oldTransitionNew(tb testing.TB, opts redlock.Options) (before, during, after *sharded.Locker) {
	tb.Helper()
	return f.process(tb, opts, sharded.Options{}, "a"), f.process(tb, opts, transition, "a", "b"),
		f.process(tb, opts, sharded.Options{}, "a", "b")
}

// The danger is real: without a transition two processes lock the key that moves.
func TestWithoutATransitionAKeyThatMovesHasTwoHolders(t *testing.T) {
	f := startFleet(t, 3, "a", "b")
	before, _, after := f.oldTransitionNew(t, redlock.Options{})
	k := keyIn(t, after, "b")
	first, second := takeIn(t, before, k), takeIn(t, after, k)
	if first.Err() != nil || second.Err() != nil {
		t.Errorf("one of the two locks is over: %v, %v", first.Err(), second.Err())
	}
	Must(t, first.Release(t.Context()))
	Must(t, second.Release(t.Context()))
}

func TestProcessesOfATransitionAgreeWithThoseBeforeAndAfter(t *testing.T) {
	f := startFleet(t, 3, "a", "b")
	before, during, after := f.oldTransitionNew(t, redlock.Options{})
	other := f.process(t, redlock.Options{}, transition, "a", "b")
	for _, c := range []struct {
		name         string
		holds, wants *sharded.Locker
		inA, inB     bool
	}{
		{"before, during", before, during, true, false},
		{"during, before", during, before, true, true},
		{"during, during", during, other, true, true},
		{"during, after", during, after, true, true},
		{"after, during", after, during, false, true},
	} {
		k := keyIn(t, after, "b")
		lock := takeIn(t, c.holds, k)
		// By then a majority has it; one master more may have been too late.
		if inA, inB := f.left(t, "a", k), f.left(t, "b", k); inA >= 2 != c.inA || inB >= 2 != c.inB || !c.inA &&
			inA > 0 || !c.inB && inB > 0 {
			t.Errorf("%s: %d masters of a and %d of b have the key", c.name, inA, inB)
		}
		_, err := tryIn(t, c.wants, k)
		Is(t, err, redlock.ErrHeld)
		if h, err := c.wants.Holder(t.Context(), k); err != nil || !h.Held || h.ID != lock.ID() {
			t.Errorf("%s: Holder returned %+v, %v", c.name, h, err)
		}
		Must(t, lock.Release(t.Context()))
		gone := func() bool { return f.left(t, "a", k)+f.left(t, "b", k) == 0 }
		redistest.Eventually(t, Promptly, gone, c.name+": nothing of the lock and of the refused attempt to be left")
		Must(t, takeIn(t, c.wants, k).Release(t.Context()))
		redistest.Eventually(t, Promptly, gone, c.name+": nothing of the next lock to be left")
	}
}

func TestAKeyThatStaysIsOneLockForAll(t *testing.T) {
	f := startFleet(t, 3, "a", "b")
	before, during, after := f.oldTransitionNew(t, redlock.Options{})
	k := keyIn(t, after, "a")
	all := []*sharded.Locker{before, during, after}
	for _, holds := range all {
		lock := takeIn(t, holds, k)
		for _, wants := range all {
			_, err := tryIn(t, wants, k)
			Is(t, err, redlock.ErrHeld)
		}
		if n := f.left(t, "b", k); n != 0 {
			t.Errorf("%d masters of the other group have the key", n)
		}
		Must(t, lock.Release(t.Context()))
	}
}

// excludes fails the test unless a lock of one process keeps another process out until its release.
func excludes(t *testing.T, holds, wants *sharded.Locker, k string) {
	t.Helper()
	lock := takeIn(t, holds, k)
	_, err := tryIn(t, wants, k)
	Is(t, err, redlock.ErrHeld)
	Must(t, lock.Release(t.Context()))
	Must(t, takeIn(t, wants, k).Release(t.Context()))
}

func TestAGroupIsRemovedTheSameWay(t *testing.T) {
	f := startFleet(t, 1, "a", "b")
	leaving := sharded.Options{Before: []string{"a", "b"}, After: []string{"a"}}
	before := f.process(t, redlock.Options{}, sharded.Options{}, "a", "b")
	during := f.process(t, redlock.Options{}, leaving, "a", "b")
	after := f.process(t, redlock.Options{}, sharded.Options{}, "a")
	k := keyIn(t, before, "b")
	for _, pair := range [][2]*sharded.Locker{{before, during}, {during, before}, {during, after}, {after, during}} {
		excludes(t, pair[0], pair[1], k)
		redistest.Eventually(t, Promptly, func() bool { return f.left(t, "a", k)+f.left(t, "b", k) == 0 },
			"the key to be gone")
	}
}

func TestALockInTwoGroupsIsExtendedInBothAndLostWithEither(t *testing.T) {
	f := startFleet(t, 3, "a", "b")
	_, during, after := f.oldTransitionNew(t, redlock.Options{})
	k := keyIn(t, after, "b")
	lock, err := during.Acquire(Within(t, Promptly), k, 5*time.Second)
	Must(t, err)
	Must(t, lock.Extend(Within(t, Promptly), LongTTL))
	for _, group := range []string{"a", "b"} {
		redistest.Eventually(t, Promptly, func() bool {
			n := 0
			for _, s := range f[group] {
				if left := s.Client().PTTL(t.Context(), k).Val(); left > LongTTL/2 {
					n++
				}
			}
			return n == 3
		}, "group "+group+" to keep the key for longer")
	}
	TellAll(t, f["b"][:2], "del", k)
	Is(t, lock.Extend(Within(t, Promptly), LongTTL), redlock.ErrNotHeld)
	Is(t, lock.Err(), redlock.ErrNotHeld)
	redistest.Eventually(t, Promptly, func() bool { return f.left(t, "a", k)+f.left(t, "b", k) == 0 },
		"the rest of the lost lock to be gone")
}

func TestATransitionNeedsAMajorityOfEachGroup(t *testing.T) {
	f := startFleet(t, 3, "a", "b")
	_, during, after := f.oldTransitionNew(t, redlock.Options{})
	k := keyIn(t, after, "b")
	Must(t, f["a"][0].Kill())
	Must(t, f["b"][1].Kill()) // whichever one of each group
	Must(t, takeIn(t, during, k).Release(t.Context()))
	Must(t, f["b"][2].Kill())
	_, err := tryIn(t, during, k)
	Is(t, err, redlock.ErrNoQuorum)
	if q, ok := errors.AsType[*redlock.QuorumError](err); !ok || q.Set != "new" || q.N != 3 {
		t.Errorf("the error does not tell in which group: %v", err)
	}
	Must(t, f["b"][2].Restart())
	Must(t, takeIn(t, during, k).Release(t.Context()))
}

// unequal makes three masters in group a and five in group b. The last master of a is in both groups.
func unequal(tb testing.TB) fleet {
	tb.Helper()
	servers := redistest.StartN(tb, 7)
	return fleet{"a": servers[:3], "b": servers[2:]}
}

func TestGroupsBetweenWhichKeysMoveMayDifferInSizeAndShareMasters(t *testing.T) {
	t.Parallel()
	f := unequal(t)
	for name, c := range map[string]struct {
		during            sharded.Options
		oldGroup, another string
	}{
		"three become five": {sharded.Options{Before: []string{"a"}, After: []string{"b"}}, "a", "b"},
		"five become three": {sharded.Options{Before: []string{"b"}, After: []string{"a"}}, "b", "a"},
	} {
		before := f.process(t, redlock.Options{}, sharded.Options{}, c.oldGroup)
		during := f.process(t, redlock.Options{}, c.during, "a", "b")
		after := f.process(t, redlock.Options{}, sharded.Options{}, c.another)
		for i, pair := range [][2]*sharded.Locker{
			{before, during}, {during, before}, {during, after}, {after, during},
		} {
			excludes(t, pair[0], pair[1], fmt.Sprint(name, i))
		}
		if got := during.GroupOf("orders:1"); got != c.another {
			t.Errorf("%s: the key goes to %q", name, got)
		}
		report, err := during.Check(t.Context())
		Must(t, err)
		if len(report.Masters) != 7 || strings.Contains(report.String(), "the same server") {
			t.Errorf("%s: %d masters were looked at, one of them in both groups:\n%v", name, len(report.Masters),
				report)
		}
	}
}

// tokenOf acquires and releases a fenced lock as a new process, which has seen no token before.
func tokenOf(t *testing.T, s *sharded.Locker, k string) uint64 {
	t.Helper()
	lock := takeIn(t, s, k, redlock.Fenced())
	Must(t, lock.Release(t.Context()))
	return lock.Token()
}

func TestTokensStayInOrderWhenAKeyMovesDuringATransition(t *testing.T) {
	f := startFleet(t, 3, "a", "b")
	fast := redlock.Options{Clock: HourAhead()}
	early, _, _ := f.oldTransitionNew(t, fast)
	_, during, after := f.oldTransitionNew(t, redlock.Options{})
	k := keyIn(t, after, "b")
	first := tokenOf(t, early, k)
	if stray := tokenOf(t, after, keyIn(t, after, "b")+"{"); stray >= first {
		t.Fatalf("the clock that is ahead shows in no token: %d and %d", first, stray)
	}
	second := tokenOf(t, during, k)
	third := tokenOf(t, after, k)
	if first >= second || second >= third {
		t.Errorf("the tokens before, during and after the transition are %d, %d, %d", first, second, third)
	}
}

func TestATokenIsNotGivenOutBeforeBothGroupsHaveIt(t *testing.T) {
	f := startFleet(t, 3, "a", "b")
	fast := redlock.Options{Clock: HourAhead()}
	early, _, _ := f.oldTransitionNew(t, fast)
	_, during, after := f.oldTransitionNew(t, redlock.Options{})
	k := keyIn(t, after, "b")
	tokenOf(t, early, k)
	lock := takeIn(t, during, k, redlock.Fenced())
	for _, group := range []string{"a", "b"} {
		n := 0
		for _, s := range f[group] {
			counter, err := s.Client().ZScore(t.Context(), "redlock:token:{"+k+"}", "redlock:token").Result()
			if err == nil && uint64(counter) >= lock.Token() {
				n++
			}
		}
		if n < 2 {
			t.Errorf("%d masters of group %s have reached the token %d", n, group, lock.Token())
		}
	}
	Must(t, lock.Release(t.Context()))
}

func TestWaitersOfATransitionAreNotifiedByItsNeighbours(t *testing.T) {
	f := startFleet(t, 3, "a", "b")
	before, during, after := f.oldTransitionNew(t, redlock.Options{})
	k := keyIn(t, after, "b")
	for _, pair := range [][2]*sharded.Locker{{before, during}, {during, before}, {after, during}, {during, after}} {
		lock := takeIn(t, pair[0], k)
		got := make(chan error, 1)
		go func() {
			next, err := pair[1].Acquire(Within(t, Promptly), k, LongTTL)
			if err == nil {
				err = next.Release(context.WithoutCancel(t.Context()))
			}
			got <- err
		}()
		queue := "redlock:queue:{" + k + "}"
		redistest.Eventually(t, Promptly, func() bool {
			return f.left(t, "a", queue)+f.left(t, "b", queue) > 0
		}, "the waiter to have queued up")
		Must(t, lock.Release(t.Context()))
		Must(t, <-got)
	}
}

func TestARolledOutTransitionHasOneHolderAtATime(t *testing.T) {
	f := startFleet(t, 3, "a", "b")
	before, during, after := f.oldTransitionNew(t, redlock.Options{})
	keys := []string{keyIn(t, after, "a"), keyIn(t, after, "b")}
	var inside [2]atomic.Int32
	var cycles, overlaps atomic.Int64
	work := func(ctx context.Context, s *sharded.Locker) {
		for i := 0; ctx.Err() == nil; i++ {
			lock, err := s.Acquire(ctx, keys[i%2], LongTTL)
			if err != nil {
				continue
			}
			if inside[i%2].Add(1) > 1 {
				overlaps.Add(1)
			}
			cycles.Add(1)
			inside[i%2].Add(-1)
			_ = lock.Release(context.WithoutCancel(ctx)) // what it did is checked by the next one
		}
	}
	for _, phase := range [][]*sharded.Locker{{before, during}, {during}, {during, after}} {
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		var workers sync.WaitGroup
		for _, s := range phase {
			for range 3 {
				workers.Go(func() { work(ctx, s) })
			}
		}
		workers.Wait()
		cancel()
	}
	if overlaps.Load() > 0 || cycles.Load() < 30 {
		t.Errorf("%d overlaps in %d holds", overlaps.Load(), cycles.Load())
	}
}
