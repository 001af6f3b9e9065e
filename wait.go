package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

const (
	// firstPause and maxPause bound the jittered backoff between two rounds of one waiter.
	firstPause = 2 * time.Millisecond
	maxPause   = 64 * time.Millisecond
	// splitRounds bounds, in rounds of the length of the last one, the pause after a round in which contenders shared the
	// votes: enough for a few of them to come one after the other. Without it rounds that take long, on a network or a
	// machine that is slow, would make pauses of many seconds.
	splitRounds = 4
	// callablePause takes the place of the backoff while a quorum of masters can call the waiter: its turn then comes by
	// itself, and a backoff is for calls that got lost.
	callablePause = 200 * time.Millisecond
	// minReserve and maxReserve bound for how long a release keeps the key for the waiter it calls: for about as long
	// as the call takes to arrive and the acquisition to come back.
	minReserve = 5 * time.Millisecond
	maxReserve = 500 * time.Millisecond
)

// wait acquires by as many rounds as it takes, and says how many those were. since is when the wait began. Among the
// waiters of this Locker for one key only the first in line sends rounds. What enters a lock again, or may do so, does not
// stand in line: those before it may be waiting for the very lock that it is under.
func (l *Locker) wait(ctx context.Context, s *spec, since time.Duration) (k *Lock, rounds int, err error) {
	if s.reenters() {
		k, err := l.attempt(ctx, s, nil)
		if err == nil || !worthRetrying(err) || s.maxAttempts == 1 {
			return k, 1, err
		}
		rounds = 1
	}
	t := l.lines.enter(s, l.clock, since)
	defer func() {
		heir, vacant := l.lines.leave(t, k != nil)
		if heir && k != nil {
			k.mu.Lock()
			k.placed = true
			k.mu.Unlock()
		}
		if len(vacant) > 0 {
			l.goodbye(s, vacant)
		}
		if t.hears {
			l.ear.leave()
		}
	}()
	k, rounds, err = l.standInLine(ctx, s, t, rounds)
	if k == nil && err == nil {
		k, rounds, err = l.contend(ctx, s, t, rounds)
	}
	return k, rounds, err
}

// standInLine waits for t's turn, and returns neither a lock nor an error when it has come. What may be entering a lock
// again goes on asking meanwhile, as often as its backoff allows: the round with which it began may have failed because
// masters were silent, and those before it may be waiting for the very lock that it is under.
func (l *Locker) standInLine(ctx context.Context, s *spec, t *ticket, rounds int) (*Lock, int, error) {
	last := errInLine
	for t.turn != nil {
		pause := time.Duration(0) // until the turn comes
		if s.reenters() {
			pause = l.backoff(s, rounds)
		}
		if err := l.sleep(ctx, t.turn, pause); err != nil {
			return nil, rounds, &waitError{key: s.keys[0], ended: err, last: last}
		}
		select {
		case <-t.turn:
			return nil, rounds, nil
		default:
		}
		rounds++
		k, err := l.attempt(ctx, s, nil)
		if err == nil || !worthRetrying(err) || rounds == s.maxAttempts {
			return k, rounds, err
		}
		last = err
	}
	return nil, rounds, nil
}

// backoff is the jittered pause after the n-th round of one that hears of nothing.
func (l *Locker) backoff(s *spec, n int) time.Duration {
	if s.every > 0 {
		return s.every
	}
	return halfJittered(l, growing(n))
}

// growing is the backoff after the n-th round, without its jitter.
func growing(n int) time.Duration { return min(firstPause<<min(n-1, 10), maxPause) }

func halfJittered(l *Locker, d time.Duration) time.Duration { return d/2 + l.opts.Jitter(d/2) }

var errInLine = fmt.Errorf("%w: others of this process are first in line", ErrHeld)

// contend sends rounds until one is won or the wait ends, beginning to count after those already sent.
func (l *Locker) contend(ctx context.Context, s *spec, t *ticket, rounds int) (_ *Lock, _ int, _ error) {
	if d := l.lines.way(t); d > 0 {
		if err := l.sleep(ctx, l.lines.poked(t), d); err != nil {
			return nil, rounds, &waitError{key: s.keys[0], ended: err, last: errInLine}
		}
	}
	var last error
	for {
		rounds++
		l.lines.forgetCalls(t)
		t.tried = l.clock.Now()
		k, err := l.attempt(ctx, s, t)
		switch {
		case err == nil:
			return k, rounds, nil
		case worthRetrying(err):
			last = err
		case last != nil:
			return nil, rounds, &waitError{key: s.keys[0], ended: err, last: last}
		default:
			return nil, rounds, err
		}
		if rounds == s.maxAttempts {
			return nil, rounds, err
		}
		if !t.hears {
			t.hears = true
			l.ear.open()
		}
		if ended := l.sleep(ctx, l.lines.poked(t), l.pause(s, err, rounds, l.clock.Now()-t.tried)); ended != nil {
			return nil, rounds, &waitError{key: s.keys[0], ended: ended, last: err}
		}
	}
}

// goodbye takes this Locker out of the arrival queues of those keys of s that it no longer waits for. A release that has
// called it already is passed on to the next waiter.
func (l *Locker) goodbye(s *spec, keys []string) {
	k, err := l.newLock(s)
	if err != nil {
		return // being closed: the release that calls us does so once
	}
	defer l.forget(k) // it leaves nothing behind
	k.mu.Lock()
	request := k.request(single.Request{Op: single.Leave, Waiter: l.id, Reserve: l.reserve()})
	request.Keys = keys
	k.issue(k.newRound(request, nil))
}

// worthRetrying tells the ends of a round from the ends of the wait.
func worthRetrying(err error) bool {
	return errors.Is(err, ErrHeld) || errors.Is(err, ErrNoQuorum) || errors.Is(err, ErrExpired)
}

// sleep waits until signal is closed or sent to (nil: at once) or, if d is positive, until d has passed. It fails when
// ctx is done or the Locker is being closed.
func (l *Locker) sleep(ctx context.Context, signal <-chan struct{}, d time.Duration) error {
	if signal == nil {
		return nil
	}
	var passed chan struct{}
	if d > 0 {
		passed = make(chan struct{})
		defer l.clock.AfterFunc(d, func() { close(passed) }).Stop()
	}
	select {
	case <-signal:
	case <-passed:
	case <-l.closing:
		return ErrClosed
	case <-ctx.Done():
		return ended(ctx)
	}
	return nil
}

// waitError is a wait that ended without the lock: it matches why it ended, and what the last round said.
type waitError struct {
	key   string
	ended error
	last  error
}

func (e *waitError) Error() string {
	return fmt.Sprintf("redlock: gave up waiting for %q: %v; last attempt: %v", e.key, e.ended, e.last)
}

func (e *waitError) Unwrap() []error { return []error{e.ended, e.last} }

// pause is how long to wait after the n-th round failed with err: until a quorum can have become free by itself, or a
// jittered backoff, whichever is shorter; never nothing. took is how long the round took.
func (l *Locker) pause(s *spec, err error, n int, took time.Duration) time.Duration {
	if s.every > 0 {
		return s.every
	}
	backoff := growing(n)
	if l.ear.hears() {
		backoff = callablePause
	}
	var q *QuorumError
	if errors.As(err, &q) && errors.Is(err, ErrHeld) {
		if split(q) {
			// Those who got more masters come back sooner, so that of many contenders one soon has the others out of
			// its way. What sets them apart has to be as long as a round takes on this network, or they meet again.
			share := time.Duration(q.N-q.Granted) * max(firstPause, took) / time.Duration(q.N)
			return max(1, l.opts.Jitter(min(max(1, share)<<min(n-1, 5), max(maxPause, splitRounds*took))))
		}
		if free := freeIn(q); free > 0 && free < backoff/2 {
			return free + l.opts.Jitter(firstPause) // all who wait know this moment
		}
	}
	return halfJittered(l, backoff)
}

// split reports that the votes were shared out among contenders, so that nobody has the lock. When those that refused
// name one holder on a quorum, somebody has, and the rest of the masters merely have not heard of it.
func split(q *QuorumError) bool {
	if q.Granted == 0 {
		return false
	}
	holders := make(map[string]int, len(q.Nodes))
	for _, node := range q.Nodes {
		if node.Vote == Refused {
			holders[node.Holder]++
			if holders[node.Holder] >= q.Quorum {
				return false
			}
		}
	}
	return true
}

// reserve is for how long a release keeps the key for the waiter it calls.
func (l *Locker) reserve() time.Duration {
	return min(minReserve+3*l.slowest(), maxReserve)
}

// giveWay is for how long a waiter that a release has called is left alone with the masters: the call and its acquisition
// take about two round trips.
func (l *Locker) giveWay() time.Duration { return time.Millisecond + 2*l.slowest() }

// slowest is how far away the slowest master is.
func (l *Locker) slowest() time.Duration {
	var slowest time.Duration
	for _, lane := range l.lanes {
		slowest = max(slowest, lane.RTT())
	}
	return slowest
}

// freeIn is when so many of the keys in the way will have expired that a quorum is possible; 0 if that is not known.
func freeIn(q *QuorumError) time.Duration {
	ttls := make([]time.Duration, 0, len(q.Nodes))
	for _, node := range q.Nodes {
		if node.Vote == Refused && node.TTL > 0 {
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
