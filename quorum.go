package redlock

import (
	"math/bits"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/inspect"
	"github.com/seed-624411e5/redlock/single"
)

// Quorum is the least number of n masters such that any two quorums share a master: floor(n/2)+1.
func Quorum(n int) int { return n/2 + 1 }

// Vote is one master's answer in one round.
type Vote uint8

// The votes. The zero value is a vote that has not been given.
const (
	// Pending: the master had not answered when the round was decided.
	Pending = Vote(hold.Pending)
	// Granted: the master did the operation.
	Granted = Vote(hold.Granted)
	// Refused: the master answered, and the answer was no.
	Refused = Vote(hold.Refused)
	// Unknown: an error or a timeout. The request may have taken effect.
	Unknown = Vote(hold.Unknown)
)

// String returns the vote in lower case.
func (v Vote) String() string {
	return [...]string{"pending", "granted", "refused", "unknown"}[v&3]
}

// newElectorate makes a set of masters that decides by quorum.
func newElectorate(name string, members uint64) hold.Set {
	return hold.Set{Name: name, Members: members, Quorum: Quorum(bits.OnesCount64(members))}
}

// electorates are the sets in which a configuration counts votes: one set of masters or, while masters are exchanged,
// the old and the new one. A vote counts in every set that its master belongs to, and a round is won only if it is
// won in every set. So any two rounds share a master if one is won in both sets and the other in either set. This is
// the joint consensus of Raft (Ongaro and Ousterhout, 2014, section 6) without its log; docs/understand/guarantees.md
// has the argument.
type electorates []hold.Set

// Majority implements [hold.Rules]: masters contain a quorum of every set.
func (s electorates) Majority(masters uint64) bool {
	for i := range s {
		if s[i].Of(masters) < s[i].Quorum {
			return false
		}
	}
	return true
}

// tally has the votes of one round: a bit for each master that has voted.
type tally = hold.Votes

// counts are the votes in one set.
type counts struct{ granted, refused, unknown, pending int }

func count(e *hold.Set, t *tally) counts {
	c := counts{granted: e.Of(t.Granted), refused: e.Of(t.Refused), unknown: e.Of(t.Unknown)}
	c.pending = e.Masters() - c.granted - c.refused - c.unknown
	return c
}

// verdict is the result of the votes so far.
type verdict = hold.Verdict

const (
	open     = hold.Open     // wait for more votes
	won      = hold.Won      // a quorum granted, in every set
	denied   = hold.Denied   // no quorum, because masters refused
	noQuorum = hold.NoQuorum // no quorum, because too few masters answered
)

// rules are the algorithm, for sets of masters and their clocks: how votes and time decide.
type rules struct {
	electorates
	drift
}

var _ hold.Rules = (*rules)(nil)

// Decisive implements [hold.Rules].
func (s electorates) Decisive(f *hold.Facts) int {
	for i := range s {
		if s[i:i+1].Judge(f.Op, f.Votes) == f.Verdict {
			return i
		}
	}
	return 0
}

// Judge implements [hold.Rules]: it returns the verdict of the votes so far in an operation.
func (s electorates) Judge(op single.Op, votes tally) verdict {
	switch op {
	case single.Acquire, single.Transfer, single.Raise:
		return s.acquired(&votes)
	case single.Release:
		return s.released(&votes)
	default:
		return s.extended(&votes)
	}
}

// Inspected implements [hold.Rules]: it decides who holds a key as soon as a quorum says the same. Of two sets, one set
// with a holder is enough, because no other owner can hold the key then. The verdict that the key is free takes both
// sets.
func (s electorates) Inspected(votes tally, answers []hold.Answer) verdict {
	pending := 0
	for i := range s {
		if inspect.Answers(answers).Agree(&s[i]) {
			return won
		}
		pending += count(&s[i], &votes).pending
	}
	if pending == 0 || s.Majority(votes.Refused) { // nothing more to learn, or free
		return won
	}
	return open
}

// acquired decides an acquisition. It is lost as soon as the grants can no longer reach a quorum of every set. Of a
// lost one it also says why, and always the same for the same answers: "denied" when a quorum of every set can be
// reached, so that waiting helps; "no quorum" when not, even if one of the few that answered refused.
func (s electorates) acquired(t *tally) verdict {
	wins, lost, reachable := true, false, true
	for i := range s {
		e := &s[i]
		c := count(e, t)
		if c.unknown > e.Spare() {
			return noQuorum
		}
		wins = wins && c.granted >= e.Quorum
		lost = lost || c.granted+c.pending < e.Quorum
		reachable = reachable && c.unknown+c.pending <= e.Spare()
	}
	return decide(wins, lost && reachable, denied)
}

// extended decides an extension. A master counts as granted only if the key was still there. "denied" is final: so
// many masters of a set have lost the key that no quorum of the rest can still hold it.
func (s electorates) extended(t *tally) verdict {
	wins, lost, kept := true, false, true
	for i := range s {
		e := &s[i]
		c := count(e, t)
		if c.refused > e.Spare() {
			return denied
		}
		wins = wins && c.granted >= e.Quorum
		lost = lost || c.granted+c.pending < e.Quorum
		kept = kept && c.refused+c.pending <= e.Spare()
	}
	return decide(wins, lost && kept, noQuorum)
}

// released decides a release: granted means "was there and is gone", refused "was not ours". It is won when a quorum
// of every set has confirmed that the key is gone and a majority of "not ours" has become impossible. It is denied on
// such a majority of any set, because another owner may have held the lock then.
func (s electorates) released(t *tally) verdict {
	wins, lost, ours := true, false, true
	for i := range s {
		e := &s[i]
		c := count(e, t)
		if c.refused >= e.Quorum {
			return denied
		}
		confirmed := c.granted + c.refused
		wins = wins && confirmed >= e.Quorum
		lost = lost || confirmed+c.pending < e.Quorum
		ours = ours && c.refused+c.pending < e.Quorum
	}
	return decide(wins && ours, lost && ours, noQuorum)
}

func decide(wins, loses bool, loss verdict) verdict {
	switch {
	case wins:
		return won
	case loses:
		return loss
	default:
		return open
	}
}
