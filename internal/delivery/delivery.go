// Package delivery passes values to a function that may be slow: in order, one at a time, in a goroutine that exists
// only while values wait. So a function that waits, or ends its goroutine, delays only later
// values. It must not panic.
package delivery

import (
	"slices"
	"sync"
)

// Queue delivers values. It is safe for concurrent use, also for callers that hold a mutex. It holds no mutex while it
// calls the function. Make it with [New].
type Queue[E any] struct {
	deliver func(e E, missed int)
	room    int

	mu      sync.Mutex
	waiting []item[E]
	next    int           // of waiting
	missed  int           // values for which there was no room, since the last for which there was
	busy    bool          // there is a goroutine that delivers
	at      bool          // it is at a value
	closed  bool          // nothing more is taken
	idle    chan struct{} // closed when closed and not busy any more
}

type item[E any] struct {
	value  E
	missed int
}

// New makes a Queue with room for that many waiting values. deliver is called with each value, and with the number of
// values that found no room before it.
func New[E any](room int, deliver func(e E, missed int)) *Queue[E] {
	return &Queue[E]{deliver: deliver, room: room, idle: make(chan struct{})}
}

// Put queues e for delivery, if there is room. It never waits.
func (q *Queue[E]) Put(e E) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return
	case len(q.waiting)-q.next >= q.room:
		q.missed++
		return
	}
	q.waiting = append(q.waiting, item[E]{e, q.missed})
	q.missed = 0
	if !q.busy {
		q.busy = true
		go q.run()
	}
}

// run delivers the waiting values. If deliver ends its goroutine (runtime.Goexit), another one continues.
func (q *Queue[E]) run() {
	finished := false
	defer func() {
		if !finished {
			go q.run()
		}
	}()
	for i, ok := q.take(); ok; i, ok = q.take() {
		q.deliver(i.value, i.missed)
	}
	finished = true
}

// take returns the next value. If there is none, the goroutine must end.
func (q *Queue[E]) take() (item[E], bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.at = q.next < len(q.waiting)
	if !q.at {
		q.waiting, q.next, q.busy = q.waiting[:0], 0, false
		if q.closed {
			close(q.idle)
		}
		return item[E]{}, false
	}
	i := q.waiting[q.next]
	q.waiting[q.next] = item[E]{} // keeps nothing alive
	if q.next++; q.next >= 1024 && q.next > len(q.waiting)/2 {
		q.waiting, q.next = slices.Delete(q.waiting, 0, q.next), 0
	}
	return i, true
}

// Close takes no more values. It waits until all waiting values have been delivered, or given is closed. missed is
// how many values found no room since the last delivery, which no later value can report. left is how many have not
// been delivered, or not completely. Close may be called again, to wait again.
func (q *Queue[E]) Close(given <-chan struct{}) (missed, left int) {
	q.mu.Lock()
	q.closed = true
	busy := q.busy
	q.mu.Unlock()
	if busy {
		select {
		case <-q.idle:
		case <-given:
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	left = len(q.waiting) - q.next
	if q.at {
		left++
	}
	return q.missed, left
}
