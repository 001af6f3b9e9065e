// Package store holds one master's data in memory. It implements the part of Redis that the Lua scripts of package
// single use, and the effect of these scripts, one file for each kind of lock. The simulator and package redlocktest
// both use these masters, so the scripts are written a second time but not a third. A differential test compares the
// store with a real server.
package store

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// Store is the data of one master. It is pure: the caller passes the time, and calls it from one goroutine at a time.
// Make it with [New].
type Store struct {
	now  int64 // of the request being served, in milliseconds
	keys map[string]*value
	// Full says that the master's memory is full: it refuses requests that could take more, with Redis's error.
	Full bool
	// Early ends a key in the last millisecond of its ttl, as the expiry cycle of Redis 8.0 may, and not after it.
	Early bool
	// Listens reports whether a waiter has a subscription. If Listens is nil, no waiter has one.
	Listens func(waiter string) bool
	// notifications are the notifications that the current request sends.
	notifications []Notification
}

// value is a string or, depending on its type, something else.
type value struct {
	what    what
	text    string
	members []member // by score, then by name
	expires int64    // the millisecond after which it is gone; 0: never
}

// The type of a value. A script recognizes its sorted sets by a special member. Here the type tells them apart, and a
// set that is empty here is a set with only that member on a real server.
type what uint8

const (
	aString    what = iota
	holds           // a shared key, also with a single hold, which is a string on a real server
	queue           // a wait queue
	counter         // a fencing counter
	foreign         // data of another program
	foreignSet      // a sorted set of another program
)

// replyError is a master's error reply. It matches redis.Error.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError implements redis.Error.
func (replyError) RedisError() {}

const (
	errWrongType = replyError("WRONGTYPE it is no lock")
	errLastToken = replyError("ERR there is no greater fencing token than 9007199254740991")
	// ErrFull is the reply of a full master.
	ErrFull = replyError("OOM command not allowed when used memory > 'maxmemory'")
	// ErrLoading is the reply of a master that is reading its data from disk.
	ErrLoading = replyError("LOADING Redis is loading the dataset in memory")
)

// Put sets a key to foreign data: a string if text is not empty, otherwise a sorted set or something else.
func (s *Store) Put(key, text string, sortedSet bool) {
	v := &value{what: foreign, text: text}
	switch {
	case text != "":
		v.what = aString
	case sortedSet:
		v.what = foreignSet
	}
	s.keys[key] = v
}

// IsForeign reports whether a key still holds the data of Put, unless that was a string.
func (s *Store) IsForeign(key string) bool { return s.keys[key] != nil && s.keys[key].what >= foreign }

type member struct {
	name  string
	score int64
}

// New returns an empty master.
func New() *Store { return &Store{keys: make(map[string]*value)} }

// Clone returns an independent copy of the master, as a disk would have it.
func (s *Store) Clone() *Store {
	c := &Store{
		now: s.now, keys: make(map[string]*value, len(s.keys)), Full: s.Full, Early: s.Early, Listens: s.Listens,
	}
	for key, v := range s.keys {
		copied := *v
		copied.members = slices.Clone(v.members)
		c.keys[key] = &copied
	}
	return c
}

// Serve performs r atomically, at the given time of the master's own clock. It returns the same result as package
// single does for a real master's reply.
func (s *Store) Serve(now time.Duration, r *single.Request) (single.Reply, error) {
	set, err := s.TrySet(now, r)
	if err != nil {
		return single.Reply{}, err
	}
	if Counts(r) {
		counted, err := s.TryCount(now, r)
		switch {
		case set && err != nil:
			return single.Reply{}, err
		case set && counted:
			return single.Reply{Outcome: single.Granted, Token: Proposal(r)}, nil
		}
	}
	if set && !r.Fence {
		return Set(r), nil
	}
	return s.Script(now, r)
}

// TrySet is the SET NX that package single tries before the script, if that can be enough. It returns false if the
// script has to follow: the key is taken, or the request needs the script.
func (s *Store) TrySet(now time.Duration, r *single.Request) (bool, error) {
	s.now = now.Milliseconds()
	s.notifications = s.notifications[:0]
	switch {
	case !PlainSet(r):
		return false, nil
	case s.Full:
		return false, ErrFull
	case s.get(r.Keys[0]) != nil:
		return false, nil
	}
	if r.Kind == single.Plain {
		s.set(r.Keys[0], r.Owner, r.TTL.Milliseconds())
	} else {
		s.addHold(r, r.Keys[0])
	}
	return true, nil
}

// Set returns the reply to a request that SET NX has granted.
func Set(r *single.Request) single.Reply {
	reply := single.Reply{Outcome: single.Granted}
	if r.Kind != single.Plain {
		reply.Token = 1
	}
	return reply
}

// TryCount is the ZADD XX GT that package single sends behind the SET NX of a fenced acquisition, granted or not. It
// reports whether there is a counter and it was below the proposal.
func (s *Store) TryCount(now time.Duration, r *single.Request) (bool, error) {
	s.now = now.Milliseconds()
	if s.Full {
		return false, ErrFull
	}
	v := s.get(counterOf(r.Keys[0]))
	switch {
	case v == nil || v.what == foreignSet: // lost, or never made
		return false, nil
	case v.what != counter:
		return false, errWrongType
	}
	before, _ := s.counter(r.Keys[0])
	s.zadd(counterOf(r.Keys[0]), counter, "token", int64(max(before, Proposal(r))))
	return before < Proposal(r), nil
}

// Notifications returns the notifications that the latest request has sent. The next request overwrites them.
func (s *Store) Notifications() []Notification { return s.notifications }

// PlainSet reports whether r begins with SET NX.
func PlainSet(r *single.Request) bool {
	return r.Op == single.Acquire && len(r.Keys) == 1 && !r.Polite &&
		(!r.Fence || r.Retained && !r.Exact && r.Spare == 0)
}

// Counts reports whether ZADD XX GT follows that.
func Counts(r *single.Request) bool { return PlainSet(r) && r.Fence }

// Proposal returns the token that a fenced request proposes.
func Proposal(r *single.Request) uint64 { return max(1, r.Token) }

// Script performs r as its script does.
func (s *Store) Script(now time.Duration, r *single.Request) (single.Reply, error) {
	s.now = now.Milliseconds()
	s.notifications = s.notifications[:0]
	switch r.Op {
	case single.Inspect:
		return s.inspect(r)
	case single.Announce:
		return s.announce(r)
	case single.Leave:
		s.leaves(r)
		return single.Reply{}, nil
	}
	switch r.Kind {
	case single.Shared, single.Exclusive:
		return s.serveShared(r)
	default:
		return s.servePlain(r)
	}
}

// Holder returns who holds a plain key and for how much longer; "" if the key is free.
func (s *Store) Holder(now time.Duration, key string) (owner string, left time.Duration) {
	s.now = now.Milliseconds()
	v := s.get(key)
	if v == nil || v.what != aString {
		return "", 0
	}
	return v.text, time.Duration(s.pttl(v)) * time.Millisecond
}

// Holders returns who holds a key of any kind, and for how much longer.
func (s *Store) Holders(now time.Duration, key string) map[string]time.Duration {
	holders := make(map[string]time.Duration)
	if owner, left := s.Holder(now, key); owner != "" {
		holders[owner] = left
	}
	if v := s.get(key); v != nil && v.what == holds {
		for _, m := range v.members {
			if owner := ownerOf(m.name); owner != "" && m.score > s.now {
				holders[owner] = max(holders[owner], time.Duration(m.score-s.now)*time.Millisecond)
			}
		}
	}
	return holders
}

// Traces returns what waits for a key in the name of a waiter: "an entry", "a claim".
func Traces(s *Store, now time.Duration, key, waiter string) (traces []string) {
	s.now = now.Milliseconds()
	if v := s.queue(key); v != nil {
		if _, found := v.score(waiter); found {
			traces = append(traces, "an entry")
		}
	}
	if v := s.get(key); v != nil && v.what == holds {
		if until, found := v.score("c:" + waiter); found && -until > s.now {
			traces = append(traces, "a claim")
		}
	}
	return traces
}

// Keys returns the keys that are held, sorted.
func (s *Store) Keys(now time.Duration) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		if !single.Reserved(key) && len(s.Holders(now, key)) > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// Counter returns the value of a key's fencing counter, 0 if there is none.
func (s *Store) Counter(now time.Duration, key string) uint64 {
	s.now = now.Milliseconds()
	n, _ := s.counter(key) // foreign data in its place is no counter
	return n
}

// Delete removes a key.
func (s *Store) Delete(key string) { delete(s.keys, key) }

// get looks a key up as Redis does: an expired key does not exist.
func (s *Store) get(key string) *value {
	v := s.keys[key]
	if v != nil && v.expires != 0 && (s.now > v.expires || s.Early && s.now == v.expires) {
		delete(s.keys, key)
		return nil
	}
	return v
}

// pttl returns the remaining milliseconds of v: -2 if there is no v, -1 if v never expires.
func (s *Store) pttl(v *value) int64 {
	switch {
	case v == nil:
		return -2
	case v.expires == 0:
		return -1
	default:
		return max(0, v.expires-s.now)
	}
}

func (s *Store) set(key, text string, ttl int64) {
	s.keys[key] = &value{text: text, expires: s.now + ttl}
}

// expire sets the remaining life of an existing key.
func (s *Store) expire(key string, ttl int64) {
	if v := s.get(key); v != nil {
		v.expires = s.now + ttl
	}
}

// zadd adds a member or moves it.
func (s *Store) zadd(key string, kind what, name string, score int64) {
	v := s.get(key)
	if v == nil {
		v = &value{what: kind}
		s.keys[key] = v
	}
	v.remove(name)
	at, _ := slices.BinarySearchFunc(v.members, member{name, score}, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.name, b.name))
	})
	v.members = slices.Insert(v.members, at, member{name, score})
}

// zrem removes members and reports whether one was there. A set without members is gone.
func (s *Store) zrem(key string, names ...string) bool {
	v := s.get(key)
	if v == nil {
		return false
	}
	found := false
	for _, name := range names {
		found = v.remove(name) || found
	}
	if len(v.members) == 0 {
		s.Delete(key)
	}
	return found
}

// zremBetween removes the members with scores from low to high.
func (s *Store) zremBetween(key string, low, high int64) {
	if v := s.get(key); v != nil {
		v.members = slices.DeleteFunc(v.members, func(m member) bool { return low <= m.score && m.score <= high })
		if len(v.members) == 0 {
			s.Delete(key)
		}
	}
}

func (v *value) remove(name string) bool {
	before := len(v.members)
	v.members = slices.DeleteFunc(v.members, func(m member) bool { return m.name == name })
	return len(v.members) < before
}

func (v *value) score(name string) (int64, bool) {
	for _, m := range v.members {
		if m.name == name {
			return m.score, true
		}
	}
	return 0, false
}

// inspect does the work of inspect.lua.
func (s *Store) inspect(r *single.Request) (single.Reply, error) {
	for _, key := range r.Keys {
		v := s.get(key)
		switch {
		case v == nil:
		case v.what == aString:
			return granted(s.pttl(v), v.text, key, 1), nil
		case v.what != holds:
			return single.Reply{}, errWrongType
		default:
			if n := v.countAfter(s.now); n > 0 {
				last := v.members[len(v.members)-1]
				reply := granted(last.score-s.now, ownerOf(last.name), key, n)
				told := prints(v.members, min(n, maxPrints))
				reply.Holds = &told
				return reply, nil
			}
		}
	}
	return single.Reply{}, nil
}

// maxPrints is how many holds inspect.lua reports.
const maxPrints = 128

// prints returns the fingerprints of the last n members, the last one first.
func prints(members []member, n uint64) string {
	var b strings.Builder
	for _, m := range slices.Backward(members[len(members)-int(n):]) {
		sum := sha1.Sum([]byte(m.name))
		b.WriteString(hex.EncodeToString(sum[:])[:single.HoldPrint])
	}
	return b.String()
}

func granted(ttl int64, holder, key string, n uint64) single.Reply {
	return single.Reply{
		Outcome: single.Granted, TTL: time.Duration(ttl) * time.Millisecond, Holder: holder, Key: key, Token: n,
	}
}

func refused(ttl int64, holder, key string, counter uint64) single.Reply {
	return single.Reply{TTL: time.Duration(ttl) * time.Millisecond, Holder: holder, Key: key, Token: counter}
}
