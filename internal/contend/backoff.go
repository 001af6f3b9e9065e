package contend

import "time"

const (
	// FirstPause and MaxPause bound the jittered backoff between two rounds of one waiter.
	FirstPause = 2 * time.Millisecond
	MaxPause   = 64 * time.Millisecond
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
	// complainingShare and MaxComplainingPause make the pauses of a wait longer, the longer masters complain.
	complainingShare    = 8
	MaxComplainingPause = 5 * time.Second
)

// Jitter draws a random duration from 0 up to most. The order of draws is part of what a simulated schedule replays.
type Jitter func(most time.Duration) time.Duration

// half is a random duration in the upper half of d.
func (jitter Jitter) half(d time.Duration) time.Duration { return d/2 + jitter(d/2) }

// backoff is how long to wait after the n-th attempt: until a quorum can have become free by itself, or a jittered backoff,
// whichever is shorter; never nothing.
func (a *After) backoff(n int, jitter Jitter) time.Duration {
	backoff := min(FirstPause<<min(n-1, 10), MaxPause)
	if a.Subscribed {
		backoff = notifiedPause
	}
	switch {
	case a.Split:
		return a.Spread(n, a.Took, jitter)
	case a.Free > 0 && a.Free < backoff/2:
		return a.Free + jitter(FirstPause) // every waiter knows this moment
	default:
		return jitter.half(backoff)
	}
}

// Spread is the pause after the n-th round if it was split; took is how long the round took. Contenders with more votes come back
// sooner, so that of many one soon has no competition. What sets them apart has to be as long as a round takes on this network, or
// they meet again.
func (r *Refusal) Spread(n int, took time.Duration, jitter Jitter) time.Duration {
	span := time.Duration(r.Masters-r.Granted) * max(FirstPause, took) / time.Duration(r.Masters)
	return max(1, jitter(min(max(1, span)<<min(n-1, 5), max(MaxPause, splitRounds*took))))
}

// complainingPause is how long to wait at least before the next attempt once masters have complained for so long.
func complainingPause(complained time.Duration, jitter Jitter) time.Duration {
	return jitter.half(min(max(FirstPause, complained/complainingShare), MaxComplainingPause))
}
