package hold

import (
	"sync"
	"sync/atomic"
)

// Registry has what the Close of a Locker waits for: the holds that may have keys on masters, and what else is busy.
// Nobody enters once closing has begun, but what is there may be replaced. It is safe for concurrent use.
type Registry struct {
	closing chan struct{}
	empty   chan struct{} // closed when closing, no hold is left and nothing is busy
	busy    atomic.Int64

	mu     sync.Mutex
	closed bool
	first  *Hold // head of the list
}

// NewRegistry returns an empty Registry. Close closes closing.
func NewRegistry(closing chan struct{}) *Registry {
	return &Registry{closing: closing, empty: make(chan struct{})}
}

// Enter notes that h may have keys on masters from now on. It reports false once closing has begun.
func (r *Registry) Enter(h *Hold) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.linkLocked(h)
	}
	return !r.closed
}

// IfOpen calls f, with the mutex held, unless closing has begun. It reports whether it did.
func (r *Registry) IfOpen(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	f()
	return true
}

// Replace notes that next has the keys of h now. It reports false if h has left.
func (r *Registry) Replace(h, next *Hold) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.unlinkLocked(h) {
		return false
	}
	r.linkLocked(next)
	return true
}

// Leave notes that h has no keys left, or only such as others look after. It reports false if h had left before.
func (r *Registry) Leave(h *Hold) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.unlinkLocked(h) {
		return false
	}
	r.noteEmptyLocked()
	return true
}

// All returns the holds that are there now.
func (r *Registry) All() (all []*Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for h := r.first; h != nil; h = h.next {
		all = append(all, h)
	}
	return all
}

// Begin makes Close wait for something else, until Done is called.
func (r *Registry) Begin() { r.busy.Add(1) }

// Done ends what began with Begin.
func (r *Registry) Done() {
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
func (r *Registry) Close() bool {
	return r.IfOpen(func() {
		r.closed = true
		close(r.closing)
		r.noteEmptyLocked()
	})
}

// Empty returns a channel that is closed when closing has begun, no hold is left and nothing is busy.
func (r *Registry) Empty() <-chan struct{} { return r.empty }

func (r *Registry) linkLocked(h *Hold) {
	if h.next = r.first; h.next != nil {
		h.next.prev = h
	}
	r.first = h
}

// unlinkLocked takes h out of the list, and reports false if it is not in it.
func (r *Registry) unlinkLocked(h *Hold) bool {
	switch {
	case h.prev != nil:
		h.prev.next = h.next
	case r.first == h:
		r.first = h.next
	default:
		return false
	}
	if h.next != nil {
		h.next.prev = h.prev
	}
	h.next, h.prev = nil, nil
	return true
}

func (r *Registry) noteEmptyLocked() {
	if !r.closed || r.first != nil || r.busy.Load() > 0 {
		return
	}
	select {
	case <-r.empty:
	default:
		close(r.empty)
	}
}
