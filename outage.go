package redlock

import (
	"errors"
	"time"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/single"
)

// outageLeft is how much of an outage, which may last for d, is left for a wait that began at since; d if there is none.
func (l *Locker) outageLeft(d, since, now time.Duration) time.Duration {
	began := time.Duration(l.unreached.Load())
	if began == 0 {
		return d
	}
	return max(began, since) + d - now
}

// reached takes note of how a round that began at start ended, for the sake of MaxOutage.
func (l *Locker) reached(err error, start time.Duration) {
	switch {
	case errors.Is(err, ErrMisconfigured): // masters enough could be reached, or what keeps them from it is no outage
	case errors.Is(err, ErrNoQuorum):
		l.unreached.CompareAndSwap(0, int64(max(1, start)))
	case l.unreached.Load() == 0:
	case err == nil, errors.Is(err, ErrHeld), errors.Is(err, ErrExpired):
		l.unreached.Store(0)
	}
}

// explain says of a round that reached no quorum whether a later one can. A replica behind a client that somebody brought
// may be a master that is failing over; one at an address given to Dial stays one. What a master that is down had before
// the acquisition's first request was sent may have been mended since, and does not count.
func (l *Locker) explain(err error, sent time.Time) {
	q, ok := errors.AsType[*QuorumError](err)
	if !ok || !errors.Is(q.Reason, ErrNoQuorum) {
		return
	}
	permanent := 0
	for _, node := range q.Nodes {
		if node.Err == nil || lane.Outdated(node.Err, sent) {
			continue
		}
		if single.Permanent(node.Err) || len(l.owned) > 0 && single.IsReplica(node.Err) {
			permanent++
		}
	}
	if permanent > q.N-q.Quorum {
		q.Reason = ErrMisconfigured
	}
}
