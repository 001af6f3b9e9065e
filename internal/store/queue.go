package store

import (
	"regexp"
	"slices"
	"strings"

	"github.com/seed-624411e5/redlock/single"
)

// maxWaiters is the greatest number of waiters in a wait queue.
const maxWaiters = 256

func queueOf(key string) string { return single.QueueKey(key) }

// queue returns the wait queue of a key; nil if there is none, or foreign data is in its place.
func (s *Store) queue(key string) *value {
	if v := s.get(queueOf(key)); v != nil && v.what == queue {
		return v
	}
	return nil
}

// reserved returns for how much longer key is kept for another waiter.
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

// enqueue puts a refused waiter into the queue.
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

// dequeue takes a waiter out of the queue. It reports whether the waiter was in it, or the key was reserved for it.
func (s *Store) dequeue(r *single.Request, key string) bool {
	if r.Waiter == "" || s.queue(key) == nil {
		return false
	}
	return s.zrem(queueOf(key), r.Waiter, "!"+r.Waiter)
}

// kept matches the owner of a key that was released and is kept for a while.
var kept = regexp.MustCompile(`^[^{}]+\{\}/[0-9A-Fa-f]+$`)

// depart takes a waiter out of the queue of a key that it has not got, takes its claim back, and notifies others if
// they may not know that they can have the key.
func (s *Store) depart(r *single.Request, key string, free bool) {
	queued := s.dequeue(r, key)
	switch v := s.get(key); {
	case !r.Stays && unclaim(s, r, key):
		s.notifySeveral(key)
	case queued && free && s.reserved(r, key) <= 0:
		s.notifyNext(r, key)
	case queued && v != nil && v.what == aString && kept.MatchString(v.text):
		s.tellKept(key)
	}
}

// maxDeaf is how many waiters without a subscription one message passes over.
const maxDeaf = 32

// tellNext publishes a message to the waiter that has waited longest, and returns its name; "" if none listens.
// Waiters that do not listen leave the queue.
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

// notifyNext reserves a released key for the waiter that has waited longest. It reports whether there is one.
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

// tellKept tells the waiter that has waited longest that a key was released and is kept.
func (s *Store) tellKept(key string) { s.tellNext(key, single.KeptPrefix+key) }

// Notification tells a waiter that it may take Key or, with [single.KeptPrefix], that the key behind the prefix is
// kept.
type Notification struct{ Waiter, Key string }

// maxNotified is how many waiters the release of a shared key notifies: readers among them can all have it.
const maxNotified = 8

// notifySeveral notifies the waiters that have waited longest for a shared key.
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
