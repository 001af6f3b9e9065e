package redlock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/internal/cause"
	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/inspect"
	"github.com/seed-624411e5/redlock/internal/owner"
)

// Holder is who holds a key, as a quorum of masters sees it.
type Holder struct {
	// Held says that one lock has the key on a quorum. A key left on fewer masters is no lock. In two cases Held only
	// means that a quorum has several holds. One master has more than 128 holds of the key, or a Master does not list
	// holds ([single.Reply].Holds).
	Held bool
	// Identity is the holder's [Options].Identity. It is "#" and ID if the holder is a [Reentrant] lock, or of a
	// program without identities. Of a shared key it is one of the readers, or "" if the masters name different ones.
	Identity string
	// ID tells the holder's lock from others. [Lock.ID] returns it to the holder itself, and so does a leader's term.
	ID string
	// Token and Value are the fencing token and the value of a [Published] lock, and 0 and "" of every other.
	Token uint64
	Value string
	// Holds is the number of locks that have the key on a quorum, as far as the masters that answered in time tell.
	// It is above one for readers, and for an owner that entered again. Above 128 it is the least number that a
	// quorum has.
	Holds int
	// TTL is how long a quorum keeps the key if the holder does not extend or release it; negative if the key has no
	// end.
	TTL time.Duration
	// Nodes is what each master said: Granted where the key is held, Refused where it is free.
	Nodes []NodeResult
}

// Holder asks all masters who holds key, and changes nothing. The result may be outdated at once: do not decide by it
// whether to act. It takes at most a second, or a longer [Options.RequestTimeout]. The error matches [ErrNoQuorum] when
// too few masters answered, and also [ErrMisconfigured] when asking again can't help; or [ErrInvalid] or [ErrClosed].
func (l *Locker) Holder(ctx context.Context, key string) (Holder, error) {
	if err := l.check(); err != nil {
		return Holder{}, err
	}
	if ctx == nil {
		return Holder{}, invalid("nil context")
	}
	if err := checkKey(key); err != nil {
		return Holder{}, err
	}
	full, err := l.onMasters(key)
	if err != nil {
		return Holder{}, err
	}
	s := &spec{locker: l}
	s.Keys, s.Timeout = []string{full}, l.opts.requestTimeout(maxRequestTimeout*timeoutShare)
	k := s.newLock("")
	if k == nil {
		return Holder{}, ErrClosed
	}
	r, f := k.hold.Inspect(ctx)
	if f != nil {
		if f.Fault == hold.Cancelled {
			return Holder{}, fmt.Errorf("redlock: holder of %s: %w", brief(key), cause.Of(ctx))
		}
		return Holder{}, k.failed(ctx, f)
	}
	return k.holder(r)
}

// holder reads the result of an inspection.
func (k *Lock) holder(r *hold.Result) (Holder, error) {
	l, sets := k.locker, k.locker.env.Sets
	h := Holder{Nodes: l.nodes(r, hold.EveryMaster, nil)}
	for i := range sets {
		var value string
		if value, h.Holds, h.TTL = inspect.Answers(r.Answers).Holder(&sets[i]); h.Holds > 0 {
			h.Held, h.Identity, h.ID = true, owner.Show(value), owner.Fingerprint(value)
			h.Token, h.Value, _ = owner.Published(value)
			return h, nil
		}
	}
	for i := range sets {
		if set := &sets[i]; set.Of(r.Votes.Granted|r.Votes.Refused) < set.Quorum {
			return Holder{}, l.notWon(l.crowd.Unreached(&k.spec.Acquisition, r, i))
		}
	}
	return h, nil
}

// Held is one lock that a Locker holds.
type Held struct {
	// Keys are the keys of one lock, sorted.
	Keys []string
	// ID is [Lock.ID]; it is no secret.
	ID string
	// Token is [Lock.Token].
	Token uint64
	// Since is when its acquisition began, Until when it ends if it is not extended; see [Lock.Until].
	Since, Until time.Time
	// Renewals is how often [AutoRenew] has extended it.
	Renewals int
}

// Held lists the locks that this Locker holds now, sorted by key: for a status page, for instance. It asks no master
// and delays no lock. The list may be outdated at once. Its cost grows with the number of locks.
func (l *Locker) Held() []Held {
	if l.check() != nil {
		return nil
	}
	var held []Held
	for _, k := range l.env.Registry.All() {
		if h, ok := l.describe(k); ok {
			held = append(held, h)
		}
	}
	slices.SortFunc(held, func(a, b Held) int { return slices.CompareFunc(a.Keys, b.Keys, strings.Compare) })
	return held
}

// describe returns the hold as Held shows it; ok is false if it is not held.
func (l *Locker) describe(k *hold.Hold) (h Held, ok bool) {
	wall := time.Now()
	d, ok := k.Held()
	if !ok {
		return Held{}, false
	}
	return Held{
		Keys: l.allShown(lockOf(k).spec.Keys), ID: owner.Fingerprint(k.Owner()), Token: d.Token,
		Since: wall.Add(d.Since - d.Now), Until: wall.Add(d.Until - d.Now), Renewals: d.Renewals,
	}, true
}
