// Package limiter limits how many operations run at the same time. Operations start in the order of their requests.
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
	next     int  // index in waiting
	draining bool // a goroutine is starting operations
}

// New makes a Limiter for limit operations. start begins one, and returns false if there is nothing to do. The
// goroutines that call Enter or Leave call start, one at a time and without the Limiter's mutex.
func New[T any](limit int, start func(T) bool) *Limiter[T] {
	return &Limiter[T]{limit: limit, start: start}
}

// Enter starts the operation on v now, or when its turn comes.
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

// drain starts operations up to the limit. It leaves that to another goroutine if one is doing it.
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

// begin reports that no other goroutine is draining.
func (l *Limiter[T]) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining {
		return false
	}
	l.draining = true
	return true
}

// first returns the next value with an operation that may start. If there is none, draining ends.
func (l *Limiter[T]) first() (v T, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var none T
	if l.next < len(l.waiting) && l.underWay < l.limit {
		v, l.waiting[l.next] = l.waiting[l.next], none // do not keep the value alive
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
