package redlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// Holder is who holds a key, as a quorum of masters sees it.
type Holder struct {
	// Held says that a quorum agrees that somebody holds the key. Keys left on fewer masters are nobody's lock. Of a key
	// with several readers, masters tell only one and how many there are, so there it is enough that a quorum has any.
	Held bool
	// Owner is the holder's; of a shared key with several readers one of them, or "" if the masters name different ones.
	Owner string
	// Holds is how many holds there are: more than one for readers, or an owner that re-entered.
	Holds int
	// TTL is for how long a quorum keeps the key if nobody extends or releases it; negative if for ever.
	TTL time.Duration
	// Nodes is what each master said: Granted where the key is held, Refused where it is free.
	Nodes []NodeResult
}

// Holder asks all masters who holds key. It changes nothing, and what it returns may be outdated at once: do not
// decide by it whether to act. The error matches [ErrNoQuorum] when too few masters answered.
func (l *Locker) Holder(ctx context.Context, key string) (Holder, error) {
	if ctx == nil {
		return Holder{}, invalid("nil context")
	}
	if err := checkKey(key); err != nil {
		return Holder{}, err
	}
	s := &spec{keys: []string{key}, timeout: l.opts.requestTimeout(maxRequestTimeout * timeoutShare)}
	k, err := l.newLock(s)
	if err != nil {
		return Holder{}, err
	}
	defer l.forget(k) // an inspection leaves nothing behind
	r, err := k.run(ctx, single.Request{Op: single.Inspect, Keys: s.keys})
	if err != nil {
		return Holder{}, fmt.Errorf("redlock: holder of %q: %w", key, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.votes.granted+r.votes.refused < r.votes.quorum {
		return Holder{}, r.failure(ErrNoQuorum)
	}
	return r.holder(), nil
}

// Held asks the masters whether they still have this lock's key, and returns nil if a quorum does. A lock whose
// validity is over is not asked for: Held never says yes to what [Lock.Err] says no to.
func (k *Lock) Held(ctx context.Context) error {
	if err := k.Err(); err != nil {
		return err
	}
	if ctx == nil {
		return invalid("nil context")
	}
	// An extension by almost nothing changes nothing, and is granted just where the hold is there.
	r, err := k.run(ctx, k.request(single.Request{Op: single.Extend, TTL: time.Millisecond}))
	if err != nil {
		return fmt.Errorf("redlock: held %q: %w", k.Key(), err)
	}
	if err := k.Err(); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch r.verdict {
	case won:
		return nil
	case denied:
		return r.failure(ErrNotHeld)
	default:
		return r.failure(ErrNoQuorum)
	}
}

// inspected decides an inspection: as soon as a quorum says the same.
func (r *round) inspected() verdict {
	if r.votes.refused >= r.votes.quorum {
		return won
	}
	if owner, votes := r.commonOwner(); votes >= r.votes.quorum && owner != "" {
		return won
	}
	if r.votes.pending() == 0 {
		return won // there is nothing more to learn
	}
	return open
}

// commonOwner returns the owner that most masters name, and how many do.
func (r *round) commonOwner() (owner string, votes int) {
	for i := range r.ballots {
		if r.ballots[i].vote != Granted {
			continue
		}
		n := 0
		for j := range r.ballots {
			if r.ballots[j].vote == Granted && r.ballots[j].Reply.Holder == r.ballots[i].Reply.Holder {
				n++
			}
		}
		if n > votes {
			owner, votes = r.ballots[i].Reply.Holder, n
		}
	}
	return owner, votes
}

// holder reads the result of an inspection.
func (r *round) holder() Holder {
	h := Holder{Nodes: r.nodes()}
	owner, votes := r.commonOwner()
	var ttls []time.Duration
	for i := range r.ballots {
		b := &r.ballots[i]
		if b.vote != Granted {
			continue
		}
		h.Holds = max(h.Holds, int(b.Reply.Token))
		if b.Reply.TTL < 0 {
			b.Reply.TTL = 1<<63 - 1
		}
		ttls = append(ttls, b.Reply.TTL)
	}
	shared := h.Holds > 1 && len(ttls) >= r.votes.quorum
	if votes < r.votes.quorum && !shared {
		return Holder{Nodes: h.Nodes}
	}
	h.Held = true
	if votes >= r.votes.quorum {
		h.Owner = owner
	}
	slices.SortFunc(ttls, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	if h.TTL = ttls[r.votes.quorum-1]; h.TTL == 1<<63-1 {
		h.TTL = -1
	}
	return h
}
