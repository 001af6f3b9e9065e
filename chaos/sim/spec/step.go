package spec

import (
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// This file has the words of a run. The rules are in the other three files.

// Kind is the kind of a step. Steps of a master have its number and time, all others a client's.
type Kind uint8

// The steps.
const (
	Send     Kind = iota // a client sends a Request to Master, as a part of Round; Accept numbers the Message
	Perform              // a master performs Part of the Message, and Keys are its data then
	Read                 // a client reads the Reply to the Message or, if Failed, will read none
	Save                 // a master's data are on its disk, under the number Call
	Forget               // a master loses its data but those of that number; the Unguarded votes at once
	Ask                  // a caller asks for the keys Names for TTL; Calls have numbers of their own
	Answered             // it holds them as Owner with a Token until Bound, or gets an Error
	Extend               // it asks for TTL from now
	Extended             // it is told, or sees without having Asked, that its Bound has moved; or it gets an Error
	Free                 // it releases them
	Freed                // it is told that nobody has them from it any more, or gets an Error
	Done                 // Done closes by itself
	Kinds                // how many there are
)

func (k Kind) String() string {
	return [Kinds]string{
		"send", "perform", "read", "save", "forget", "ask", "answered", "extend", "extended", "free", "freed", "done",
	}[k]
}

// Part names an atomic action of a master: a whole script, the SET NX of a pipeline, or its ZADD GT.
type Part uint8

// The parts.
const (
	Script Part = iota
	SetNX
	Count
)

// Error is the reason for a failure.
type Error uint8

// The errors. Held is also contended; Other comes from no round.
const (
	None Error = iota
	Held
	NoQuorum
	Expired
	NotHeld
	Other
)

// Key is a master's data at a key: the owner of a plain lock, its remaining time, and the counter of a fenced lock.
type Key struct {
	Owner   string
	Left    time.Duration
	Counter uint64
}

// Step is one step of a run. Each kind has some of the fields.
type Step struct {
	Kind                    Kind
	Part                    Part
	Error                   Error
	At, TTL, Grace, Bound   time.Duration // At: by the actor's own clock
	Client, Master, Message int
	Round                   any // equal for the messages of one round
	Request                 *single.Request
	Reply                   single.Reply
	Keys                    []Key
	Names                   []string // sorted
	Owner                   string
	Call, Token             uint64
	Granted, Refused        uint64 // the votes that an Error names, a bit for each master
	Failed, Unsent          bool   // there is no reply; the message never left
	Again, Unguarded        bool   // the network has repeated the message; the master votes at once
	Fenced, Bounded, Asked  bool   // Bounded: by MaxHold
}

// outcome splits the outcome of a reply. All are false without a reply.
func (x *Step) outcome() (yes, no, repaired bool) {
	o := x.Reply.Outcome
	return !x.Failed && o == single.Granted, !x.Failed && o == single.Refused, !x.Failed && o == single.Repaired
}
