package single_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// acquire, extend and release are requests for one plain key.
func acquire(key, owner string, ttl time.Duration) single.Request {
	return single.Request{Op: single.Acquire, Keys: []string{key}, Owner: owner, TTL: ttl}
}

// acquisitions are for one key each, by the same owner.
func acquisitions(keys ...string) []single.Request {
	all := make([]single.Request, len(keys))
	for i, key := range keys {
		all[i] = acquire(key, "me", time.Minute)
	}
	return all
}

func extend(key, owner string, ttl time.Duration, repair bool) single.Request {
	return single.Request{Op: single.Extend, Keys: []string{key}, Owner: owner, TTL: ttl, Repair: repair}
}

func release(key, owner string) single.Request {
	return single.Request{Op: single.Release, Keys: []string{key}, Owner: owner}
}

func inspect(key string) single.Request {
	return single.Request{Op: single.Inspect, Keys: []string{key}}
}

// fenced acquires key with a proposed token.
func fenced(key, owner string, proposal uint64) single.Request {
	r := acquire(key, owner, time.Minute)
	r.Fence, r.Token = true, proposal
	return r
}

// retained marks a request that need not keep its counter, so it goes out as SET NX and ZADD.
func retained(r single.Request) single.Request {
	r.Retained = true
	return r
}

// raise lifts the counter of key.
func raise(key, owner string, token uint64) single.Request {
	return single.Request{Op: single.Raise, Keys: []string{key}, Owner: owner, Token: token}
}

// transfer takes key from an owner, with at least this token.
func transfer(key, owner, from string, token uint64) single.Request {
	return single.Request{
		Op: single.Transfer, Keys: []string{key}, Owner: owner, From: from, Token: token, TTL: time.Minute,
	}
}

// together asks for plain locks of these keys together.
func together(owner string, keys ...string) single.Request {
	r := acquire(keys[0], owner, time.Minute)
	r.Keys = keys
	return r
}

// several makes requests for keys named "key,key owner", or "key,key owner waiter" for a polite waiter that has
// waited for about two hours. Each waiter has waited for a different time. The differences are large enough for the
// same order on every server.
func several(op single.Op, of ...string) []*single.Call {
	batch := make([]*single.Call, len(of))
	for i, names := range of {
		keys, owner, _ := strings.Cut(names, " ")
		r := &single.Request{Op: op, Keys: strings.Split(keys, ","), Owner: owner}
		if op == single.Acquire {
			r.TTL = time.Minute
		}
		if owner, waiter, waits := strings.Cut(owner, " "); waits {
			*r = by(waiter, time.Duration(waiter[0])*time.Minute, *r)
			r.Owner, r.Polite = owner, op == single.Acquire
		}
		batch[i] = &single.Call{Request: r}
	}
	return batch
}

// releases are calls that release keys, named "key owner", as a batch; "key owner/hold" is a reader's.
func releases(of ...string) []*single.Call {
	batch := make([]*single.Call, len(of))
	for i, names := range of {
		key, owner, _ := strings.Cut(names, " ")
		batch[i] = &single.Call{Request: new(release(key, owner))}
		if owner, hold, shared := strings.Cut(owner, "/"); shared {
			batch[i].Request = new(on(key, as(single.Release, reader(owner, hold, 0))))
		}
	}
	return batch
}

// tooMany names the keys of a lock with more keys than a bundle can have.
func tooMany() string {
	names := ""
	for i := range 257 {
		names += fmt.Sprintf("n%d,", i)
	}
	return names[:len(names)-1]
}

// hold is a request for one hold of the shared key "key".
func hold(op single.Op, kind single.Kind, owner, id string, ttl time.Duration) single.Request {
	return single.Request{Op: op, Kind: kind, Keys: []string{"key"}, Owner: owner, Hold: id, TTL: ttl}
}

// reader and writer are acquisitions of one hold.
func reader(owner, id string, ttl time.Duration) single.Request {
	return hold(single.Acquire, single.Shared, owner, id, ttl)
}

func writer(owner, id string, ttl time.Duration) single.Request {
	return hold(single.Acquire, single.Exclusive, owner, id, ttl)
}

// held is an acquisition of the hold that a set of holds has under this name: "r:owner:id" for a reader.
func held(name string) single.Request {
	owner := name[2:strings.LastIndexByte(name, ':')]
	kind := map[byte]single.Kind{'r': single.Shared, 'w': single.Exclusive}[name[0]]
	return hold(single.Acquire, kind, owner, name[2+len(owner)+1:], time.Minute)
}

// on is the same request for another key.
func on(key string, r single.Request) single.Request {
	r.Keys = []string{key}
	return r
}

// as turns a request into another operation of the same hold.
func as(op single.Op, r single.Request) single.Request {
	r.Op = op
	return r
}

// by sets the request's waiter.
func by(waiter string, waited time.Duration, r single.Request) single.Request {
	r.Waiter, r.Waited = waiter, waited
	return r
}

// polite makes an acquisition respect reservations.
func polite(r single.Request) single.Request {
	r.Polite = true
	return r
}

// reserving makes a release reserve the key for the waiter that it notifies.
func reserving(d time.Duration, r single.Request) single.Request {
	r.Reserve = d
	return r
}

// keeping releases key, and keeps it for another owner for a minute.
func keeping(key, owner, as string) single.Request {
	return single.Request{Op: single.Release, Keys: []string{key}, Owner: owner, Keep: time.Minute, KeepAs: as}
}

// repairing is an extension that sets a missing key again.
func repairing(r single.Request) single.Request {
	r.Op, r.Repair = single.Extend, true
	return r
}

var allKinds = []single.Kind{single.Plain, single.Shared, single.Exclusive}

// waits is an acquisition of key by a waiter, of any kind of lock.
func waits(name string, waited time.Duration, kind single.Kind) single.Request {
	if kind == single.Plain {
		return by(name, waited, acquire("key", name, time.Minute))
	}
	return by(name, waited, hold(single.Acquire, kind, name, "1", time.Minute))
}

// leave takes a waiter out of the queue of key.
func leave(waiter string, kind single.Kind) single.Request {
	return single.Request{Op: single.Leave, Kind: kind, Keys: []string{"key"}, Waiter: waiter}
}

// everyKind has an acquisition of each kind, each on different keys.
func everyKind() map[string]single.Request {
	return map[string]single.Request{
		"plain":        acquire("plain", "me", time.Minute),
		"fenced":       fenced("fenced", "me", 7),
		"shared":       on("shared", held("r:me:1")),
		"beside":       on("shared", held("r:other:1")),
		"exclusive":    on("exclusive", held("w:me:1")),
		"reentrant":    on("entered", held("w:me:1")),
		"reentered":    on("entered", held("w:me:2")),
		"many keys":    together("me", "a", "b", "c"),
		"was retained": retained(fenced("kept", "me", 9)),
	}
}

// requests has one request of each form that a command can take.
func requests() []single.Request {
	return []single.Request{
		{Op: single.Acquire, Keys: []string{"k"}, Owner: "o", TTL: time.Second},
		{
			Op: single.Acquire, Keys: []string{"k"}, Owner: "o", TTL: 1500 * time.Microsecond, Fence: true,
			Token: single.MaxToken,
		},
		{
			Op: single.Acquire, Keys: []string{"k"}, Owner: "o", TTL: 1500 * time.Microsecond, Fence: true,
			Retained: true,
			Token:    7,
		},
		{
			Op: single.Acquire, Keys: []string{"k"}, Owner: "o", TTL: time.Second, Fence: true, Retained: true,
			Exact: true, Token: 7,
		},
		{Op: single.Acquire, Keys: []string{"a{x}", "b{x}"}, Owner: "ö\r\n$1\r\n\x00", TTL: time.Hour},
		{
			Op: single.Acquire, Keys: []string{"k"}, Owner: "o", TTL: time.Second, Waiter: "w", Waited: time.Minute,
			Polite: true,
		},
		{
			Op: single.Acquire, Kind: single.Shared, Keys: []string{"k"}, Owner: "o", Hold: "h", TTL: time.Second,
			Within: "i",
		},
		{Op: single.Extend, Keys: []string{"k"}, Owner: "o", TTL: time.Second, Repair: true, Token: 7},
		{Op: single.Extend, Kind: single.Exclusive, Keys: []string{"k"}, Owner: "o", Hold: "h", TTL: time.Second},
		{Op: single.Release, Keys: []string{"k"}, Owner: "o", Reserve: 5 * time.Millisecond},
		{Op: single.Release, Keys: []string{"k", "l"}, Owner: "o", Waiter: "w"},
		{Op: single.Release, Keys: []string{"k", "l"}, Owner: "o", Keep: time.Minute},
		{Op: single.Release, Kind: single.Shared, Keys: []string{"k"}, Owner: "o", Hold: "h"},
		{Op: single.Raise, Keys: []string{"k"}, Owner: "o", Token: 9},
		{Op: single.Inspect, Keys: []string{strings.Repeat("k", 70_000)}},
		{Op: single.Leave, Keys: []string{"k"}, Waiter: "w"},
	}
}
