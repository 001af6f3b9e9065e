// Package gocronlock is for go-co-op/gocron schedulers in several processes: each job runs in one process at a time.
//
//	locker, err := gocronlock.New(masters, time.Minute, func(job string, err error) { log.Print(job, err) })
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//
// Before each run, gocron asks for a lock with the job's name, skips the run on an error, and unlocks afterwards. Set
// the name with gocron.WithName: the default is the function's name. gocron does not synchronise clocks. If two
// schedulers' clocks differ by more than the job takes, both run the job, one after the other. To prevent that, set
// redlock.MinHold so that it keeps the key for longer than the clocks differ. The job gets no context of the lock, so a
// job goes on after it has lost its lock. If runs must not overlap, check a fencing token in the job, or run the job's
// work under Locker.Do.
//
// [NewElector] offers another way: one scheduler leads and runs all jobs.
package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/seed-624411e5/redlock"
)

// Locker has the method that New needs: pass a *redlock.Locker or a *sharded.Locker.
type Locker interface {
	TryAcquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock, error)
}

type distributed struct {
	locker Locker
	ttl    time.Duration
	lost   func(job string, err error)
	opts   []redlock.Option
}

// New returns a gocron.Locker. It renews locks while the job runs. If a process dies, its jobs are free after at most
// ttl. The key of a job is "gocron:" and its name. opts apply to each lock.
//
// gocron drops the errors of Unlock. New calls lost with those that mean that the lock was lost during the run, which
// may then have overlapped with another. If lost is nil, New ignores them.
func New(locker Locker, ttl time.Duration, lost func(job string, err error), opts ...redlock.Option) (gocron.Locker,
	error,
) {
	if locker == nil {
		return nil, errors.New("gocronlock: nil locker")
	}
	if lost == nil {
		lost = func(string, error) {}
	}
	return &distributed{locker, ttl, lost, append([]redlock.Option{redlock.AutoRenew()}, opts...)}, nil
}

// Lock takes the job's lock if it is free. If several schedulers ask at the same moment, one gets it. The error matches
// redlock.ErrHeld if the job runs elsewhere. It matches redlock.ErrContended in the rare case that several schedulers
// asked and none was seen to get the lock. Then the job may not run anywhere this time, so log it. gocron logs every
// error of Lock and skips the run.
func (d *distributed) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	lock, err := d.locker.TryAcquire(ctx, "gocron:"+job, d.ttl, d.opts...)
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

// Unlock releases the lock.
func (h *held) Unlock(ctx context.Context) error {
	err := h.lock.Release(ctx)
	if errors.Is(err, redlock.ErrNotHeld) {
		h.lost(h.job, err)
	}
	return err
}

// Leader has the method that NewElector needs: pass a *leader.Candidate.
type Leader interface{ IsLeader() bool }

// ErrNotLeader is the reason why a scheduler that does not lead runs no job.
var ErrNotLeader = errors.New("gocronlock: another scheduler leads, or none")

type elector struct{ leader Leader }

// NewElector returns a gocron.Elector: only the leader's scheduler runs jobs.
//
//	candidate, err := leader.New(locker, leader.Config{Key: "scheduler", TTL: 10 * time.Second})
//	go candidate.Run(ctx, func(ctx context.Context, _ *leader.Term) error { <-ctx.Done(); return nil })
//	elector, err := gocronlock.NewElector(candidate)
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
//
// The elector asks no master, so it costs a job nothing. If the candidate's Run is not running, no job runs.
//
// gocron asks once, before each run, and gives the job no context of the term. So a job goes on after its leader has
// lost the term. A job that takes longer than the rest of a term that can't be renewed overlaps with the next leader's
// jobs. If that matters, use New, which keeps a lock during the whole job, or check candidate.Term().Token() in the
// job. A scheduler that has both an elector and a locker uses only the elector.
func NewElector(leader Leader) (gocron.Elector, error) {
	if leader == nil {
		return nil, errors.New("gocronlock: nil leader")
	}
	return elector{leader}, nil
}

// IsLeader implements gocron.Elector.
func (e elector) IsLeader(context.Context) error {
	if !e.leader.IsLeader() {
		return ErrNotLeader
	}
	return nil
}
