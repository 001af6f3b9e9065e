package store

import (
	"regexp"
	"slices"
	"strings"

	"github.com/seed-624411e5/redlock/single"
)

// maxWaiters is how many entries an arrival queue has.
const maxWaiters = 256

func queueOf(key string) string { return single.QueueKey(key) }

// queue returns the wait queue of a key; nil if there is none, be it that something else is in its place.
func (s *Store) queue(key string) *value {
	if v := s.get(queueOf(key)); v != nil && v.what == queue {
		return v
	}
	return nil
}

// reserved is for how much longer key is kept for another waiter.
func (s *Store) reserved(r *single.Request, key string) int64 {
	v := s.queue(key)
	if v == nil {
		return 0
	}
	if first := v.members[0]; first.score < 0 && first.name != "!"+r.Waiter {
		return -first.score - s.now
	}
	return 0
}

// enqueue gives a refused caller that waits its entry.
func (s *Store) enqueue(r *single.Request, key string) {
	if r.Waiter == "" || s.queue(key) == nil && s.get(queueOf(key)) != nil {
		return
	}
	s.zadd(queueOf(key), queue, r.Waiter, s.now-r.Waited.Milliseconds())
	if v := s.queue(key); len(v.members) > maxWaiters {
		v.members = slices.Delete(v.members, maxWaiters, len(v.members))
	}
	s.expire(queueOf(key), queueKeep.Milliseconds())
}

// dequeue takes a caller out of the queue, and reports whether it stood there, or the key was reserved for it.
func (s *Store) dequeue(r *single.Request, key string) bool {
	if r.Waiter == "" || s.queue(key) == nil {
		return false
	}
	return s.zrem(queueOf(key), r.Waiter, "!"+r.Waiter)
}

// kept is what the owner of a key looks like that was released and is kept for a while.
var kept = regexp.MustCompile(`^[^{}]+\{\}/[0-9A-Fa-f]+$`)

// leave takes a caller out of the queue of a key that it has not got, and has another one know what it knew.
func (s *Store) leave(r *single.Request, key string, free bool) {
	if !s.dequeue(r, key) {
		return
	}
	v := s.get(key)
	switch {
	case free && s.reserved(r, key) <= 0:
		s.notifyNext(r, key)
	case v != nil && v.what == aString && kept.MatchString(v.text):
		s.tellKept(key)
	}
}

// maxDeaf is how many waiters that do not listen one message passes over.
const maxDeaf = 32

// tellNext publishes a message to whoever has waited longest, and returns its name; "" if nobody listens. Those who do not listen leave the
// queue.
func (s *Store) tellNext(key, message string) string {
	for range maxDeaf {
		v := s.queue(key)
		if v == nil {
			return ""
		}
		at := slices.IndexFunc(v.members, func(m member) bool { return !strings.HasPrefix(m.name, "!") })
		if at < 0 {
			return ""
		}
		next := v.members[at].name
		if s.Listens != nil && s.Listens(next) {
			s.notifications = append(s.notifications, Notification{next, message})
			return next
		}
		s.zrem(queueOf(key), next)
	}
	return ""
}

// notifyNext reserves a key that was released for whoever has waited longest, and reports whether there is one.
func (s *Store) notifyNext(r *single.Request, key string) bool {
	if s.queue(key) == nil {
		return false
	}
	s.zremBetween(queueOf(key), -1<<62, 0)
	next := s.tellNext(key, key)
	if next == "" {
		return false
	}
	v, reserve := s.queue(key), r.Reserve.Milliseconds()
	v.remove(next)
	left := s.pttl(v)
	if len(v.members) == 0 {
		left = 0
	}
	s.zadd(queueOf(key), queue, "!"+next, -(s.now + reserve))
	s.expire(queueOf(key), max(reserve, left))
	return true
}

// tellKept tells whoever has waited longest that a key was released and is kept.
func (s *Store) tellKept(key string) { s.tellNext(key, single.KeptPrefix+key) }

// Notification tells a waiter that it may take Key, or behind [single.KeptPrefix] that it is kept.
type Notification struct{ Waiter, Key string }

// maxNotified is how many waiters the release of a shared key notifies: some may be readers, who can all have it.
const maxNotified = 8

// notifySeveral notifies those that have waited longest for a shared key.
func (s *Store) notifySeveral(key string) {
	if s.queue(key) == nil {
		return
	}
	s.zremBetween(queueOf(key), -1<<62, 0)
	for range maxNotified {
		next := s.tellNext(key, key)
		if next == "" {
			return
		}
		s.zrem(queueOf(key), next)
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
