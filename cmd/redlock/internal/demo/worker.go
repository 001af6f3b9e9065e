package demo

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock"
)

// list is one of the lists that processes can have while masters are exchanged. Before that all have the old one.
type list string

const (
	oldList   list = "old"
	bothLists list = "both"
	newList   list = "new"
)

// process makes a worker or the observer look like a process to the masters. Between two locks its Locker can be
// exchanged for one with another list, as if the process were restarted.
type process struct{ current atomic.Pointer[member] }

type member struct {
	locker *redlock.Locker
	list   list
}

// start gives the process a Locker with this list. It returns the previous Locker, which the caller closes.
func (p *process) start(locker *redlock.Locker, with list) (before *redlock.Locker) {
	if m := p.current.Swap(&member{locker, with}); m != nil {
		before = m.locker
	}
	return before
}

func (p *process) locker() *redlock.Locker { return p.current.Load().locker }

// hasLeft reports whether an acquisition failed because the process has another Locker by now.
func (p *process) hasLeft(m *member, err error) bool {
	return errors.Is(err, redlock.ErrClosed) && p.current.Load() != m
}

// worker wants the lock again and again, and uses the resource while it holds it.
type worker struct {
	process

	show   *Show
	number int
}

func (w *worker) work(ctx context.Context) {
	s := w.show
	for ctx.Err() == nil {
		m := w.current.Load()
		asked := time.Now()
		s.board.waiting(w.number, asked, m.list)
		lock, err := m.locker.Acquire(ctx, s.key, ttl)
		if err != nil {
			// Without another limit than ctx, Acquire should never fail.
			if ctx.Err() == nil && !w.hasLeft(m, err) {
				s.board.expectNone(err)
				sleep(ctx, s.cfg.Hold)
			}
			continue
		}
		s.board.acquired(w.number, lock, asked, m.list)
		w.use(ctx, lock)
		err = lock.Release(ctx)
		s.board.released(w.number)
		if errors.Is(err, redlock.ErrNotHeld) {
			s.board.expectNone(err)
		}
		sleep(ctx, s.cfg.Hold/4+rand.N(s.cfg.Hold/2+1))
	}
}

// use does the work that must not overlap. It works only as long as the lock is held.
func (w *worker) use(ctx context.Context, lock *redlock.Lock) {
	held := lock.Context(ctx)
	if held.Err() != nil {
		return
	}
	w.show.resource.enter(w.number)
	defer w.show.resource.leave(w.number)
	sleep(held, w.show.cfg.Hold*3/4+rand.N(w.show.cfg.Hold/2+1))
}

// observer takes a lock that no one else wants. It shows what a single acquisition costs and whether it is possible.
type observer struct {
	process

	show *Show
	key  string
}

func (o *observer) work(ctx context.Context) {
	for ctx.Err() == nil {
		m := o.current.Load()
		began := time.Now()
		lock, err := m.locker.TryAcquire(ctx, o.key, ttl)
		if ctx.Err() == nil && !o.hasLeft(m, err) {
			o.show.board.observed(began, err)
		}
		if err == nil {
			_ = lock.Release(ctx) // the Locker's janitor releases the rest
		}
		sleep(ctx, observeEvery)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
