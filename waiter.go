package redlock

import (
	"context"
	"time"
)

// waiter is a goroutine that waits for one round to be decided. It is reused where nothing can signal it any more.
type waiter struct {
	signals chan signal // of capacity 2: each comes once at the most
	timer   Timer
	quiet   bool // nothing will signal it
}

// signal is what a waiter waits for. Both come by one channel, because to select among many costs more than the wait.
type signal uint8

const (
	isDecided signal = iota
	isLate
)

// waiter returns a waiter; recycle takes it back.
func (l *Locker) waiter() *waiter {
	if w, ok := l.spare.Get().(*waiter); ok {
		return w
	}
	return &waiter{signals: make(chan signal, 2), quiet: true}
}

func (l *Locker) recycle(w *waiter) {
	if w.quiet {
		l.spare.Put(w)
	}
}

// decided implements decider.
func (w *waiter) decided(*round) { w.signals <- isDecided }

// wait returns nil when r has been decided, by its votes or because timeout has passed; an error when ctx is done
// before that.
func (w *waiter) wait(ctx context.Context, timeout time.Duration, r *round) error {
	w.quiet = false
	if clock := r.lock.locker.clock; w.timer == nil {
		w.timer = clock.AfterFunc(timeout, func() { w.signals <- isLate })
	} else {
		w.timer.Reset(timeout)
	}
	select {
	case s := <-w.signals:
		if s == isLate {
			r.expire()
			<-w.signals
			w.quiet = true
			return nil
		}
		w.quiet = w.timer.Stop()
		return nil
	case <-ctx.Done():
		stopped := w.timer.Stop()
		for {
			select {
			case s := <-w.signals:
				if s == isDecided { // both at once: what was decided counts
					w.quiet = stopped
					return nil
				}
			default:
				return ended(ctx)
			}
		}
	}
}
