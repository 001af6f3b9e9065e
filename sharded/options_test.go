package sharded_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/sharded"
	"github.com/seed-624411e5/redlock/single"
)

// The masters of two groups lock a key that moves, and each group has made promises. The lock keeps the weakest of
// these promises, whichever group makes it.
func TestALockInTwoGroupsPromisesOnlyWhatBothGroupsPromise(t *testing.T) {
	lax := redlock.Options{DriftFactor: 0.01, RequestTimeout: 50 * time.Millisecond, RestartGuard: time.Hour}
	strict := redlock.Options{DriftFactor: 0.2, RequestTimeout: 300 * time.Millisecond, RestartGuard: 2 * longTTL}
	for name, groups := range map[string][2]redlock.Options{"old": {strict, lax}, "new": {lax, strict}} {
		runVirtual(t, name, func(t *testing.T) {
			masters := newFakes(6)
			c := newClock()
			group := func(name string, opts redlock.Options, of fakes) sharded.Group {
				opts.Clock = c
				g := sharded.Group{Name: name, Options: opts}
				for _, m := range of {
					g.Masters = append(g.Masters, guarded{Fake: m, Guard: opts.RestartGuard})
				}
				return g
			}
			s, err := sharded.New([]sharded.Group{
				group("a", groups[0], masters[:3]), group("b", groups[1], masters[3:]),
			}, transition)
			must(t, err)
			t.Cleanup(func() { must(t, s.Close(context.Background())) })
			k := keyIn(t, s, "b")
			lock, err := s.TryAcquire(t.Context(), k, longTTL)
			must(t, err)
			if most := longTTL * 8 / 10; lock.Remaining() > most {
				t.Errorf("valid for %v, want at most %v because of the clocks of one group", lock.Remaining(), most)
			}
			must(t, lock.Release(t.Context()))
			settle(time.Second)
			masters.Behave(on(single.Acquire, act{After: 200 * time.Millisecond}))
			lock, err = s.TryAcquire(t.Context(), k, longTTL)
			must(t, err)
			must(t, lock.Release(t.Context()))
			_, err = s.TryAcquire(t.Context(), k, 3*longTTL)
			is(t, err, redlock.ErrInvalid)
		})
	}
}

// The masters of a group that are given by their URLs do not vote for as long after a start as its options say.
func TestMastersOfAGroupAreOpenedWithItsRestartGuard(t *testing.T) {
	servers := redistest.StartN(t, 1) // a moment ago
	s := shard(t, []sharded.Group{{Name: "a", URLs: urls(servers), Options: redlock.Options{RestartGuard: longTTL}}},
		sharded.Options{})
	_, err := s.TryAcquire(within(t, promptly), key, longTTL)
	if is(t, err, redlock.ErrNoQuorum); err == nil {
		return
	}
	q, _ := errors.AsType[*redlock.QuorumError](err)
	if g, ok := errors.AsType[*single.GuardError](q.Nodes[0].Err); !ok || g.Guard != longTTL {
		t.Errorf("%v, want that its guard keeps the master from voting for %v", err, longTTL)
	}
	// The control: without one it votes.
	unguarded := shard(t, []sharded.Group{{Name: "a", URLs: urls(servers)}}, sharded.Options{})
	must(t, takeIn(t, unguarded, key).Release(t.Context()))
}

func TestShardedAnnouncesToEveryGroup(t *testing.T) {
	bubble(t, 6, func(t *testing.T, masters fakes) {
		a, b := masters[:3], masters[3:]
		opts := redlock.Options{Generation: 2, Clock: newClock()}
		s := shard(t, []sharded.Group{
			{Name: "a", Masters: a.Masters(), Options: opts}, {Name: "b", Masters: b.Masters(), Options: opts},
		}, transition)
		must(t, s.Announce(t.Context(), 3))
		settle(0)
		for _, m := range masters {
			if m.Known != 3 {
				t.Errorf("%s knows generation %d", m.Name(), m.Known)
			}
		}
		is(t, s.Announce(t.Context(), 4), redlock.ErrInvalid)

		b[1:].Behave(refuseAll)
		err := s.Announce(t.Context(), 3)
		if onlyIs(t, err, redlock.ErrNoQuorum); err == nil || !strings.Contains(err.Error(), `group "b"`) ||
			strings.Contains(err.Error(), `group "a"`) {
			t.Errorf("error %v", err)
		}
		b.Behave(nil)
		settle(time.Second)
		forgotten := a.Locker(t, redlock.Options{Generation: 1})
		_, err = forgotten.TryAcquire(t.Context(), key, longTTL)
		onlyIs(t, err, redlock.ErrOutdated)

		must(t, s.Close(context.Background()))
		is(t, s.Announce(t.Context(), 3), redlock.ErrClosed)
		var none *sharded.Locker
		is(t, none.Announce(t.Context(), 3), redlock.ErrInvalid)
	})
}

func TestAnAnnouncementThatOneGroupRefusesIsSentToNone(t *testing.T) {
	bubble(t, 2, func(t *testing.T, masters fakes) {
		group := func(name string, m fakes, n uint64) sharded.Group {
			opts := redlock.Options{Generation: n, Clock: newClock()}
			return sharded.Group{Name: name, Masters: m.Masters(), Options: opts}
		}
		s, err := sharded.New([]sharded.Group{group("a", masters[:1], 1), group("b", masters[1:], 3)},
			sharded.Options{})
		must(t, err)
		err = s.Announce(t.Context(), 4)
		if is(t, err, redlock.ErrInvalid); !strings.Contains(err.Error(), `group "a"`) || masters[1].Known != 0 {
			t.Errorf("group b received generation %d: %v", masters[1].Known, err)
		}
		must(t, s.Close(t.Context()))
	})
}
