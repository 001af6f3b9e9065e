package semaphore_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/semaphore"
	"github.com/seed-624411e5/redlock/sharded"
)

func TestHazard103AllPermitsAreGrantedToRivals(t *testing.T) {
	memmaster.Lockstep(t, 2, func(t *testing.T, l *redlock.Locker) func() error {
		two := permits(t, l, 2)
		return func() error {
			p, err := two.TryAcquire(t.Context(), 10*time.Second)
			if err != nil {
				return err
			}
			<-time.After(5 * time.Second)
			return p.Release(t.Context())
		}
	})
}

// contested is a Locker with held even slots and contended odd slots.
type contested struct{ semaphore.Locker }

func (contested) TryAcquire(_ context.Context, key string, _ time.Duration, _ ...redlock.Option) (*redlock.Lock,
	error,
) {
	if (key[len(key)-1]-'0')%2 == 0 {
		return nil, redlock.ErrHeld
	}
	return nil, redlock.ErrContended
}

func TestContendedPermitsAreNotReportedAsHeld(t *testing.T) {
	for range 10 { // it begins anywhere
		_, err := permits(t, contested{}, 3).TryAcquire(t.Context(), time.Second)
		if !errors.Is(err, redlock.ErrContended) || errors.Is(err, redlock.ErrHeld) {
			t.Error(err)
		}
	}
}

// noted is a sharded Locker that notes the keys it is asked for.
type noted struct {
	*groups
	keys []string
}

type groups = sharded.Locker // embedded under its own name it would hide its method Locker

func (n *noted) TryAcquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock,
	error,
) {
	n.keys = append(n.keys, key)
	return n.groups.TryAcquire(ctx, key, ttl, opts...)
}

// besideAFailingGroup calls do with a Locker that has the groups "up" and "down". The latter fails with an error that
// matches want.
func besideAFailingGroup(t *testing.T, do func(t *testing.T, locker *sharded.Locker, want error)) {
	t.Helper()
	for want, fail := range map[error]func(locktest.Fakes){
		redlock.ErrNoQuorum: func(down locktest.Fakes) { down.Behave(locktest.RefuseAll) },
		redlock.ErrOutdated: func(down locktest.Fakes) {
			for _, m := range down {
				m.Known = 3
			}
		},
	} {
		locktest.Bubble(t, 3, func(t *testing.T, up locktest.Fakes) {
			down := locktest.Fakes{locktest.NewFake("d1"), locktest.NewFake("d2"), locktest.NewFake("d3")}
			fail(down)
			opts := redlock.Options{Clock: locktest.NewClock(), Generation: 1}
			locker, err := sharded.New([]sharded.Group{
				{Name: "up", Masters: up.Masters(), Options: opts},
				{Name: "down", Masters: down.Masters(), Options: opts},
			}, sharded.Options{})
			must(t, err)
			defer func() {
				down.Behave(nil)
				must(t, locker.Close(t.Context()))
			}()
			do(t, locker, want)
		})
	}
}

func TestSlotsOfAGroupThatFailsAreSkipped(t *testing.T) {
	besideAFailingGroup(t, func(t *testing.T, locker *sharded.Locker, want error) {
		var err error
		asked := &noted{groups: locker}
		eight := permits(t, asked, 8)
		var last *semaphore.Permit
		granted := make(map[int]bool)
		for err == nil {
			var permit *semaphore.Permit
			asked.keys = nil
			if permit, err = eight.TryAcquire(t.Context(), time.Minute); err == nil {
				granted[permit.Slot], last = true, permit
			}
			inVain := slices.DeleteFunc(asked.keys, func(key string) bool { return locker.GroupOf(key) == "up" })
			if len(inVain) > 1 {
				t.Errorf("%v: the failing group was asked for %v in one call", want, inVain)
			}
		}
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		for slot := range 8 {
			name := "runners:slot:" + strconv.Itoa(slot)
			if granted[slot] != (locker.GroupOf(name) == "up") {
				t.Errorf("%v: slot %d of group %s: granted %t", want, slot, locker.GroupOf(name), granted[slot])
			}
		}
		if len(granted) == 0 || len(granted) == 8 {
			t.Fatalf("%d slots are in one of the groups, and the other has none", len(granted))
		}
		time.AfterFunc(5*time.Second, func() { _ = last.Release(t.Context()) })
		permit, err := eight.Acquire(t.Context(), time.Minute)
		must(t, err)
		if permit.Slot != last.Slot {
			t.Errorf("%v: a waiter got slot %d, want the released %d", want, permit.Slot, last.Slot)
		}
	})
}

// The failing group ends the waits for its slots. Later ctx ends the others, and the error says both.
func TestTheErrorSaysThatTheContextEndedTheWaitBesideAFailingGroup(t *testing.T) {
	besideAFailingGroup(t, func(t *testing.T, locker *sharded.Locker, want error) {
		var err error
		s := permits(t, locker, 8)
		for err == nil { // until all slots of the first group are held
			_, err = s.TryAcquire(t.Context(), time.Hour)
		}
		_, err = s.Acquire(within(t, 5*time.Second), time.Hour, redlock.MaxOutage(time.Second))
		is(t, err, context.DeadlineExceeded)
		is(t, err, want)
	})
}
