package contend

import (
	"cmp"
	"errors"
	"hash/maphash"
	"net"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/single"
)

// Failure is why an attempt or a wait got no lock. What it says decides what happens next. Package redlock makes the
// error for the caller of it, and no error decides anything.
type Failure struct {
	hold.Failure
	Kind Kind

	// Of a round that was not won:
	Set        int            // the set of masters that decided
	Lasts      single.Lasting // for how long masters' complaints make rounds fail
	Complaints map[int]error  // of masters of Set, if they leave no quorum
	Contended  bool           // the votes of a try stayed split, and no owner has the lock

	End, Last *Failure // what ended the wait, and how its latest attempt has failed
}

// Kind says where a failure comes from.
type Kind uint8

// The kinds of failures.
const (
	Round        Kind = iota // an operation of a hold, or an announcement, has failed; Fault says why
	Stopped                  // the context has ended while the waiter slept
	Asking                   // End came while the masters were asked for their generation
	Outdated                 // the configuration of masters is out of date
	Passing                  // no attempt is needed: the waiter is being passed a lock
	PassedLate               // the lock that the waiter was passed is over, and the wait goes on
	Behind                   // others of this process are first in the queue
	BehindOutage             // and they reach no quorum
	Yielding                 // others are let go first
	OutageOver               // the masters were out of reach for MaxOutage
	GaveUp                   // End ended the wait, after Last
)

// The failures without details.
var (
	closed     = &Failure{Failure: hold.Failure{Fault: hold.Closed}}
	stopped    = &Failure{Kind: Stopped}
	passing    = &Failure{Kind: Passing}
	passedLate = &Failure{Kind: PassedLate}
)

// is reports that f is of a round, with this fault. No failure is of none.
func (f *Failure) is(fault hold.Fault) bool { return f != nil && f.Kind == Round && f.Fault == fault }

// held reports that others have the key or contend for it, or come first in this process.
func (f *Failure) held() bool { return f.is(hold.Refusal) || f.Kind == Behind || f.Kind == Yielding }

// Failed returns the failure of an operation of a hold; nil for none.
func (c *Crowd) Failed(a *Acquisition, f *hold.Failure) *Failure {
	switch {
	case f == nil:
		return nil
	case f.Result == nil:
		return &Failure{Failure: *f}
	case f.Fault == hold.Unreached:
		return c.Unreached(a, f.Result, c.env.Decisive(&f.Result.Facts))
	default:
		return &Failure{Failure: *f, Set: c.env.Decisive(&f.Result.Facts)}
	}
}

// Unreached is the failure of a round that too few masters of a set answered: of that set unless masters of another
// complain so much that it can't be reached at all.
func (c *Crowd) Unreached(a *Acquisition, r *hold.Result, set int) *Failure {
	f := &Failure{
		Failure: hold.Failure{Fault: hold.Unreached, Op: r.Op, Verifies: r.Verifies, Result: r}, Set: set,
	}
	a.complaints.blame(f, c.env.Sets, r.Since, r.Sent)
	return f
}

// Refusal returns the parts of the failure that a waiter needs.
func (f *Failure) Refusal(sets []hold.Set) Refusal {
	r := Refusal{Held: f.held(), Mendable: f.Lasts == single.Mendable}
	if f.is(hold.Refusal) {
		set := &sets[f.Set]
		r.Granted, r.Masters = set.Of(f.Result.Votes.Granted), set.Masters()
		r.Split = f.split(set)
		r.Free, r.Kept = f.freeIn(set, false), f.freeIn(set, true)
	}
	return r
}

// refusals calls do with each refusal of a master of the set.
func (f *Failure) refusals(set *hold.Set, do func(*hold.Answer)) {
	for i := range f.Result.Answers {
		if a := &f.Result.Answers[i]; set.Of(1<<i) > 0 && a.Vote == hold.Refused {
			do(a)
		}
	}
}

// split reports that contenders share the votes, so that none has the lock. If the masters that refused name one
// holder on a quorum, that holder has the lock, and its requests have not yet reached the other masters.
func (f *Failure) split(set *hold.Set) bool {
	if set.Of(f.Result.Votes.Granted) == 0 {
		return false
	}
	split, holders := true, make(map[uint64]int)
	f.refusals(set, func(a *hold.Answer) {
		value := ownerHash(a.Reply.Holder)
		holders[value]++
		split = split && holders[value] < set.Quorum
	})
	return split
}

// freeIn returns the time until enough of the blocking keys have expired for a quorum; 0 if that is not known. If
// kept is true, it counts only keys that are kept after their release. Masters always know how long these live, so 0
// means that such a key expires in this millisecond.
func (f *Failure) freeIn(set *hold.Set, kept bool) time.Duration {
	var ttls []time.Duration
	f.refusals(set, func(a *hold.Answer) {
		ttl := a.Reply.TTL
		if !kept && ttl > 0 || kept && ttl >= 0 && owner.Kept(a.Reply.Holder) {
			ttls = append(ttls, ttl)
		}
	})
	need := set.Quorum - set.Of(f.Result.Votes.Granted)
	if need < 1 || len(ttls) < need {
		return 0
	}
	slices.SortFunc(ttls, cmp.Compare[time.Duration])
	return ttls[need-1] + time.Millisecond // keys expire on the millisecond after
}

// blockingKeys returns the keys that refusing masters named, the most frequent key first. A round for one key names
// none.
func (f *Failure) blockingKeys(set *hold.Set) (keys []string) {
	if len(f.Result.Keys) == 1 {
		return nil
	}
	named := make(map[string]int)
	f.refusals(set, func(a *hold.Answer) {
		if key := a.Reply.Key; key != "" {
			if named[key]++; named[key] == 1 {
				keys = append(keys, key)
			}
		}
	})
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(named[b]-named[a], cmp.Compare(a, b)) })
	return keys
}

// holders are the owners that have the key which is in the way, as hashes. claims reports that no new readers get in
// there.
func (f *Failure) holders(set *hold.Set) (owners []uint64, claims bool) {
	blocking := f.blockingKeys(set)
	f.refusals(set, func(a *hold.Answer) {
		value := ownerHash(a.Reply.Holder)
		inWay := len(f.Result.Keys) == 1 || len(blocking) == 0 && a.Reply.Key == "" ||
			len(blocking) > 0 && a.Reply.Key == blocking[0]
		if inWay && value != 0 && !slices.Contains(owners, value) {
			owners = append(owners, value)
		}
		claims = claims || a.Reply.Claimed
	})
	return owners, claims
}

// late reports that masters enough for a quorum have granted or not answered. The others have answered with an error.
func (f *Failure) late(set *hold.Set) bool {
	late := 0
	for i := range f.Result.Answers {
		a, err := &f.Result.Answers[i], f.Complaints[i]
		if err == nil && a.Vote == hold.Unknown {
			err = a.Err
		}
		timeout, is := errors.AsType[net.Error](err)
		if set.Of(1<<i) > 0 && (err == nil && a.Vote != hold.Refused || errors.Is(err, single.ErrLate) ||
			is && timeout.Timeout()) {
			late++
		}
	}
	return late >= set.Quorum
}

// valueSeed seeds the hashes that compare owner values where the values must not be kept.
var valueSeed = maphash.MakeSeed()

// ownerHash tells an owner from others; 0 means no owner. Masters cut very long owners off.
func ownerHash(owner string) uint64 {
	if owner == "" {
		return 0
	}
	return max(1, maphash.String(valueSeed, owner[:min(len(owner), maxTold)]))
}

// maxTold is the length to which masters shorten an owner value in replies; the scripts know it, too.
const maxTold = 16 << 10
