package hold

import (
	"sync"
	"sync/atomic"
)

// Registry has what the Close of a Locker waits for: the holds that may have keys on masters, and what else is busy.
// After closing has begun no hold enters, but a hold that is there may be replaced. It is safe for concurrent use.
type Registry[H any] struct {
	closing chan struct{}
	empty   chan struct{} // closed when closing, no hold is left and nothing is busy
	busy    atomic.Int64

	mu     sync.Mutex
	closed bool
	first  *Entry[H] // head of the list
}

// Entry is the place of one hold in a Registry, whose mutex guards it.
type Entry[H any] struct {
	next, prev *Entry[H]
	hold       H
}

// NewRegistry returns an empty Registry. Close closes closing.
func NewRegistry[H any](closing chan struct{}) *Registry[H] {
	return &Registry[H]{closing: closing, empty: make(chan struct{})}
}

// Enter notes that h may have keys on masters from now on. It reports false once closing has begun.
func (r *Registry[H]) Enter(e *Entry[H], h H) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.linkLocked(e, h)
	}
	return !r.closed
}

// IfOpen calls f, with the mutex held, unless closing has begun. It reports whether it did.
func (r *Registry[H]) IfOpen(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	f()
	return true
}

// Replace notes that h, with the entry next, now has the keys of e's hold. It reports false if that hold has left.
func (r *Registry[H]) Replace(e, next *Entry[H], h H) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.unlinkLocked(e) {
		return false
	}
	r.linkLocked(next, h)
	return true
}

// Leave notes that e's hold has no keys left, or only such as others look after. It reports false if the hold had left
// before.
func (r *Registry[H]) Leave(e *Entry[H]) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.unlinkLocked(e) {
		return false
	}
	r.noteEmptyLocked()
	return true
}

// All returns the holds that are there now.
func (r *Registry[H]) All() (all []H) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for e := r.first; e != nil; e = e.next {
		all = append(all, e.hold)
	}
	return all
}

// Begin makes Close wait for something else, until Done is called.
func (r *Registry[H]) Begin() { r.busy.Add(1) }

// Done ends what began with Begin.
func (r *Registry[H]) Done() {
	if r.busy.Add(-1) > 0 {
		return
	}
	select {
	case <-r.closing:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.noteEmptyLocked()
	default:
	}
}

// Close begins to close, and reports false if that has begun before.
func (r *Registry[H]) Close() bool {
	return r.IfOpen(func() {
		r.closed = true
		close(r.closing)
		r.noteEmptyLocked()
	})
}

// Empty returns a channel that is closed when closing has begun, no hold is left and nothing is busy.
func (r *Registry[H]) Empty() <-chan struct{} { return r.empty }

func (r *Registry[H]) linkLocked(e *Entry[H], h H) {
	e.hold = h
	if e.next = r.first; e.next != nil {
		e.next.prev = e
	}
	r.first = e
}

// unlinkLocked takes e out of the list, and reports false if it is not in it.
func (r *Registry[H]) unlinkLocked(e *Entry[H]) bool {
	switch {
	case e.prev != nil:
		e.prev.next = e.next
	case r.first == e:
		r.first = e.next
	default:
		return false
	}
	if e.next != nil {
		e.next.prev = e.prev
	}
	e.next, e.prev = nil, nil
	return true
}

func (r *Registry[H]) noteEmptyLocked() {
	if !r.closed || r.first != nil || r.busy.Load() > 0 {
		return
	}
	select {
	case <-r.empty:
	default:
		close(r.empty)
	}
}
