package gocronlock_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/ecosystem/gocronlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
)

func TestHazard103OneSchedulerRunsTheJob(t *testing.T) {
	memmaster.Lockstep(t, 1, func(t *testing.T, l *redlock.Locker) func() error {
		locker, err := gocronlock.New(l, time.Minute, func(_ string, err error) { t.Error(err) })
		must(t, err)
		return func() error {
			lock, err := locker.Lock(t.Context(), "report")
			if err != nil {
				return err
			}
			<-time.After(5 * time.Second)
			return lock.Unlock(t.Context())
		}
	})
}
