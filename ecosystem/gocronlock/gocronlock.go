// Package gocronlock lets schedulers of go-co-op/gocron in several processes run each job in one of them at a time.
//
//	locker, err := gocronlock.New(masters, time.Minute, func(job string, err error) { log.Print(job, err) })
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//
// What gocron does with it: before each run it asks for a lock named like the job (set gocron.WithName: the default is the
// function's name), skips the run on an error, and unlocks afterwards. It synchronises no clocks: where they differ by
// more than the job takes, two schedulers run the job one after the other, unless redlock.MinHold keeps its key for longer than they differ. And it hands the job no context of the lock, so
// a job whose lock is lost goes on; what must not overlap checks a fencing token, or runs under Locker.Do inside the job.
//
// [NewElector] is the other way: one scheduler leads, and runs all jobs.
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
	opts   []redlock.Option
}

// New makes a gocron.Locker. Locks are renewed while the job runs; a process that dies frees its jobs after at most ttl.
// gocron drops the errors of Unlock, so those that say that the lock was lost while the job ran, which may then have
// overlapped with another run, are given to lost; nil ignores them. The keys are "gocron:" and the job's name. opts are those of each lock.
func New(locker Locker, ttl time.Duration, lost func(job string, err error), opts ...redlock.Option) (gocron.Locker, error) {
	if locker == nil {
		return nil, errors.New("gocronlock: nil locker")
	}
	if lost == nil {
		lost = func(string, error) {}
	}
	return &distributed{locker, ttl, lost, append([]redlock.Option{redlock.AutoRenew()}, opts...)}, nil
}

// Lock takes the job's lock if it is free. Of schedulers that ask at the same moment one gets it. The error matches redlock.ErrHeld when the
// job runs elsewhere, and redlock.ErrContended in the rare case that several schedulers ask and none of them was seen to get the lock: then the
// job may run nowhere this time, so log it. gocron logs every error of Lock and skips the run.
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

// Unlock gives the lock back.
func (h *held) Unlock(ctx context.Context) error {
	err := h.lock.Release(ctx)
	if errors.Is(err, redlock.ErrNotHeld) {
		h.lost(h.job, err)
	}
	return err
}

// Leader is what it takes of a *leader.Candidate.
type Leader interface{ IsLeader() bool }

// ErrNotLeader is why a scheduler that does not lead runs nothing.
var ErrNotLeader = errors.New("gocronlock: another scheduler leads, or none")

type elector struct{ leader Leader }

// NewElector makes a gocron.Elector: of several schedulers only the leader's runs jobs.
//
//	candidate, err := leader.New(locker, leader.Config{Key: "scheduler", TTL: 10 * time.Second})
//	go candidate.Run(ctx, func(ctx context.Context, _ *redlock.Leadership) error { <-ctx.Done(); return nil })
//	elector, err := gocronlock.NewElector(candidate)
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
//
// It asks no master, so it costs a job nothing. Where the candidate's Run is not under way, nothing runs.
//
// gocron asks once, before each run, and hands the job no context of the term. So a job that began under a leader goes on when
// another one leads, and a job that takes longer than what is left of a term that can't be renewed overlaps with the next leader's. Use New
// where that matters, which keeps a lock for as long as the job takes; or have the job check candidate.Term().Token(). gocron uses the
// elector and ignores the locker if a scheduler is given both.
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
