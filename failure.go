package redlock

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/internal/contend"
	"github.com/seed-624411e5/redlock/single"
)

// failure is why an operation failed. Its kind and its votes decide what happens next. The error is only for the
// caller: whatever its tree contains, such as the cause of a context that ended, decides nothing.
type failure struct {
	kind failureKind
	err  error
	q    *QuorumError // what err is or wraps if votes were counted, and nil otherwise
}

type failureKind uint8

const (
	failOtherwise  failureKind = iota // the context has ended, the Locker is closed, or the caller has made a mistake
	failHeld                          // another owner has the key
	failNotHeld                       // the masters do not have the key that was to be continued
	failUnreached                     // too few masters answered
	failLate                          // granted, but too late to be of use
	failOutdated                      // the configuration of masters is out of date
	failPassed                        // no attempt is needed: the waiter is being passed a lock
	failPassedLate                    // the lock that the waiter was passed is over, and the wait goes on
)

// failureReasons are the errors of failures that masters decided.
var failureReasons = [...]error{
	failHeld: ErrHeld, failNotHeld: ErrNotHeld, failUnreached: ErrNoQuorum, failLate: ErrExpired,
}

func failed(err error) *failure { return &failure{err: err} }

func failedVotes(kind failureKind, q *QuorumError) *failure { return &failure{kind, q, q} }

// error returns the error for the caller; nil for no failure.
func (f *failure) error() error {
	if f == nil {
		return nil
	}
	return f.err
}

// lasts returns for how long masters' complaints make attempts fail.
func (f *failure) lasts() single.Lasting {
	if f.q == nil {
		return single.Passing
	}
	return f.q.lasts
}

// is reports that f is a failure of this kind. No failure is of none.
func (f *failure) is(kind failureKind) bool { return f != nil && f.kind == kind }

// refusal returns the parts of the failure that a waiter needs.
func (f *failure) refusal() contend.Refusal {
	r := contend.Refusal{Held: f.kind == failHeld, Mendable: f.lasts() == single.Mendable}
	if q := f.q; q != nil && r.Held {
		r.Split, r.Granted, r.Masters = split(q), q.Granted, q.N
		r.Free, r.Kept = freeIn(q, false), freeIn(q, true)
	}
	return r
}

// split reports that contenders share the votes, so that none has the lock. If the masters that refused name one
// holder on a quorum, that holder has the lock, and its requests have not yet reached the other masters.
func split(q *QuorumError) bool {
	if q.Granted == 0 {
		return false
	}
	holders := make(map[uint64]int, len(q.Nodes))
	for _, node := range q.Nodes {
		if node.Vote == Refused {
			holders[node.value]++
			if holders[node.value] >= q.Quorum {
				return false
			}
		}
	}
	return true
}

// freeIn returns the time until enough of the blocking keys have expired for a quorum; 0 if that is not known. If
// kept is true, it counts only keys that are kept after their release.
func freeIn(q *QuorumError, kept bool) time.Duration {
	ttls := make([]time.Duration, 0, len(q.Nodes))
	for _, node := range q.Nodes {
		if node.Vote == Refused && node.TTL > 0 && (node.kept || !kept) {
			ttls = append(ttls, node.TTL)
		}
	}
	need := q.Quorum - q.Granted
	if need < 1 || len(ttls) < need {
		return 0
	}
	slices.SortFunc(ttls, cmp.Compare[time.Duration])
	return ttls[need-1] + time.Millisecond // keys expire on the millisecond after
}
