package redlock

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

const (
	// firstPause and maxPause bound the jittered backoff between two rounds of one waiter.
	firstPause = 2 * time.Millisecond
	maxPause   = 64 * time.Millisecond
	// splitRounds bounds, in rounds of the length of the last one, the pause after a round in which contenders shared the
	// votes: enough for a few of them to come one after the other. Without it rounds that take long, on a network or a
	// machine that is slow, would make pauses of many seconds.
	splitRounds = 4
	// notifiedPause takes the place of the backoff while a quorum of masters can notify the waiter: its turn then comes by
	// itself, and a backoff is for notifications that got lost.
	notifiedPause = 200 * time.Millisecond
	// refreshAfter is how soon after an attempt a waiter that masters notify tries again, however seldom it was asked to: they
	// keep its position in their queues for a minute, so two attempts fit into that, should one be lost. It also bounds for how
	// long a release goes unnoticed whose notification was lost, or went to a waiter that had died.
	refreshAfter = 24 * time.Second
	// claimAfter is the same for a waiter that lets no new readers in: its claim lasts for single.WriterClaim, so one of two may be lost.
	claimAfter = time.Second
	// minReserve and maxReserve bound for how long a release keeps the key for the waiter it notifies: for about as long
	// as the notification takes to arrive and the acquisition to come back.
	minReserve = 5 * time.Millisecond
	maxReserve = 500 * time.Millisecond
)

// pause is how long to wait after the n-th attempt ended with err: until a quorum can have become free by itself, or a
// jittered backoff, whichever is shorter; never nothing. took is how long the round took.
func (l *Locker) pause(err error, n int, took time.Duration) time.Duration {
	backoff := growing(n)
	if l.subscription.Subscribed() {
		backoff = notifiedPause
	}
	var q *QuorumError
	if errors.As(err, &q) && errors.Is(err, ErrHeld) {
		if split(q) {
			return l.spread(q, n, took)
		}
		if free := freeIn(q, false); free > 0 && free < backoff/2 {
			return free + l.opts.Jitter(firstPause) // every waiter knows this moment
		}
	}
	return halfJittered(l, backoff)
}

// spread is the pause after the n-th round if it was split. Contenders with more votes come back sooner, so that of many one soon has no
// competition. What sets them apart has to be as long as a round takes on this network, or they meet again.
func (l *Locker) spread(q *QuorumError, n int, took time.Duration) time.Duration {
	span := time.Duration(q.N-q.Granted) * max(firstPause, took) / time.Duration(q.N)
	return max(1, l.opts.Jitter(min(max(1, span)<<min(n-1, 5), max(maxPause, splitRounds*took))))
}

// growing is the backoff after the n-th round, without its jitter.
func growing(n int) time.Duration { return min(firstPause<<min(n-1, 10), maxPause) }

func halfJittered(l *Locker, d time.Duration) time.Duration { return d/2 + l.opts.Jitter(d/2) }

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

// keptFor is when so many of the keys in the way of a round, which nobody holds any more, will have expired that a quorum is possible; 0 if
// somebody does, or that is not known.
func keptFor(err error) time.Duration {
	var q *QuorumError
	if !errors.As(err, &q) || !errors.Is(err, ErrHeld) {
		return 0
	}
	return freeIn(q, true)
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
