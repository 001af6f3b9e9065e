package sharded_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/sharded"
	"github.com/seed-624411e5/redlock/single"
)

// The masters of two groups lock a key that moves, and each group has made promises. The lock keeps the weakest of
// these promises, whichever group makes it.
func TestALockInTwoGroupsPromisesOnlyWhatBothGroupsPromise(t *testing.T) {
	lax := redlock.Options{DriftFactor: 0.01, RequestTimeout: 50 * time.Millisecond, RestartGuard: time.Hour}
	strict := redlock.Options{DriftFactor: 0.2, RequestTimeout: 300 * time.Millisecond, RestartGuard: 2 * LongTTL}
	for name, groups := range map[string][2]redlock.Options{"old": {strict, lax}, "new": {lax, strict}} {
		RunVirtual(t, name, func(t *testing.T) {
			masters := NewFakes(6)
			c := NewClock()
			group := func(name string, opts redlock.Options, of Fakes) sharded.Group {
				opts.Clock = c
				g := sharded.Group{Name: name, Options: opts}
				for _, m := range of {
					g.Masters = append(g.Masters, Guarded{Fake: m, Guard: opts.RestartGuard})
				}
				return g
			}
			s, err := sharded.New([]sharded.Group{
				group("a", groups[0], masters[:3]), group("b", groups[1], masters[3:]),
			}, transition)
			Must(t, err)
			t.Cleanup(func() { Must(t, s.Close(context.Background())) })
			k := keyIn(t, s, "b")
			lock, err := s.TryAcquire(t.Context(), k, LongTTL)
			Must(t, err)
			if most := LongTTL * 8 / 10; lock.Remaining() > most {
				t.Errorf("valid for %v, want at most %v because of the clocks of one group", lock.Remaining(), most)
			}
			Must(t, lock.Release(t.Context()))
			Settle(time.Second)
			masters.Behave(On(single.Acquire, Act{After: 200 * time.Millisecond}))
			lock, err = s.TryAcquire(t.Context(), k, LongTTL)
			Must(t, err)
			Must(t, lock.Release(t.Context()))
			_, err = s.TryAcquire(t.Context(), k, 3*LongTTL)
			Is(t, err, redlock.ErrInvalid)
		})
	}
}

// The masters of a group that are given by their URLs do not vote for as long after a start as its options say.
func TestMastersOfAGroupAreOpenedWithItsRestartGuard(t *testing.T) {
	servers := redistest.StartN(t, 1) // a moment ago
	s := shard(t, []sharded.Group{{Name: "a", URLs: URLs(servers), Options: redlock.Options{RestartGuard: LongTTL}}},
		sharded.Options{})
	_, err := s.TryAcquire(Within(t, Promptly), Key, LongTTL)
	if Is(t, err, redlock.ErrNoQuorum); err == nil {
		return
	}
	q, _ := errors.AsType[*redlock.QuorumError](err)
	if g, ok := errors.AsType[*single.GuardError](q.Nodes[0].Err); !ok || g.Guard != LongTTL {
		t.Errorf("%v, want that its guard keeps the master from voting for %v", err, LongTTL)
	}
	// The control: without one it votes.
	unguarded := shard(t, []sharded.Group{{Name: "a", URLs: URLs(servers)}}, sharded.Options{})
	Must(t, takeIn(t, unguarded, Key).Release(t.Context()))
}

func TestShardedAnnouncesToEveryGroup(t *testing.T) {
	Bubble(t, 6, func(t *testing.T, masters Fakes) {
		a, b := masters[:3], masters[3:]
		opts := redlock.Options{Generation: 2, Clock: NewClock()}
		s := shard(t, []sharded.Group{
			{Name: "a", Masters: a.Masters(), Options: opts}, {Name: "b", Masters: b.Masters(), Options: opts},
		}, transition)
		Must(t, s.Announce(t.Context(), 3))
		Settle(0)
		for _, m := range masters {
			if m.Known != 3 {
				t.Errorf("%s knows generation %d", m.Name(), m.Known)
			}
		}
		Is(t, s.Announce(t.Context(), 4), redlock.ErrInvalid)

		b[1:].Behave(RefuseAll)
		err := s.Announce(t.Context(), 3)
		if OnlyIs(t, err, redlock.ErrNoQuorum); err == nil || !strings.Contains(err.Error(), `group "b"`) ||
			strings.Contains(err.Error(), `group "a"`) {
			t.Errorf("error %v", err)
		}
		b.Behave(nil)
		Settle(time.Second)
		forgotten := a.Locker(t, redlock.Options{Generation: 1})
		_, err = forgotten.TryAcquire(t.Context(), Key, LongTTL)
		OnlyIs(t, err, redlock.ErrOutdated)

		Must(t, s.Close(context.Background()))
		Is(t, s.Announce(t.Context(), 3), redlock.ErrClosed)
		var none *sharded.Locker
		Is(t, none.Announce(t.Context(), 3), redlock.ErrInvalid)
	})
}

func TestAnAnnouncementThatOneGroupRefusesIsSentToNone(t *testing.T) {
	Bubble(t, 2, func(t *testing.T, masters Fakes) {
		group := func(name string, m Fakes, n uint64) sharded.Group {
			opts := redlock.Options{Generation: n, Clock: NewClock()}
			return sharded.Group{Name: name, Masters: m.Masters(), Options: opts}
		}
		s, err := sharded.New([]sharded.Group{group("a", masters[:1], 1), group("b", masters[1:], 3)},
			sharded.Options{})
		Must(t, err)
		err = s.Announce(t.Context(), 4)
		if Is(t, err, redlock.ErrInvalid); !strings.Contains(err.Error(), `group "a"`) || masters[1].Known != 0 {
			t.Errorf("group b received generation %d: %v", masters[1].Known, err)
		}
		Must(t, s.Close(t.Context()))
	})
}
