package store

import (
	"strconv"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// How long package single keeps a key's queue and counter. The differential test would notice a different value.
const (
	counterKeep = 32 * 24 * time.Hour
	queueKeep   = time.Minute
)

func counterOf(key string) string { return single.CounterKey(key) }

// servePlain performs requests for plain and fenced locks.
func (s *Store) servePlain(r *single.Request) (single.Reply, error) {
	switch r.Op {
	case single.Acquire:
		return s.acquire(r)
	case single.Extend:
		return s.extend(r)
	case single.Release:
		return s.release(r)
	case single.Transfer:
		return s.transfer(r)
	default:
		return s.raise(r)
	}
}

// holds says who holds a plain key. mine: owner does. free: no owner does. For a shared key both are false.
func (s *Store) holds(key, owner string) (v *value, mine, free bool, _ error) {
	v = s.get(key)
	switch {
	case v == nil:
		return nil, false, true, nil
	case v.what != aString && v.what != holds:
		return v, false, false, errWrongType
	case v.what == holds && !v.standing(s.now).held: // only claims are left
		return v, false, true, nil
	default:
		return v, v.what == aString && v.text == owner, false, nil
	}
}

// inTheWay refuses a plain request because of the key's holder.
func (s *Store) inTheWay(v *value, key string, counter uint64) single.Reply {
	if v.what == holds {
		there := v.standing(s.now)
		if !there.writer { // readers are many
			there.holder = ""
		}
		return refused(there.ends-s.now, there.holder, key, counter)
	}
	return refused(s.pttl(v), v.text, key, counter)
}

// claimTo keeps new readers out of the first key that readers have and of the keys before it, if only readers are in
// the way.
func (s *Store) claimTo(r *single.Request, first int) bool {
	if s.Full {
		return false
	}
	for _, key := range r.Keys {
		v := s.get(key)
		if v != nil && (v.what != holds || v.standing(s.now).writer) {
			return false
		}
	}
	for _, key := range r.Keys[:first+1] {
		if s.get(key) != nil {
			s.claim(r, key)
		}
	}
	return true
}

// keep gives a key to an owner, or makes it live for at least ttl from now if that owner has it. Claims in it may
// last longer.
func (s *Store) keep(key, owner string, ttl int64) {
	v := s.get(key)
	if left := s.pttl(v); v != nil && v.what == holds || left < ttl && left != -1 {
		s.set(key, owner, ttl)
	}
}

func (s *Store) counter(key string) (uint64, error) {
	v := s.get(counterOf(key))
	switch {
	case v == nil:
		return 0, nil
	case v.what != counter:
		return 0, errWrongType
	}
	n, _ := v.score("token")
	return uint64(n), nil
}

func (s *Store) setCounter(key string, n uint64) {
	s.zadd(counterOf(key), counter, "token", int64(n))
	s.expire(counterOf(key), counterKeep.Milliseconds())
}

// acquire does the work of acquire.lua.
func (s *Store) acquire(r *single.Request) (single.Reply, error) {
	count := uint64(0)
	if r.Fence {
		var err error
		if count, err = s.counter(r.Keys[0]); err != nil {
			return single.Reply{}, err
		}
		if max(count+1, Proposal(r)) > single.MaxToken-r.Spare {
			return single.Reply{}, errLastToken
		}
	}
	ttl, takes := r.TTL.Milliseconds(), false
	for i, key := range r.Keys {
		v, mine, free, err := s.holds(key, r.Owner)
		switch {
		case err != nil:
			return single.Reply{}, err
		case r.Exact && (mine || free) && count >= Proposal(r) && (free || count > Proposal(r)):
			if left := s.reserved(r, key); free && r.Polite && left > 0 {
				s.enqueue(r, key)
				return refused(left, "", key, count), nil
			}
			return refused(0, "", key, count), nil
		case mine:
			continue
		case !free:
			reply := s.inTheWay(v, key, count)
			reply.Claimed = r.Waiter != "" && v.what == holds && s.claimTo(r, i)
			s.enqueue(r, key)
			return reply, nil
		}
		if left := s.reserved(r, key); r.Polite && left > 0 {
			s.enqueue(r, key)
			return refused(left, "", key, count), nil
		}
		takes = true
	}
	if s.Full && takes {
		return single.Reply{}, ErrFull
	}
	if r.Fence {
		if count = max(count+1, Proposal(r)); r.Exact {
			count = Proposal(r)
		}
		s.setCounter(r.Keys[0], count+r.Spare)
	}
	for _, key := range r.Keys {
		s.keep(key, r.Owner, ttl)
		s.dequeue(r, key)
	}
	return single.Reply{Outcome: single.Granted, Token: count, Spare: r.Spare}, nil
}

// extend does the work of extend.lua.
func (s *Store) extend(r *single.Request) (single.Reply, error) {
	gone := false
	for _, key := range r.Keys {
		v, mine, free, err := s.holds(key, r.Owner)
		switch {
		case err != nil:
			return single.Reply{}, err
		case mine:
		case !free:
			reply := s.inTheWay(v, key, 0)
			reply.Holder = v.text
			return reply, nil
		case !r.Repair:
			return refused(0, "", key, 0), nil
		default:
			gone = true
		}
	}
	count, err := s.counter(r.Keys[0])
	switch {
	case r.Token > 0 && err != nil:
		return single.Reply{}, err
	case s.Full && gone:
		return single.Reply{}, ErrFull
	}
	for _, key := range r.Keys {
		s.keep(key, r.Owner, r.TTL.Milliseconds())
	}
	if r.Token > 0 {
		s.setCounter(r.Keys[0], max(count, r.Token))
	}
	if gone {
		return single.Reply{Outcome: single.Repaired}, nil
	}
	return single.Reply{Outcome: single.Granted}, nil
}

// leaves does the work of leave.lua.
func (s *Store) leaves(r *single.Request) {
	for _, key := range r.Keys {
		_, _, free, err := s.holds(key, "")
		s.depart(r, key, free && err == nil)
	}
}

// release does the work of release.lua.
func (s *Store) release(r *single.Request) (single.Reply, error) {
	for _, key := range r.Keys { // before anything is removed
		if _, _, _, err := s.holds(key, r.Owner); err != nil {
			return single.Reply{}, err
		}
	}
	reply := single.Reply{Outcome: single.Granted}
	for _, key := range r.Keys {
		v, mine, free, _ := s.holds(key, r.Owner)
		released := mine
		switch {
		case r.Keep > 0:
			released = s.keepAs(r, key, v, mine)
		case mine:
			s.Delete(key)
		}
		if !released {
			reply = single.Reply{}
		}
		switch {
		case !mine:
			s.depart(r, key, free)
		case r.Keep > 0:
			s.dequeue(r, key)
			s.tellKept(key)
		default:
			s.dequeue(r, key)
			if s.notifyNext(r, key) && reply.Outcome == single.Granted {
				reply.Called = true
			}
		}
	}
	return reply, nil
}

// keepAs does the work of keep.lua: a released key stays for a while, but no longer than its hold would have. It
// reports whether the key is kept, now or since an earlier release of this kind.
func (s *Store) keepAs(r *single.Request, key string, v *value, mine bool) bool {
	keep, left := r.Keep.Milliseconds(), s.pttl(v)
	switch {
	case mine && (left > keep || left == -1):
		s.set(key, r.KeepAs, keep)
	case mine:
		s.set(key, r.KeepAs, max(1, left))
	case v == nil || v.what != aString || v.text != r.KeepAs:
		return false
	case left > keep:
		s.expire(key, keep)
	}
	return true
}

// raise does the work of raise.lua.
func (s *Store) raise(r *single.Request) (single.Reply, error) {
	key := r.Keys[0]
	if _, mine, _, err := s.holds(key, r.Owner); !mine {
		return single.Reply{}, err
	}
	count, err := s.counter(key)
	switch {
	case err != nil:
		return single.Reply{}, err
	case count >= r.Token:
		return single.Reply{Token: count}, nil
	}
	s.setCounter(key, r.Token+r.Spare)
	return single.Reply{Outcome: single.Granted, Token: r.Token, Spare: r.Spare}, nil
}

// transfer does the work of transfer.lua.
func (s *Store) transfer(r *single.Request) (single.Reply, error) {
	key, ttl := r.Keys[0], r.TTL.Milliseconds()
	v, mine, free, err := s.holds(key, r.Owner)
	if err != nil || free {
		return single.Reply{}, err
	}
	count, err := s.counter(key)
	if err != nil {
		return single.Reply{}, err
	}
	from := v.what == aString && v.text == r.From
	if !mine && !from {
		return refused(s.pttl(v), v.text, key, count), nil
	}
	token := max(count+1, Proposal(r))
	if token > single.MaxToken {
		return single.Reply{}, errLastToken
	}
	s.setCounter(key, token)
	if from {
		s.set(key, r.Owner, ttl)
	} else {
		s.keep(key, r.Owner, ttl)
	}
	return single.Reply{Outcome: single.Granted, Token: token}, nil
}

// announce does the work of announce.lua.
func (s *Store) announce(r *single.Request) (single.Reply, error) {
	known := uint64(0)
	switch v := s.get(r.Keys[0]); {
	case v == nil:
	case v.what != aString:
		return single.Reply{}, errWrongType
	default:
		var err error
		if known, err = strconv.ParseUint(v.text, 10, 64); err != nil || known > single.MaxToken {
			return single.Reply{}, errWrongType
		}
	}
	if greatest := r.Token; greatest > known {
		if s.Full {
			return single.Reply{}, ErrFull
		}
		known = greatest
		s.keys[r.Keys[0]] = &value{text: strconv.FormatUint(known, 10)}
	}
	return single.Reply{Outcome: single.Granted, Token: known}, nil
}
