package history

import (
	"fmt"
	"slices"
)

// Type is the kind of an event.
type Type uint8

// NoteSeen marks an ExtendReturn that tells when a renewal in the background was noticed, not when it was decided.
const NoteSeen = "seen by its new bound"

// NoteBound marks a Stopped of a holder that left because no time remained.
const NoteBound = "its bound passed"

// The types of event. The comment on each names the fields it fills besides At and Client.
const (
	// AcquireCall: an attempt began. Attempt, Key, Kind, TTL, Wait, Patience, Renew, Quiet, Lock; Owner when it is
	// known in advance.
	AcquireCall Type = iota + 1
	// AcquireReturn: the attempt ended. Attempt, Outcome, and for Acquired also Owner, Hold, Until, Token, NoDone.
	AcquireReturn
	// ExtendCall: the holder (or its renewal) asked for more time. Attempt, TTL.
	ExtendCall
	// ExtendReturn: it was answered. Attempt, Outcome (Acquired means extended), Until when extended; with the note
	// NoteSeen it was a renewal in the background, and this is when its new bound was noticed. Value is then the time
	// since the holder had looked before, or 0 if it looks all the time.
	ExtendReturn
	// ReleaseCall: the holder began to release and acts no more. Attempt.
	ReleaseCall
	// ReleaseReturn: the release was answered. Attempt, Outcome (Acquired means confirmed).
	ReleaseReturn
	// DoneClosed: the hold's Done channel closed. Attempt, Value as for NoteSeen.
	DoneClosed
	// Stopped: the holder stopped acting for another reason than the above: it was killed, or it looked at its bound
	// and left, with the note NoteBound. Of an attempt without an answer: its client was killed. Attempt, Note.
	Stopped
	// Paused and Resumed bracket the time when a client could do nothing, not even close a channel. Client.
	Paused
	Resumed
	// Removed: a release took effect on a master. Master, Key, Owner (the client that asked), Before (the owner of the
	// removed hold, empty if there was none), After (the owner of the hold that is there now).
	Removed
	// KeyFound: a key was seen on a master. Master, Key, Owner, Value (its pttl in nanoseconds, -1 for one that never
	// expires).
	KeyFound
	// FaultOn and FaultOff bracket a fault. Name, Master (-1 for none or all), Note.
	FaultOn
	FaultOff
	// MajorityLost and MajorityBack bracket the time when Client (or every client, if it is
	// [Everyone]) could not reach a majority of masters.
	MajorityLost
	MajorityBack
	// Healed: the last fault is over and nothing more will be broken. Orphans are judged from here.
	Healed
	// RegisterRead and RegisterWrite: the protected resource served a holder. Attempt, Key, Token, Value; for a write
	// Outcome is Acquired when it was accepted and Held when the resource refused the token.
	RegisterRead
	RegisterWrite
	// KeepLost and KeepBack bracket the time when Client (or every client) could not reach a majority of masters that
	// extend held locks. A client may have such a majority but none for acquisitions: a full master refuses new keys.
	KeepLost
	KeepBack
	// Stall: from At on, the machine gave a part of the run (a thread of this process, a client's process, a master) no
	// processor time for Value nanoseconds. Delays in that time say nothing about the lock. Note names the part.
	Stall
	// Slow: from At on, for Value nanoseconds, a master that no fault had changed kept the harness waiting for an
	// answer. A lock's own requests may have failed. Master, Note. Patience is the time that a lock gives the
	// request, or the harness if it gives less.
	Slow
	// Excused: the lock is not to blame for the loss of a hold (Attempt), or for lost updates of a register (Key). Note
	// says why. Without Attempt and Key nobody knows which masters were in reach. A run adds these events at its end:
	// it knows more than the other events show.
	Excused
)

var typeNames = []string{
	"", "acquire-call", "acquire-return", "extend-call", "extend-return", "release-call", "release-return",
	"done-closed", "stopped", "paused", "resumed", "removed", "key-found", "fault-on", "fault-off", "majority-lost",
	"majority-back", "healed", "register-read", "register-write", "keep-lost", "keep-back", "stall", "slow",
	"excused",
}

// Kind says how a key is held.
type Kind uint8

// The kinds of hold.
const (
	Plain Kind = iota
	Fenced
	Shared
	Exclusive
	Reentrant
)

var kindNames = []string{"plain", "fenced", "shared", "exclusive", "reentrant"}

// Outcome says how a call ended.
type Outcome uint8

// The outcomes. The zero value is a call that has not returned.
const (
	Pending Outcome = iota
	// Acquired: the call succeeded. Extensions, releases and writes use it too.
	Acquired
	// Held: another client has the key, or the hold is no longer the caller's.
	Held
	// NoQuorum: too few masters answered to decide.
	NoQuorum
	// Expired: a majority was won but its validity was used up, or a bound had passed.
	Expired
	// Cancelled: the caller's context ended first.
	Cancelled
	// Failed: any other error.
	Failed
	// Unsupported: the library can't do this.
	Unsupported
)

var outcomeNames = []string{"pending", "acquired", "held", "no-quorum", "expired", "cancelled", "error", "unsupported"}

// String gives the name used in encoded histories.
func (t Type) String() string { return name(typeNames, uint8(t)) }

// String gives the name used in encoded histories.
func (k Kind) String() string { return name(kindNames, uint8(k)) }

// String gives the name used in encoded histories.
func (o Outcome) String() string { return name(outcomeNames, uint8(o)) }

// MarshalText encodes the name.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// MarshalText encodes the name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// MarshalText encodes the name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText decodes a name; an unknown one is an error.
func (t *Type) UnmarshalText(b []byte) error {
	i, err := index("type", typeNames, string(b))
	*t = Type(i)
	return err
}

// UnmarshalText decodes a name; an unknown one is an error.
func (k *Kind) UnmarshalText(b []byte) error {
	i, err := index("kind", kindNames, string(b))
	*k = Kind(i)
	return err
}

// UnmarshalText decodes a name; an unknown one is an error.
func (o *Outcome) UnmarshalText(b []byte) error {
	i, err := index("outcome", outcomeNames, string(b))
	*o = Outcome(i)
	return err
}

func name(names []string, i uint8) string {
	if int(i) >= len(names) {
		return fmt.Sprintf("unknown-%d", i)
	}
	return names[i]
}

func index(what string, names []string, s string) (uint8, error) {
	i := slices.Index(names, s)
	if i < 0 || s == "" {
		return 0, fmt.Errorf("history: unknown %s %q", what, s)
	}
	return uint8(i), nil
}
