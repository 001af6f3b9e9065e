package sim

import (
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// How long package single keeps what belongs to a key; the differential test would notice another value.
const (
	counterKeep = 32 * 24 * time.Hour
	queueKeep   = time.Minute
)

// beside names what belongs to a key, as package single does.
func beside(prefix, key string) string {
	if open := strings.IndexByte(key, '{'); open >= 0 && strings.IndexByte(key[open+1:], '}') > 0 {
		return prefix + key
	}
	return prefix + "{" + key + "}"
}

func counterOf(key string) string { return beside("redlock:token:", key) }

// servePlain performs requests for plain and fenced locks.
func (s *Store) servePlain(r *single.Request) single.Reply {
	switch r.Op {
	case single.Acquire:
		return s.acquire(r)
	case single.Extend:
		return s.extend(r)
	case single.Release, single.Leave:
		return s.release(r)
	default:
		return s.raise(r)
	}
}

// holds says who holds a plain key: mine for the owner, free for nobody. A key of another kind is somebody's without
// a name.
func (s *Store) holds(key, owner string) (v *value, mine, free bool) {
	v = s.get(key)
	if v == nil {
		return nil, false, true
	}
	return v, v.members == nil && v.text == owner, false
}

// keep lets a key live for at least ttl from now.
func (s *Store) keep(key, owner string, ttl int64) {
	if left := s.pttl(s.get(key)); left < ttl && left != -1 {
		s.set(key, owner, ttl)
	}
}

func (s *Store) counter(key string) uint64 {
	if v := s.get(counterOf(key)); v != nil {
		n, _ := v.score("token")
		return uint64(n)
	}
	return 0
}

func (s *Store) setCounter(key string, n uint64) {
	s.zadd(counterOf(key), "token", int64(n))
	s.expire(counterOf(key), counterKeep.Milliseconds())
}

// acquire is acquire.lua.
func (s *Store) acquire(r *single.Request) single.Reply {
	counter := uint64(0)
	if r.Fence {
		counter = s.counter(r.Keys[0])
	}
	for _, key := range r.Keys {
		v, mine, free := s.holds(key, r.Owner)
		if mine {
			continue
		}
		if !free {
			s.enqueue(r, key)
			return refused(s.pttl(v), v.text, key, counter)
		}
		if left := s.reserved(r, key); r.Polite && left > 0 {
			s.enqueue(r, key)
			return refused(left, "", key, counter)
		}
	}
	if r.Fence {
		counter = max(counter+1, proposal(r))
		s.setCounter(r.Keys[0], counter)
	}
	for _, key := range r.Keys {
		s.keep(key, r.Owner, r.TTL.Milliseconds())
		s.dequeue(r, key)
	}
	return single.Reply{Outcome: single.Granted, Token: counter}
}

// extend is extend.lua.
func (s *Store) extend(r *single.Request) single.Reply {
	gone := false
	for _, key := range r.Keys {
		v, mine, free := s.holds(key, r.Owner)
		switch {
		case mine:
		case !free:
			return refused(s.pttl(v), v.text, key, 0)
		case !r.Repair:
			return refused(0, "", key, 0)
		default:
			gone = true
		}
	}
	for _, key := range r.Keys {
		s.keep(key, r.Owner, r.TTL.Milliseconds())
	}
	if r.Token > 0 {
		s.setCounter(r.Keys[0], max(s.counter(r.Keys[0]), r.Token))
	}
	if gone {
		return single.Reply{Outcome: single.Repaired}
	}
	return single.Reply{Outcome: single.Granted}
}

// release is release.lua. Without an owner it only takes a waiter out of the queues.
func (s *Store) release(r *single.Request) single.Reply {
	reply := single.Reply{Outcome: single.Granted}
	for _, key := range r.Keys {
		_, mine, free := s.holds(key, r.Owner)
		if !mine {
			reply = single.Reply{}
			s.giveUpPlace(r, key, free)
			continue
		}
		s.Delete(key)
		if r.Waiter != "" {
			s.zrem(queueOf(key), r.Waiter)
		}
		if s.callNext(r, key) && reply.Outcome == single.Granted {
			reply.Called = true
		}
	}
	return reply
}

// raise is raise.lua.
func (s *Store) raise(r *single.Request) single.Reply {
	key := r.Keys[0]
	if _, mine, _ := s.holds(key, r.Owner); !mine {
		return single.Reply{}
	}
	if counter := s.counter(key); counter >= r.Token {
		return single.Reply{Token: counter}
	}
	s.setCounter(key, r.Token)
	return single.Reply{Outcome: single.Granted, Token: r.Token}
}
