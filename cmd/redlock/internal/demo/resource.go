package demo

import (
	"slices"
	"sync"
)

// resource is the thing that the lock protects: only one worker may use it at a time. It does not know of any lock, so
// it sees what really happens.
type resource struct {
	mu       sync.Mutex
	inside   []int // workers, in the order of their arrival
	overlaps int   // how often a worker came in while another was inside
	last     int   // the last worker that came in, -1 before the first
	handoffs int   // how often that was another worker than before
}

func newResource() *resource { return &resource{last: -1} }

// enter lets a worker in, even if others are inside, and records it. The worker calls leave when it has finished.
func (r *resource) enter(worker int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.inside) > 0 {
		r.overlaps++
	}
	r.inside = append(r.inside, worker)
	if r.last >= 0 && r.last != worker {
		r.handoffs++
	}
	r.last = worker
}

func (r *resource) leave(worker int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := slices.Index(r.inside, worker); at >= 0 {
		r.inside = slices.Delete(r.inside, at, at+1)
	}
}

// look returns the workers inside, how often the resource changed hands and how often two were inside at once.
func (r *resource) look() (inside []int, handoffs, overlaps int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.inside), r.handoffs, r.overlaps
}
