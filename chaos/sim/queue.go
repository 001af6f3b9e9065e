package sim

import (
	"slices"
	"strings"

	"github.com/seed-624411e5/redlock/single"
)

// maxWaiters is how many places an arrival queue has.
const maxWaiters = 256

func queueOf(key string) string { return beside("redlock:queue:", key) }

// reserved is for how much longer key is kept for another waiter.
func (s *Store) reserved(r *single.Request, key string) int64 {
	queue := s.get(queueOf(key))
	if queue == nil || len(queue.members) == 0 {
		return 0
	}
	if first := queue.members[0]; first.score < 0 && first.name != "!"+r.Waiter {
		return -first.score - s.now
	}
	return 0
}

// enqueue gives a refused caller that waits its place.
func (s *Store) enqueue(r *single.Request, key string) {
	if r.Waiter == "" {
		return
	}
	queue := queueOf(key)
	s.zadd(queue, r.Waiter, s.now-r.Waited.Milliseconds())
	if v := s.get(queue); len(v.members) > maxWaiters {
		v.members = slices.Delete(v.members, maxWaiters, len(v.members))
	}
	s.expire(queue, queueKeep.Milliseconds())
}

// dequeue takes a caller that got the key out of the queue.
func (s *Store) dequeue(r *single.Request, key string) {
	if r.Waiter != "" {
		s.zrem(queueOf(key), r.Waiter, "!"+r.Waiter)
	}
}

// callNext reserves a key that was released for whoever has waited longest, and reports whether there is one.
func (s *Store) callNext(r *single.Request, key string) bool {
	queue := queueOf(key)
	if s.get(queue) == nil {
		return false
	}
	left := s.pttl(s.get(queue))
	s.zremBetween(queue, -1<<62, 0)
	v := s.get(queue)
	if v == nil {
		return false
	}
	next := v.members[0].name
	s.calls = append(s.calls, call{next, key})
	v.members = slices.Delete(v.members, 0, 1)
	if len(v.members) == 0 { // Redis drops an empty set, and its expiry with it
		s.Delete(queue)
		left = -2
	}
	reserve := r.Reserve.Milliseconds()
	s.zadd(queue, "!"+next, -(s.now + reserve))
	s.expire(queue, max(reserve, left))
	return true
}

// giveUpPlace takes a waiter out of the queue of a key that was not its own; if the key is free and reserved for it,
// the next one is called.
func (s *Store) giveUpPlace(r *single.Request, key string, free bool) {
	if r.Waiter == "" {
		return
	}
	queue := queueOf(key)
	s.zrem(queue, r.Waiter)
	if s.zrem(queue, "!"+r.Waiter) && free {
		s.callNext(r, key)
	}
}

// call tells a waiter that it may take key.
type call struct{ waiter, key string }

// maxCalled is how many waiters the release of a shared key calls: some may be readers, who can all have it.
const maxCalled = 8

// callSeveral calls those who have waited longest for a shared key.
func (s *Store) callSeveral(key string) {
	queue := queueOf(key)
	v := s.get(queue)
	if v == nil {
		return
	}
	n := min(maxCalled, len(v.members))
	for _, m := range v.members[:n] {
		s.calls = append(s.calls, call{m.name, key})
	}
	v.members = slices.Delete(v.members, 0, n)
	if len(v.members) == 0 {
		s.Delete(queue)
	}
}

// ownerOf reads the owner from the name of a hold, mode:owner:id.
func ownerOf(hold string) string {
	if len(hold) < 2 || (hold[0] != 'r' && hold[0] != 'w') || hold[1] != ':' {
		return ""
	}
	end := strings.LastIndexByte(hold, ':')
	if end < 2 {
		return ""
	}
	return hold[2:end]
}
