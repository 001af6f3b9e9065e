// Package single performs the operations of a lock on ONE Redis master, each atomically: take a key, keep it, release
// it.
//
// It is the lowest layer of redlock and is usable alone. It knows nothing of majorities, validity or waiting: the
// root package adds those. It promises that each [Request] takes effect on its master in one step or not at all, and
// that only the owner of a key changes it. A repeated request is harmless: an acquire that finds its own owner
// reports success, a release that finds nothing reports [Refused].
//
// The pieces, from the bottom up:
//   - scripts: the Lua programs, one file each, embedded, run by EVALSHA with a fallback to EVAL
//   - [Master]: a batch of calls as one pipeline, over its own connections or any go-redis client
package single

import (
	"time"
)

// Op is the operation of a Request.
type Op uint8

// The operations. Each is atomic on its master.
const (
	// Acquire takes the keys if they are free, or finds that the same owner has them already.
	Acquire Op = iota
	// Extend sets the end of keys that the owner still holds to at least TTL from now. It never shortens, so a late
	// or shorter request takes nothing away from the holder.
	Extend
	// Release removes the owner's holds, and nothing else.
	Release
	// Raise lifts the fencing counter of a key that the owner still holds to Token. It is refused, with the counter
	// in Reply.Token, if the counter is at Token or above.
	Raise
	// Inspect reads who holds a key and for how long; it changes nothing.
	Inspect
	// Leave takes a Waiter out of the keys' arrival queues. Perhaps no other waiter knew that a key is free, or kept
	// for a while. So Leave notifies the next waiter of a free key, unless the key is reserved for a third one, and
	// sends it a message for a kept key.
	Leave
	// Announce tells the master that a configuration of masters with the generation Token is in use. It returns the
	// greatest generation that was announced, which the master keeps for ever. Its only key is [GenerationKey].
	Announce
	// Transfer changes the owner of a key from From to Owner, for TTL from now, if From still has it. The key is
	// never free in between. It raises the key's fencing counter to at least Token, and above its old value, and
	// returns it. A master does that once, so of two requests with different Owners only one succeeds. A repeated
	// request finds its own Owner, and is granted with another token. A refused request changes nothing.
	Transfer
)

// Kind says how a key is held.
type Kind uint8

// The kinds of lock. Keys of different kinds exclude each other.
const (
	// Plain is a string with the owner as its value: SET key owner NX PX ttl, as every Redlock implementation uses.
	Plain Kind = iota
	// Shared is a reader's hold: it excludes writers and is shared with other readers.
	Shared
	// Exclusive is a writer's hold on a key that readers share. The same owner may take it again, with another hold id:
	// it is also the reentrant lock.
	Exclusive
)

// MaxToken is the greatest fencing token: up to here Lua counts exactly. As microseconds since 1970 it is the year
// 2255.
const MaxToken = 1<<53 - 1

// Outcome is the answer of a master.
type Outcome uint8

// The outcomes.
const (
	// Refused: Acquire found another holder, Extend and Release found that the owner does not (or no longer) have the
	// keys, or Inspect found the key free. It is the zero value, so a reply that was never filled in grants nothing.
	Refused Outcome = iota
	// Granted: the operation was done; for Inspect, the key is held.
	Granted
	// Repaired: Extend found the key missing, and set it again because Request.Repair was set. The key is the owner's
	// from now on, but it was not in between.
	Repaired
)

// Request is one operation for one master. It never changes after it was sent, so one Request can go to many masters
// at the same time.
type Request struct {
	Op   Op
	Kind Kind
	// Repair lets Extend set missing keys again.
	Repair bool
	// Polite makes Acquire by a Waiter respect a key that is free but reserved for another waiter.
	Polite bool
	// Fence asks Acquire of one Plain key to raise the key's fencing counter to at least Token, and above its old
	// value, and to return it. A repeated request gets another token. A refused request may still have raised the
	// counter to Token.
	//
	// Raise raises the counter to Token, and Extend to at least Token; Token is at most MaxToken. Each of these
	// operations fails and changes nothing if the counter's name has data of another form.
	Fence bool
	// Exact makes a fenced Acquire get exactly Token as its token. The master refuses it unless the counter is below
	// Token, and returns the counter in Reply.Token. A repeated request is granted again if the first was granted. So
	// the token inside an Owner value is the real one.
	Exact bool
	// Spare is the number of further tokens that a granted fenced Acquire or Raise gets after its own. The counter
	// passes them in the same step, so the master gives none of these tokens to another request.
	Spare uint64
	// Retained says that a request to keep the key's counter was granted by every master within the last two days, by
	// a fenced Acquire without Retained. This fenced Acquire then needs no script. A master that has lost the counter
	// makes a new one, and keeps that.
	Retained bool
	// Keys are the keys to operate on, all or none; one for every kind but Plain. Sorted and without duplicates. None
	// begins with [ReservedPrefix].
	Keys []string
	// Owner proves who holds the keys. Masters compare it in full, never by prefix.
	Owner string
	// From is the owner that a Transfer takes the key from.
	From string
	// Hold distinguishes the holds of one owner (Shared, Exclusive). Adding the same hold twice has the effect of
	// adding it once. It must not contain a colon.
	Hold string
	// Within is a hold of the same owner that a Shared acquisition happens under. A writer that waits for the outer
	// hold must not keep the inner one out.
	Within string
	// TTL is how long the master keeps the keys after this request, in whole milliseconds, at least one.
	TTL time.Duration
	// Token: see Fence. For a Transfer it is the least token to return.
	Token uint64
	// Waiter, if set, enters the key's wait queue under this name if Acquire is refused. Waited is how long it has
	// been waiting, which decides its position. A Release by a Waiter takes it out of the queue before it notifies
	// another one.
	Waiter string
	Waited time.Duration
	// Keep, of at least a millisecond, makes Release of Plain keys keep the keys for Keep, but not beyond their ttl.
	// KeepAs replaces their owner, so that late requests of the old owner do not find them. The first waiter in the
	// queue receives a message ([KeptPrefix]), and no notification of a release. If that waiter leaves, the next one
	// receives the message only if KeepAs ends with empty braces, a slash and hexadecimal digits, and has no other
	// braces, as in the root package.
	Keep   time.Duration
	KeepAs string
	// Stays says that a leaving Waiter goes on waiting for other keys, so its claims stay.
	Stays bool
	// Reserve is how long Release and Leave keep the key for the waiter that they notify.
	Reserve time.Duration

	// The first commands of the request, for each kind of connection; see Master.Prepare.
	encodedFirst []byte
	boxedFirst   []any
}

// Reply is a master's answer.
type Reply struct {
	Outcome Outcome
	// Called says that Release notified a waiter of a Plain key.
	Called bool
	// Claimed says that a refused Acquire of a Waiter keeps new readers out of the key, for [WriterClaim] from now on.
	Claimed bool
	// TTL is the time left of the hold in the way (a refused Acquire), or of the hold that was found (Inspect). It is
	// zero when unknown, and negative when the hold never expires.
	TTL time.Duration
	// Holder is the owner of the hold in the way, or of the hold that was found, if the master reported it.
	Holder string
	// Key is the key in the way, for requests with several keys.
	Key string
	// Spare is how many tokens behind Token are the owner's, too: as many as [Request].Spare asked for, if the Master
	// knows of it.
	Spare uint64
	// Token is the fencing counter after the request, without Spare. For Shared and Exclusive keys, and for Inspect, it
	// is the number of holds. For a refused Exclusive acquisition it is 1 if readers are in its way, and otherwise 0.
	Token uint64
	// Holds is not nil if Inspect found a key that several owners can hold. It has a fingerprint of each hold,
	// [HoldPrint] digits long, without separators; above 128 holds, only of the 128 that end last. A hold has the
	// same fingerprint on every master, so a caller can tell whether a majority has it.
	Holds *string
}

// HoldPrint is the length of one fingerprint in Reply.Holds.
const HoldPrint = 12
