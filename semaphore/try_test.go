package semaphore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/semaphore"
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
