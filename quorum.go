package redlock

import (
	"math/bits"

	"github.com/seed-624411e5/redlock/internal/hold"
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

// electorate is one set of masters that decides by quorum: bit i of members is the Locker's i-th master.
type electorate struct {
	name      string // "" of the only one
	members   uint64
	n, quorum int
}

func newElectorate(name string, members uint64) electorate {
	n := bits.OnesCount64(members)
	return electorate{name: name, members: members, n: n, quorum: Quorum(n)}
}

// of returns the number of the given masters that belong to the electorate.
func (e *electorate) of(masters uint64) int { return bits.OnesCount64(masters & e.members) }

// spare returns the number of masters that a quorum can do without.
func (e *electorate) spare() int { return e.n - e.quorum }

// electorates are the sets in which a configuration counts votes: one set of masters or, while masters are exchanged,
// the old and the new one. A vote counts in every set that its master belongs to, and a round is won only if it is
// won in every set. So any two rounds share a master if one is won in both sets and the other in either set. This is
// the joint consensus of Raft (Ongaro and Ousterhout, 2014, section 6) without its log; docs/understand/guarantees.md
// has the argument.
type electorates []electorate

// majority reports that masters contain a quorum of every set.
func (s electorates) majority(masters uint64) bool {
	for i := range s {
		if s[i].of(masters) < s[i].quorum {
			return false
		}
	}
	return true
}

// tally has the votes of one round: a bit for each master that has voted.
type tally = hold.Votes

// counts are the votes in one set.
type counts struct{ granted, refused, unknown, pending int }

func (e *electorate) count(t *tally) counts {
	c := counts{granted: e.of(t.Granted), refused: e.of(t.Refused), unknown: e.of(t.Unknown)}
	c.pending = e.n - c.granted - c.refused - c.unknown
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

// rules are the algorithm, for a set of masters and its clocks: how votes and time decide.
type rules struct {
	electorates
	drift float64
}

var _ hold.Rules = (*rules)(nil)

// Judge implements [hold.Rules].
func (r *rules) Judge(op single.Op, votes tally) verdict { return r.judge(op, votes) }

// Majority implements [hold.Rules].
func (r *rules) Majority(masters uint64) bool { return r.majority(masters) }

// Decisive implements [hold.Rules].
func (r *rules) Decisive(f *hold.Facts) int {
	for i := range r.electorates {
		if r.electorates[i:i+1].judge(f.Op, f.Votes) == f.Verdict {
			return i
		}
	}
	return 0
}

// judge returns the verdict of the votes so far in an operation.
func (s electorates) judge(op single.Op, votes tally) verdict {
	switch op {
	case single.Acquire, single.Transfer, single.Raise:
		return s.acquired(&votes)
	case single.Release:
		return s.released(&votes)
	default:
		return s.extended(&votes)
	}
}

// acquired decides an acquisition. It is lost as soon as the grants can no longer reach a quorum of every set. Of a
// lost one it also says why, and always the same for the same answers: "denied" when a quorum of every set can be
// reached, so that waiting helps; "no quorum" when not, even if one of the few that answered refused.
func (s electorates) acquired(t *tally) verdict {
	wins, lost, reachable := true, false, true
	for i := range s {
		e := &s[i]
		c := e.count(t)
		if c.unknown > e.spare() {
			return noQuorum
		}
		wins = wins && c.granted >= e.quorum
		lost = lost || c.granted+c.pending < e.quorum
		reachable = reachable && c.unknown+c.pending <= e.spare()
	}
	return decide(wins, lost && reachable, denied)
}

// extended decides an extension. A master counts as granted only if the key was still there. "denied" is final: so
// many masters of a set have lost the key that no quorum of the rest can still hold it.
func (s electorates) extended(t *tally) verdict {
	wins, lost, kept := true, false, true
	for i := range s {
		e := &s[i]
		c := e.count(t)
		if c.refused > e.spare() {
			return denied
		}
		wins = wins && c.granted >= e.quorum
		lost = lost || c.granted+c.pending < e.quorum
		kept = kept && c.refused+c.pending <= e.spare()
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
		c := e.count(t)
		if c.refused >= e.quorum {
			return denied
		}
		confirmed := c.granted + c.refused
		wins = wins && confirmed >= e.quorum
		lost = lost || confirmed+c.pending < e.quorum
		ours = ours && c.refused+c.pending < e.quorum
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
