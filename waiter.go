package redlock

import (
	"context"
	"time"
)

// waiter is a goroutine that waits for one round to be decided. It is reused where nothing can signal it any more.
type waiter struct {
	done  chan struct{} // of capacity 1
	late  chan struct{} // of capacity 1
	timer Timer
	quiet bool // nothing will signal it
}

// waiter returns a waiter; recycle takes it back.
func (l *Locker) waiter() *waiter {
	if w, ok := l.spare.Get().(*waiter); ok {
		return w
	}
	return &waiter{done: make(chan struct{}, 1), late: make(chan struct{}, 1), quiet: true}
}

func (l *Locker) recycle(w *waiter) {
	if w.quiet {
		l.spare.Put(w)
	}
}

// decided implements decider.
func (w *waiter) decided(*round) { w.done <- struct{}{} }

// wait returns nil when r has been decided, by its votes or because timeout has passed; an error when ctx is done
// before that.
func (w *waiter) wait(ctx context.Context, timeout time.Duration, r *round) error {
	w.quiet = false
	if clock := r.lock.locker.clock; w.timer == nil {
		w.timer = clock.AfterFunc(timeout, func() { w.late <- struct{}{} })
	} else {
		w.timer.Reset(timeout)
	}
	select {
	case <-w.done:
		w.quiet = w.timer.Stop()
		return nil
	case <-w.late:
		r.expire()
		<-w.done
		w.quiet = true
		return nil
	case <-ctx.Done():
		stopped := w.timer.Stop()
		select {
		case <-w.done: // both at once: what was decided counts
			w.quiet = stopped
			return nil
		default:
			return ended(ctx)
		}
	}
}
