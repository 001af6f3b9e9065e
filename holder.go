package redlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/internal/cause"
	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/single"
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
// whether to act. The error matches [ErrNoQuorum] when too few masters answered, and also [ErrMisconfigured] when
// asking again can't help.
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

// inspection has the masters' answers to the question who holds a key.
type inspection []hold.Answer

// Inspected implements [hold.Rules]. It decides an inspection as soon as a quorum says the same. Of two sets, one set
// with a holder is enough, because no other owner can hold the key then. The verdict that the key is free takes both
// sets.
func (r *rules) Inspected(votes hold.Votes, answers []hold.Answer) verdict {
	if r.majority(votes.Refused) {
		return won
	}
	pending := 0
	for i := range r.electorates {
		set := &r.electorates[i]
		if value, n := inspection(answers).commonOwner(set); n >= set.quorum && value != "" {
			if n, _ := inspection(answers).commonHolds(set); n > 0 {
				return won
			}
		}
		pending += set.count(&votes).pending
	}
	if pending == 0 {
		return won // there is nothing more to learn
	}
	return open
}

// holds reports that master i belongs to set and has answered that the key is held.
func (r inspection) holds(set *electorate, i int) bool {
	return r[i].Vote == hold.Granted && set.members&(1<<i) != 0
}

// commonOwner returns the owner that most masters of set name, and how many do.
func (r inspection) commonOwner(set *electorate) (value string, votes int) {
	for i := range r {
		if !r.holds(set, i) {
			continue
		}
		n := 0
		for j := range r {
			if r.holds(set, j) && r[j].Reply.Holder == r[i].Reply.Holder {
				n++
			}
		}
		if n > votes {
			value, votes = r[i].Reply.Holder, n
		}
	}
	return value, votes
}

// commonHolds counts the holds that a quorum of set has, and reports whether every master of set has listed all of
// its holds.
func (r inspection) commonHolds(set *electorate) (n int, all bool) {
	counts := make(map[string]int)
	all = true
	for i := range r {
		b := &r[i]
		if !r.holds(set, i) {
			continue
		}
		told := 1
		if b.Reply.Holds == nil { // a plain key, whose owner is its hold, or a Master that tells no more
			counts[b.Reply.Holder]++
		} else {
			told = len(*b.Reply.Holds) / single.HoldPrint
			for hold := range slices.Chunk([]byte(*b.Reply.Holds), single.HoldPrint) {
				counts[string(hold)]++
			}
		}
		all = all && uint64(told) >= b.Reply.Token
	}
	for _, masters := range counts {
		if masters >= set.quorum {
			n++
		}
	}
	return n, all
}

// holder reads the result of an inspection.
func (k *Lock) holder(r *hold.Result) (Holder, error) {
	sets := k.locker.sets
	for i := range sets {
		if h := inspection(r.Answers).holderIn(&sets[i]); h.Held {
			h.Nodes = k.locker.nodes(r, hold.EveryMaster)
			return h, nil
		}
	}
	for i := range sets {
		if set := &sets[i]; set.of(r.Votes.Granted|r.Votes.Refused) < set.quorum {
			return Holder{}, k.locker.notWon(k.locker.crowd.Unreached(&k.spec.Acquisition, r, i))
		}
	}
	return Holder{Nodes: k.locker.nodes(r, hold.EveryMaster)}, nil
}

// holderIn returns the holder of the key on a quorum of set.
func (r inspection) holderIn(set *electorate) (h Holder) {
	value, votes := r.commonOwner(set)
	var ttls []time.Duration
	var holds []int
	for i := range r {
		b := &r[i]
		if !r.holds(set, i) {
			continue
		}
		holds = append(holds, int(b.Reply.Token))
		ttl := b.Reply.TTL
		if ttl < 0 {
			ttl = 1<<63 - 1
		}
		ttls = append(ttls, ttl)
	}
	if len(holds) < set.quorum {
		return h
	}
	slices.SortFunc(holds, func(a, b int) int { return cmp.Compare(b, a) })
	n, all := r.commonHolds(set)
	if h.Holds = n; !all { // then as many as a quorum has, if it has several
		h.Holds = max(n, holds[set.quorum-1])
	}
	if h.Holds == 0 || n == 0 && h.Holds < 2 {
		return Holder{}
	}
	h.Held = true
	if votes >= set.quorum {
		h.Identity, h.ID = owner.Show(value), owner.Fingerprint(value)
		h.Token, h.Value, _ = owner.Published(value)
	}
	slices.SortFunc(ttls, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	if h.TTL = ttls[set.quorum-1]; h.TTL == 1<<63-1 {
		h.TTL = -1
	}
	return h
}
