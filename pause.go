package redlock

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/internal/contend"
	"github.com/seed-624411e5/redlock/single"
)

const (
	// minReserve and maxReserve bound for how long a release keeps the key for the waiter it notifies: for about as long
	// as the notification takes to arrive and the acquisition to come back.
	minReserve = 5 * time.Millisecond
	maxReserve = 500 * time.Millisecond
)

// refusalOf is what counts for a waiter of how an attempt has failed.
func refusalOf(err error) contend.Refusal {
	r := contend.Refusal{Held: errors.Is(err, ErrHeld), Mendable: lastingOf(err) == single.Mendable}
	if q, ok := errors.AsType[*QuorumError](err); ok && r.Held {
		r.Split, r.Granted, r.Masters = split(q), q.Granted, q.N
		r.Free, r.Kept = freeIn(q, false), freeIn(q, true)
	}
	return r
}

// split reports that the votes were shared out among contenders, so that nobody has the lock. When those that refused
// name one holder on a quorum, somebody has, and its requests have not reached the rest of the masters.
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

// reserve is for how long a release keeps the key for the waiter it notifies.
func (l *Locker) reserve() time.Duration {
	return min(minReserve+3*l.slowest(), maxReserve)
}

// giveWay is for how long a waiter that a release has notified is left alone with the masters: the notification and its
// acquisition take about two round trips.
func (l *Locker) giveWay() time.Duration { return time.Millisecond + 2*l.slowest() }

// slowest is how far away the slowest master is.
func (l *Locker) slowest() time.Duration {
	var slowest time.Duration
	for _, lane := range l.lanes {
		slowest = max(slowest, lane.RTT())
	}
	return slowest
}

// freeIn is when so many of the keys in the way will have expired that a quorum is possible; 0 if that is not known. Only those count that are
// kept, if it is so.
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

// outageLeft is how much of an outage, which may last for d, is left for a wait that began at since; d if there is none.
func (l *Locker) outageLeft(d, since, now time.Duration) time.Duration {
	began := time.Duration(l.unreached.Load())
	if began == 0 {
		return d
	}
	return max(began, since) + d - now
}

// reached takes note of how a round that began at start ended, for the sake of MaxOutage and of waits in which masters complain. s is what
// was asked for; nil if it was no lock.
func (l *Locker) reached(s *spec, err error, start time.Duration) {
	answered := err == nil || errors.Is(err, ErrHeld) || errors.Is(err, ErrExpired)
	switch {
	case answered:
		if l.unreached.Load() != 0 {
			l.unreached.Store(0)
		}
		if s != nil {
			l.complaining.end(s)
		}
	case errors.Is(err, ErrMisconfigured): // masters enough could be reached, or what keeps them from it is no outage
	case errors.Is(err, ErrNoQuorum):
		l.unreached.CompareAndSwap(0, int64(max(1, start)))
	}
}
