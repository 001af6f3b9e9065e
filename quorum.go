package redlock

// Quorum is the least number of n masters of which any two sets share a master: floor(n/2)+1. So many have to agree.
func Quorum(n int) int { return n/2 + 1 }

// Vote is one master's answer in one round.
type Vote uint8

// The votes. The zero value is a vote that has not been given.
const (
	// Pending: the master had not answered when the round was decided.
	Pending Vote = iota
	// Granted: the master did what it was asked.
	Granted
	// Refused: the master answered, and the answer was no.
	Refused
	// Unknown: an error or a timeout. The request may have taken effect.
	Unknown
)

// String returns the vote in lower case.
func (v Vote) String() string {
	return [...]string{"pending", "granted", "refused", "unknown"}[v&3]
}

// tally counts the votes of one round.
type tally struct {
	n, quorum                 int
	granted, refused, unknown int
}

func newTally(n int) tally { return tally{n: n, quorum: Quorum(n)} }

func (t *tally) add(v Vote) {
	switch v {
	case Granted:
		t.granted++
	case Refused:
		t.refused++
	case Unknown:
		t.unknown++
	}
}

// pending is how many masters have not voted yet.
func (t tally) pending() int { return t.n - t.granted - t.refused - t.unknown }

// spare is how many masters a quorum can do without.
func (t tally) spare() int { return t.n - t.quorum }

// verdict is what the votes so far amount to.
type verdict uint8

const (
	open     verdict = iota // wait for more votes
	won                     // a quorum granted
	denied                  // no quorum, because masters refused
	noQuorum                // no quorum, because too few masters answered
)

// acquired decides an acquisition. It is lost as soon as the grants can no longer reach the quorum. Of a lost one it
// also says why, and always the same for the same answers: "denied" when a quorum of masters can be reached, so that
// waiting helps; "no quorum" when not, even if one of the few that answered refused.
func (t tally) acquired() verdict {
	switch {
	case t.granted >= t.quorum:
		return won
	case t.granted+t.pending() >= t.quorum:
		return open
	case t.unknown > t.spare():
		return noQuorum
	case t.unknown+t.pending() <= t.spare():
		return denied
	default:
		return open
	}
}

// extended decides an extension, in which only masters where the key was still there count as granted. "denied" is
// final: so many masters have lost the key that no quorum of the rest can still hold it.
func (t tally) extended() verdict {
	switch {
	case t.granted >= t.quorum:
		return won
	case t.refused > t.spare():
		return denied
	case t.granted+t.pending() < t.quorum && t.refused+t.pending() <= t.spare():
		return noQuorum
	default:
		return open
	}
}

// released decides a release: granted means "was there and is gone", refused "was not ours". It is won when a quorum
// has confirmed that the key is gone and a majority of "not ours" has become impossible; denied on such a majority,
// for then somebody else may have held the lock.
func (t tally) released() verdict {
	confirmed := t.granted + t.refused
	switch {
	case t.refused >= t.quorum:
		return denied
	case confirmed >= t.quorum && t.refused+t.pending() < t.quorum:
		return won
	case confirmed+t.pending() < t.quorum || t.pending() == 0:
		return noQuorum
	default:
		return open
	}
}
