// Package limiter lets so many operations be under way at a time, in the order in which they were asked for.
package limiter

import (
	"slices"
	"sync"
)

// Limiter starts operations on values of type T. It is safe for concurrent use. Make it with [New].
type Limiter[T any] struct {
	limit int
	start func(T) bool

	mu       sync.Mutex
	underWay int
	waiting  []T
	next     int  // of waiting
	draining bool // somebody is starting what may start
}

// New makes a Limiter of limit operations. start begins one and reports false if there is nothing to do; it is called
// without the Limiter's mutex, one call at a time, by whoever calls Enter or Leave.
func New[T any](limit int, start func(T) bool) *Limiter[T] {
	return &Limiter[T]{limit: limit, start: start}
}

// Enter starts the operation on v now, or when it is its turn.
func (l *Limiter[T]) Enter(v T) {
	l.mu.Lock()
	l.waiting = append(l.waiting, v)
	l.mu.Unlock()
	l.drain()
}

// Leave notes that an operation has ended. That may be before start has returned.
func (l *Limiter[T]) Leave() {
	l.ended()
	l.drain()
}

func (l *Limiter[T]) ended() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underWay--
}

// drain starts what may start, unless somebody does: then that one goes on.
func (l *Limiter[T]) drain() {
	if !l.begin() {
		return
	}
	for v, ok := l.first(); ok; v, ok = l.first() {
		if !l.start(v) {
			l.ended()
		}
	}
}

// begin reports that nobody else is draining.
func (l *Limiter[T]) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining {
		return false
	}
	l.draining = true
	return true
}

// first returns the next value whose operation may start. If there is none, that ends the draining.
func (l *Limiter[T]) first() (v T, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var none T
	if l.next < len(l.waiting) && l.underWay < l.limit {
		v, l.waiting[l.next] = l.waiting[l.next], none // keeps nothing alive
		l.next++
		l.underWay++
		return v, true
	}
	if l.next > len(l.waiting)/2 {
		l.waiting = slices.Delete(l.waiting, 0, l.next)
		l.next = 0
	}
	l.draining = false
	return none, false
}
