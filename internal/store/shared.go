package store

import (
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// claim keeps new readers out of an existing key, for a refused waiter.
func (s *Store) claim(r *single.Request, key string) {
	const keep = int64(single.WriterClaim / time.Millisecond)
	s.live(key, keep)
	s.zremBetween(key, -s.now, s.now)
	s.zadd(key, holds, "c:"+r.Waiter, -(s.now + keep))
}

// unclaim takes a waiter's claim back. It reports whether waiters may get in that the claim kept out.
func unclaim(s *Store, r *single.Request, key string) bool {
	v := s.get(key)
	if r.Waiter == "" || v == nil || v.what != holds || !s.zrem(key, "c:"+r.Waiter) {
		return false
	}
	s.shorten(key)
	return !v.standing(s.now).writer && (len(v.members) == 0 || -v.members[0].score <= s.now)
}

// shorten makes a key that has lost a member live as long as its remaining members.
func (s *Store) shorten(key string) {
	if v := s.get(key); v != nil && len(v.members) > 0 {
		s.zremBetween(key, -s.now, s.now)
		s.expire(key, v.ends()-s.now)
	}
}

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

// standing says who holds a shared key.
type standing struct {
	held, writer bool
	holder       string
	ends         int64
}

func (v *value) standing(now int64) standing {
	if v == nil || len(v.members) == 0 || v.members[len(v.members)-1].score <= now {
		return standing{}
	}
	last := v.members[len(v.members)-1]
	return standing{held: true, writer: last.name[0] == 'w', holder: ownerOf(last.name), ends: last.score}
}

// readers is 1 if readers hold the key, for the reply to a refused writer.
func (t standing) readers() uint64 {
	if t.held && !t.writer {
		return 1
	}
	return 0
}

// admits reports whether r can have a hold together with the existing ones.
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

// live makes the key live for at least ttl.
func (s *Store) live(key string, ttl int64) { s.expire(key, max(ttl, s.pttl(s.get(key)))) }

// serveShared performs requests for keys that can have several holds.
func (s *Store) serveShared(r *single.Request) (single.Reply, error) {
	key := r.Keys[0]
	v := s.get(key)
	switch {
	case r.Op == single.Acquire && s.Full: // the script begins with SET NX
		return single.Reply{}, ErrFull
	case r.Op == single.Acquire && v == nil:
		s.addHold(r, key)
		return Set(r), nil
	case v == nil || v.what == holds:
	case v.what != aString:
		return single.Reply{}, errWrongType
	default:
		switch r.Op {
		case single.Acquire:
			s.enqueue(r, key)
		case single.Release:
			s.dequeue(r, key)
		}
		return refused(s.pttl(v), v.text, key, 0), nil
	}
	switch r.Op {
	case single.Acquire:
		return s.share(r, key)
	case single.Extend:
		return s.shareExtend(r, key)
	default:
		return s.shareRelease(r, key), nil
	}
}

// share does the work of share.lua.
func (s *Store) share(r *single.Request, key string) (single.Reply, error) {
	v := s.get(key)
	there := v.standing(s.now)
	if !there.admits(r) {
		reply := refused(there.ends-s.now, there.holder, key, there.readers())
		if reply.Claimed = r.Kind == single.Exclusive && r.Waiter != ""; reply.Claimed {
			s.claim(r, key)
		}
		s.enqueue(r, key)
		return reply, nil
	}
	if v != nil && r.Kind == single.Shared && !v.stands(memberOf(r), s.now) &&
		!v.stands("r:"+r.Owner+":"+r.Within, s.now) {
		// A writer that waits for a hold of this owner must not keep out a hold within it.
		if first := v.members[0]; -first.score > s.now {
			s.enqueue(r, key)
			return refused(-first.score-s.now, "", key, 0), nil
		}
	}
	s.addHold(r, key)
	if r.Waiter != "" {
		s.zrem(key, "c:"+r.Waiter)
		s.dequeue(r, key)
	}
	return single.Reply{Outcome: single.Granted, Token: s.get(key).countAfter(s.now)}, nil
}

// ends returns the end of the last hold or claim.
func (v *value) ends() int64 {
	if len(v.members) == 0 {
		return 0
	}
	return max(v.members[len(v.members)-1].score, -v.members[0].score)
}

// stands reports whether a hold exists and has not ended.
func (v *value) stands(name string, now int64) bool {
	ends, found := v.score(name)
	return found && ends > now
}

// addHold adds or prolongs the hold of r, and removes ended members.
func (s *Store) addHold(r *single.Request, key string) {
	name, ends := memberOf(r), s.now+r.TTL.Milliseconds()
	if v := s.get(key); v != nil {
		old, _ := v.score(name)
		ends = max(ends, old)
	}
	s.zadd(key, holds, name, ends)
	s.live(key, r.TTL.Milliseconds())
	s.zremBetween(key, -s.now, s.now)
}

// shareExtend does the work of share_extend.lua.
func (s *Store) shareExtend(r *single.Request, key string) (single.Reply, error) {
	v := s.get(key)
	there := v.standing(s.now)
	mine := v != nil && v.stands(memberOf(r), s.now)
	switch {
	case mine:
	case !there.admits(r):
		return refused(there.ends-s.now, there.holder, key, 0), nil
	case !r.Repair:
		return refused(0, "", key, 0), nil
	case s.Full:
		return single.Reply{}, ErrFull
	}
	s.addHold(r, key)
	if mine {
		return single.Reply{Outcome: single.Granted}, nil
	}
	return single.Reply{Outcome: single.Repaired}, nil
}

// shareRelease does the work of share_release.lua.
func (s *Store) shareRelease(r *single.Request, key string) single.Reply {
	v, removed := s.get(key), false
	free := v == nil
	if v != nil {
		removed = s.zrem(key, memberOf(r))
		free = !v.standing(s.now).held
		if removed {
			s.shorten(key)
		}
	}
	s.dequeue(r, key)
	if unclaim(s, r, key) || removed && free {
		s.notifySeveral(key)
	}
	switch {
	case removed:
		return single.Reply{Outcome: single.Granted, Token: v.countAfter(s.now)}
	case free:
		return single.Reply{}
	default:
		there := v.standing(s.now)
		return refused(there.ends-s.now, there.holder, key, 0)
	}
}
