package demo

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/seed-624411e5/redlock"
)

// worker wants the lock again and again, and uses the resource while it holds it.
type worker struct {
	show   *Show
	number int
	locker *redlock.Locker
}

func (w *worker) work(ctx context.Context) {
	s := w.show
	for ctx.Err() == nil {
		asked := time.Now()
		s.board.waiting(w.number, asked)
		lock, err := w.locker.Acquire(ctx, s.cfg.Key, ttl)
		if err != nil {
			if ctx.Err() == nil { // Acquire with no limit but ctx fails only for reasons that should not exist
				s.board.failed(err)
				sleep(ctx, s.cfg.Hold)
			}
			continue
		}
		s.board.acquired(w.number, lock, asked)
		w.use(ctx, lock)
		err = lock.Release(ctx)
		s.board.released(w.number)
		if err != nil && errors.Is(err, redlock.ErrNotHeld) {
			s.board.failed(err)
		}
		sleep(ctx, s.cfg.Hold/4+rand.N(s.cfg.Hold/2+1))
	}
}

// use does the work that must not overlap, for as long as the lock is held and no longer.
func (w *worker) use(ctx context.Context, lock *redlock.Lock) {
	held := lock.Context(ctx)
	if held.Err() != nil {
		return
	}
	w.show.resource.enter(w.number)
	defer w.show.resource.leave(w.number)
	sleep(held, w.show.cfg.Hold*3/4+rand.N(w.show.cfg.Hold/2+1))
}

// observer takes a lock that nobody else wants, to see what a single acquisition costs and whether it is possible.
type observer struct {
	show   *Show
	locker *redlock.Locker
	key    string
}

func (o *observer) work(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		lock, err := o.locker.TryAcquire(ctx, o.key, ttl)
		if ctx.Err() == nil {
			o.show.board.observed(began, err)
		}
		if err == nil {
			_ = lock.Release(ctx) // what it did not remove the Locker's janitor does
		}
		sleep(ctx, observeEvery)
	}
}

// sleep waits for d or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
