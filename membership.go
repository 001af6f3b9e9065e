package redlock

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/seed-624411e5/redlock/internal/address"
	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/single"
)

// This file exchanges masters: Lockers over two sets, and generations that stop a Locker with an old set; see
// internal/generation.

// Announce tells the masters that a configuration of this generation is in use, or soon will be. It returns nil once
// a quorum keeps the number, with [NewJoint] a quorum of each set. Lockers whose [Options].Generation is two or
// more behind then take no locks. Announce before the last step of an exchange of masters ([NewJoint]): a
// process that still has the old set then learns from it that its configuration is out of date.
//
// A Locker with a generation can't announce a number that is two or more ahead of it, since that would stop the
// Locker itself.
//
// A Locker that is two ahead takes locks at once, even before the announcement, and Lockers behind it may hold locks
// at the same time. Start it only after the announcement and a wait: an earlier answer holds for ten seconds, and a
// lock for its ttl.
//
// The error matches [ErrInvalid], [ErrNoQuorum] (and [ErrMisconfigured] where asking again can't help), [ErrOutdated]
// if a master knows a greater generation, [ErrClosed], or ctx's error. Some masters may have the number then.
// Announce takes at most a second, or [Options].RequestTimeout.
func (l *Locker) Announce(ctx context.Context, generation uint64) error {
	if err := l.check(); err != nil {
		return err
	}
	switch {
	case ctx == nil:
		return invalid("nil context")
	case generation == 0 || generation > single.MaxToken:
		return invalid("generation %d, and it must be from 1 to %d", generation, uint64(single.MaxToken))
	case l.opts.Generation > 0 && generation > l.opts.Generation+1:
		return invalid("generation %d is two or more ahead of this Locker's, %d: it would stop everybody who has "+
			"that one", generation, l.opts.Generation)
	case l.isClosing():
		return ErrClosed
	}
	generations := l.crowd.Generations
	a := generations.Announce(generation)
	if f := l.crowd.Sleep(ctx, l.closing, a.Decided, generations.Timeout); f != nil {
		return fmt.Errorf("redlock: announce generation %d: %w", generation, l.explain(ctx, nil, f))
	}
	switch answers := a.Answers(); {
	case answers.Greatest.Generation > generation:
		return l.outdatedBy(answers.Greatest, generation)
	case !answers.Won:
		return l.notWon(l.crowd.NotAnnounced(a, a.Sent))
	}
	return nil
}

// NewJoint makes a Locker over two sets of masters, for the time in which one set replaces the other. The sets may
// share masters; a shared master is the same Master in both lists. Every lock needs a quorum of each set, so this
// Locker excludes Lockers that [New] has made over one of the sets. Lockers over the old set and over the new set do
// not exclude each other, so exchange masters in two steps: first give every process both sets, then give every process
// the new set. Begin the second step when no process has the old set alone. [Options].Generation and [Locker.Announce]
// stop a process that was forgotten.
//
// In all else it works as New does. Errors in either list match [ErrInvalid], and so do two equal sets.
func NewJoint(before, after []Master, opts Options) (*Locker, error) {
	masters, sets, err := union(before, after)
	if err != nil {
		return nil, err
	}
	return newLocker(masters, sets, opts)
}

// DialJoint is [NewJoint] with URLs as [Dial] takes them. A master of both sets must have the same URL in both lists.
func DialJoint(ctx context.Context, before, after []string, opts Options) (*Locker, error) {
	return newDialing(ctx, opts).joint(before, after)
}

// joint makes a Locker over two sets.
func (d *dialing) joint(before, after []string) (*Locker, error) {
	old, next := d.dial(before, " (of the old masters)"), d.dial(after, " (of the new masters)")
	return d.locker(func() (*Locker, error) { return NewJoint(old, next, d.opts) })
}

// union returns the masters of both sets, each once, and the members of each set.
func union(before, after []Master) (masters []Master, sets electorates, err error) {
	if err := checkMasters(before); err != nil {
		return nil, nil, fmt.Errorf("%w (of the old masters)", err)
	}
	if err := checkMasters(after); err != nil {
		return nil, nil, fmt.Errorf("%w (of the new masters)", err)
	}
	masters = slices.Clone(before)
	var members uint64
	for _, m := range after {
		i := slices.IndexFunc(before, func(other Master) bool {
			return address.Fold(other.Name()) == address.Fold(m.Name())
		})
		switch {
		case i < 0:
			i = len(masters)
			masters = append(masters, m)
		case !identical(before[i], m):
			return nil, nil, invalid("%s is one of the old and of the new masters, and must be the same Master, or "+
				"have the same URL, in both lists", m.Name())
		}
		if i < maxMasters {
			members |= 1 << i
		}
	}
	if len(masters) > maxMasters {
		return nil, nil, invalid("%d old and new masters together, and %d is the most", len(masters), maxMasters)
	}
	old := hold.EveryMaster >> (maxMasters - len(before))
	if members == old {
		return nil, nil, invalid("the old and the new masters are the same: make the Locker with one set")
	}
	return masters, electorates{newElectorate("old", old), newElectorate("new", members)}, nil
}

// identical reports that both are one Master. Values that can't be compared, because of their type or their contents,
// are not identical.
func identical(a, b Master) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}
