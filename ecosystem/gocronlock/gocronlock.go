// Package gocronlock lets schedulers of go-co-op/gocron in several processes run each job in one of them at a time.
//
//	locker, err := gocronlock.New(masters, time.Minute, func(job string, err error) { log.Print(job, err) })
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//
// What gocron does with it: before each run it asks for a lock named like the job (set gocron.WithName: the default is the
// function's name), skips the run on an error, and unlocks afterwards. It synchronises no clocks: where they differ by
// more than the job takes, two schedulers run the job one after the other. And it hands the job no context of the lock, so
// a job whose lock is lost goes on; what must not overlap checks a fencing token, or runs under Locker.Do inside the job.
package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/seed-624411e5/redlock"
)

// Locker is what it takes of a *redlock.Locker or a *sharded.Locker.
type Locker interface {
	TryAcquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock, error)
}

type distributed struct {
	locker Locker
	ttl    time.Duration
	lost   func(job string, err error)
}

// New makes a gocron.Locker. Locks are renewed while the job runs; a process that dies frees its jobs after at most ttl.
// gocron drops the errors of Unlock, so those that say that the lock was lost while the job ran, which may then have
// overlapped with another run, are given to lost; nil ignores them. The keys are "gocron:" and the job's name.
func New(locker Locker, ttl time.Duration, lost func(job string, err error)) (gocron.Locker, error) {
	if locker == nil {
		return nil, errors.New("gocronlock: nil locker")
	}
	if lost == nil {
		lost = func(string, error) {}
	}
	return &distributed{locker, ttl, lost}, nil
}

// Lock takes the job's lock if it is free. The error matches redlock.ErrHeld when the job runs elsewhere.
func (d *distributed) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	lock, err := d.locker.TryAcquire(ctx, "gocron:"+job, d.ttl, redlock.AutoRenew())
	if err != nil {
		return nil, fmt.Errorf("gocronlock: %w", err)
	}
	return &held{lock, job, d.lost}, nil
}

type held struct {
	lock *redlock.Lock
	job  string
	lost func(job string, err error)
}

// Unlock gives the lock back.
func (h *held) Unlock(ctx context.Context) error {
	err := h.lock.Release(ctx)
	if errors.Is(err, redlock.ErrNotHeld) {
		h.lost(h.job, err)
	}
	return err
}
