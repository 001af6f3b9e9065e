package redlock

import (
	"context"
	"fmt"

	"github.com/seed-624411e5/redlock/single"
)

// Fencing tokens by majority.
//
// Each master keeps a counter F for the key. A grant sets F = max(F+1, p) for the proposal p of the client, and returns
// it. Let T be the greatest value among the grants that were counted. If a quorum returned exactly T, T is the token.
// Otherwise one more round raises F to T on the masters where the key is still ours, and T is the token once a quorum
// has accepted.
//
// So whenever T is a token, F ≥ T on a quorum. A later acquisition is granted by a quorum too; the two share a master,
// and what that one returns is above its F. So the later acquisition's greatest value is above T: tokens are unique,
// and follow the order of acquisitions, whatever clocks and networks do. Only masters that lose their counters break
// the chain; then the proposal, the wall clock in microseconds, makes it unlikely that tokens fall behind.

// Token returns the fencing token of a lock acquired with [Fenced], and 0 of any other. A resource that keeps the
// greatest token it has seen, and refuses smaller ones, is safe from holders whose lock is long over.
func (k *Lock) Token() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.token
}

// saneToken is the greatest token that a wall clock can have meant: the year 2112. A clock beyond it is wrong, and must
// not use up the numbers that are left, of this key or, through this Locker's memory, of others.
const saneToken = single.MaxToken / 2

// propose returns what to propose as a token: above every token this Locker has seen, and not behind the wall clock.
func (l *Locker) propose() uint64 {
	wall := uint64(max(0, l.clock.Wall().UnixMicro()))
	if wall > saneToken {
		wall = 0
	}
	return max(wall, l.tokens.Load()+1)
}

// seen notes a token so that the next proposal is above it. Refusals tell counters too.
func (l *Locker) seen(token uint64) {
	for token <= saneToken {
		last := l.tokens.Load()
		if token <= last || l.tokens.CompareAndSwap(last, token) {
			return
		}
	}
}

// greatest returns the greatest token among the counted grants, and whether a quorum returned just that. The caller
// holds the lock's mutex.
func (r *round) greatest() (token uint64, agreed bool) {
	count := 0
	for i := range r.ballots {
		b := &r.ballots[i]
		switch {
		case b.vote != Granted:
		case b.Reply.Token > token:
			token, count = b.Reply.Token, 1
		case b.Reply.Token == token:
			count++
		}
	}
	return token, count >= r.votes.quorum
}

// fence finds the token of a lock whose acquisition r was won, with one more round if the masters' counters differ. On
// error nothing has been released yet.
func (k *Lock) fence(ctx context.Context, r *round) error {
	k.mu.Lock()
	token, agreed := r.greatest()
	if token > single.MaxToken {
		k.mu.Unlock()
		return fmt.Errorf("redlock: acquire %q: the fencing counter %d is above %d", k.Key(), token, uint64(single.MaxToken))
	}
	k.token = token
	if agreed || k.locker.opts.Sabotage.MaxToken {
		k.mu.Unlock()
		return nil
	}
	k.mu.Unlock()
	raise, err := k.run(ctx, k.request(single.Request{Op: single.Raise, Token: token}))
	if err != nil {
		return fmt.Errorf("redlock: acquire %q: %w", k.Key(), err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch raise.verdict {
	case won:
		return nil
	case denied:
		return raise.failure(ErrHeld)
	default:
		return raise.failure(ErrNoQuorum)
	}
}
