package sim

import (
	"github.com/seed-624411e5/redlock/single"
)

// writerClaim is for how many milliseconds a refused writer that waits keeps new readers out.
const writerClaim = 1000

// countAfter counts the members with a score above t.
func (v *value) countAfter(t int64) uint64 {
	n := uint64(0)
	for _, m := range v.members {
		if m.score > t {
			n++
		}
	}
	return n
}

// standing is what holds a shared key.
type standing struct {
	held, writer bool
	holder       string
	ends         int64
}

func (v *value) standing() standing {
	if v == nil || len(v.members) == 0 || v.members[len(v.members)-1].score <= 0 {
		return standing{}
	}
	last := v.members[len(v.members)-1]
	return standing{held: true, writer: last.name[0] == 'w', holder: ownerOf(last.name), ends: last.score}
}

// admits says whether a hold of r can stand beside what is there.
func (t standing) admits(r *single.Request) bool {
	if r.Kind == single.Shared {
		return !t.held || !t.writer
	}
	return !t.held || t.writer && t.holder == r.Owner
}

func memberOf(r *single.Request) string {
	mode := "w:"
	if r.Kind == single.Shared {
		mode = "r:"
	}
	return mode + r.Owner + ":" + r.Hold
}

// live lets the key live for at least ttl.
func (s *Store) live(key string, ttl int64) { s.expire(key, max(ttl, s.pttl(s.get(key)))) }

// serveShared performs requests for keys that several can hold, after it has removed the holds and claims that ended.
func (s *Store) serveShared(r *single.Request) single.Reply {
	key := r.Keys[0]
	if v := s.get(key); v != nil && v.members == nil {
		if r.Op == single.Acquire {
			s.enqueue(r, key)
		}
		return refused(s.pttl(v), v.text, key, 0)
	}
	there := s.get(key) != nil
	s.zremBetween(key, -s.now, s.now)
	switch r.Op {
	case single.Acquire:
		return s.share(r, key)
	case single.Extend:
		return s.shareExtend(r, key)
	default:
		if !there {
			return single.Reply{}
		}
		return s.shareRelease(r, key)
	}
}

// share is share.lua.
func (s *Store) share(r *single.Request, key string) single.Reply {
	there := s.get(key).standing()
	if !there.admits(r) {
		if r.Kind == single.Exclusive && r.Waiter != "" {
			s.zadd(key, "c:"+r.Waiter, -(s.now + writerClaim))
			s.live(key, writerClaim)
		}
		s.enqueue(r, key)
		return refused(there.ends-s.now, there.holder, key, 0)
	}
	name := memberOf(r)
	ends := s.now + r.TTL.Milliseconds()
	if v := s.get(key); v != nil {
		old, again := v.score(name)
		if _, within := v.score("r:" + r.Owner + ":" + r.Within); within {
			again = true // a writer that waits for that one must not keep this one out
		}
		if first := v.members[0]; r.Kind == single.Shared && !again && first.score < 0 {
			s.enqueue(r, key)
			return refused(-first.score-s.now, "", key, 0)
		}
		ends = max(ends, old)
	}
	s.zadd(key, name, ends)
	if r.Waiter != "" {
		s.zrem(key, "c:"+r.Waiter)
		s.dequeue(r, key)
	}
	s.live(key, r.TTL.Milliseconds())
	return single.Reply{Outcome: single.Granted, Token: s.get(key).countAfter(0)}
}

// shareExtend is share_extend.lua.
func (s *Store) shareExtend(r *single.Request, key string) single.Reply {
	name := memberOf(r)
	v := s.get(key)
	there := v.standing()
	ends, found := int64(0), false
	if v != nil {
		ends, found = v.score(name)
	}
	if !found && (!r.Repair || !there.admits(r)) {
		left := int64(0)
		if there.held {
			left = there.ends - s.now
		}
		return refused(left, there.holder, key, 0)
	}
	s.zadd(key, name, max(s.now+r.TTL.Milliseconds(), ends))
	s.live(key, r.TTL.Milliseconds())
	if found {
		return single.Reply{Outcome: single.Granted}
	}
	return single.Reply{Outcome: single.Repaired}
}

// shareRelease is share_release.lua.
func (s *Store) shareRelease(r *single.Request, key string) single.Reply {
	removed := s.zrem(key, memberOf(r))
	if r.Waiter != "" {
		s.zrem(queueOf(key), r.Waiter)
		if r.Hold == "" {
			s.zrem(key, "c:"+r.Waiter)
		}
	}
	v := s.get(key)
	if v != nil { // the key lives as long as what is left in it
		s.expire(key, max(v.members[len(v.members)-1].score, -v.members[0].score)-s.now)
	}
	if removed && !v.standing().held {
		s.callSeveral(key)
	}
	if removed {
		reply := single.Reply{Outcome: single.Granted}
		if v != nil {
			reply.Token = v.countAfter(0)
		}
		return reply
	}
	if there := v.standing(); there.held {
		return refused(there.ends-s.now, there.holder, key, 0)
	}
	return single.Reply{}
}
