package redlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/sharded"
)

func TestShardedAnnouncesToEveryGroup(t *testing.T) {
	bubble(t, 6, func(t *testing.T, masters fakes) {
		a, b := masters[:3], masters[3:]
		opts := generation(2)
		opts.Clock = newClock()
		s := shard(t, []sharded.Group{
			{Name: "a", Masters: a.masters(), Options: opts}, {Name: "b", Masters: b.masters(), Options: opts},
		}, transition)
		must(t, s.Announce(t.Context(), 3))
		settle(0)
		for _, m := range masters {
			if m.known != 3 {
				t.Errorf("%s knows generation %d", m.name, m.known)
			}
		}
		is(t, s.Announce(t.Context(), 4), redlock.ErrInvalid)

		b[1:].behave(refuseAll)
		err := s.Announce(t.Context(), 3)
		if onlyIs(t, err, redlock.ErrNoQuorum); err == nil || !strings.Contains(err.Error(), `group "b"`) ||
			strings.Contains(err.Error(), `group "a"`) {
			t.Errorf("error %v", err)
		}
		b.behave(nil)
		settle(time.Second)
		forgotten := a.locker(t, generation(1))
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
			opts := generation(n)
			opts.Clock = newClock()
			return sharded.Group{Name: name, Masters: m.masters(), Options: opts}
		}
		s, err := sharded.New([]sharded.Group{group("a", masters[:1], 1), group("b", masters[1:], 3)},
			sharded.Options{})
		must(t, err)
		err = s.Announce(t.Context(), 4)
		if is(t, err, redlock.ErrInvalid); !strings.Contains(err.Error(), `group "a"`) || masters[1].known != 0 {
			t.Errorf("group b received generation %d: %v", masters[1].known, err)
		}
		must(t, s.Close(t.Context()))
	})
}
