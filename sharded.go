package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Group is one independent set of masters of a [Sharded].
type Group struct {
	// Name decides together with a key's whether the key belongs to this group. It must never change, be the same in every
	// process, and may outlive the masters: give a number or a place, not an address.
	Name string
	// Locker votes over the group's masters. It is closed with the Sharded.
	Locker *Locker
}

// ShardedOptions configure a Sharded. The zero value is for a set of groups that does not change.
type ShardedOptions struct {
	// Before and After name the groups among which keys are spread before and after a change of groups, and make this
	// Sharded one of the transition: a key whose group is not the same in both is locked in both. See [Sharded].
	// Default: all groups.
	Before, After []string
}

// Sharded spreads keys over independent groups of masters, so that throughput grows with their number: a key belongs
// to one group, whose quorum alone decides about it. Which one is decided by rendezvous hashing of the groups' names
// and the key's hash tag: the part between the first '{' and the next '}', as in a Redis Cluster, or the whole key if
// there is none. Locks on several keys ([AndKeys]) need keys of one group, which a common hash tag makes sure of.
//
// # Adding and removing groups
//
// With one more group of n, one key in n moves there and no other moves; the keys of a group that is removed move to
// the others. Two processes that disagree about the groups could both lock a key that moves. So a change is rolled out
// in two steps, with a transition in between that agrees with both:
//
//  1. Have every process use a transition: all groups, Before naming the old ones and After the new ones. Keys that
//     move are locked in both of their groups as one lock: with a majority in each of them, or not at all. So these
//     processes and those of before exclude each other.
//  2. When the last process of before has ended, wait for its locks to end: the longest ttl in use.
//  3. Have every process use the new groups only. They and the transition's processes exclude each other.
//
// No lock that is held has to be given up, and nothing has to stop. A lock belongs for its whole life to the groups
// in which it was acquired. During the transition a key that moves needs a majority of pairs, one master of either
// group in each, so one master down in each group can cost two votes; its groups must have the same number of masters. The observer of
// the group to which the key moves is told of its locks.
// Fencing tokens of a key that moves stay in order if it was acquired at least once by a process of the transition;
// otherwise their order rests on the clients' wall clocks.
type Sharded struct {
	groups        []Group // sorted by name
	before, after []uint64
	joint         map[[2]int]*Locker // by the positions of the groups before and after

	closing sync.Once
}

// NewSharded makes a Sharded over groups, in any order. It takes over their Lockers: Close closes them. On error they
// stay the caller's. The error matches [ErrInvalid].
func NewSharded(groups []Group, opts ShardedOptions) (*Sharded, error) {
	s := &Sharded{groups: slices.Clone(groups), joint: make(map[[2]int]*Locker)}
	slices.SortFunc(s.groups, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	if err := s.checkGroups(); err != nil {
		return nil, err
	}
	var err error
	if s.before, err = s.seeds("Before", opts.Before); err != nil {
		return nil, err
	}
	if s.after, err = s.seeds("After", opts.After); err != nil {
		return nil, err
	}
	if err := s.joinMoving(); err != nil {
		return nil, errors.Join(err, s.closeJoint(context.Background())) // nothing was sent
	}
	return s, nil
}

// checkGroups refuses groups that are not independent. Like New it sees only names; Check asks the servers.
func (s *Sharded) checkGroups() error {
	if len(s.groups) == 0 {
		return invalid("no groups")
	}
	owner := make(map[string]string)
	for i, g := range s.groups {
		switch {
		case g.Name == "":
			return invalid("a group without a name")
		case g.Locker == nil:
			return invalid("group %q has no Locker", g.Name)
		case i > 0 && s.groups[i-1].Name == g.Name:
			return invalid("two groups are called %q", g.Name)
		}
		for _, name := range g.Locker.names {
			if other, twice := owner[sameAddress(name)]; twice {
				return invalid("master %s is in the groups %q and %q", name, other, g.Name)
			}
			owner[sameAddress(name)] = g.Name
		}
	}
	return nil
}

// seeds returns a hash for each group that takes part, and 0 for those that do not. No names mean all groups.
func (s *Sharded) seeds(field string, names []string) ([]uint64, error) {
	seeds := make([]uint64, len(s.groups))
	if names == nil {
		for i, g := range s.groups {
			seeds[i] = hash(g.Name)
		}
		return seeds, nil
	}
	if len(names) == 0 {
		return nil, invalid("ShardedOptions.%s names no group", field)
	}
	for _, name := range names {
		i, found := slices.BinarySearchFunc(s.groups, name, func(g Group, name string) int { return cmp.Compare(g.Name, name) })
		if !found {
			return nil, invalid("ShardedOptions.%s names %q, which is no group", field, name)
		}
		seeds[i] = hash(name)
	}
	return seeds, nil
}

// joinMoving makes a Locker for every pair of groups between which keys move: to those that are added, and away from
// those that are removed. Rendezvous hashing moves none between groups that stay.
func (s *Sharded) joinMoving() error {
	for from := range s.groups {
		for to := range s.groups {
			moves := s.before[from] != 0 && s.after[to] != 0 && (s.before[to] == 0 || s.after[from] == 0)
			if from == to || !moves {
				continue
			}
			locker, err := joinGroups(s.groups[from], s.groups[to])
			if err != nil {
				return err
			}
			s.joint[[2]int{from, to}] = locker
		}
	}
	return nil
}

// Locker returns the Locker that decides about key: its group's or, during a transition, the one that stands for both
// of its groups. It is there for what a Sharded does not do itself, such as an [Election]. It stays the Sharded's to
// close.
func (s *Sharded) Locker(key string) *Locker {
	from, to := s.places(key)
	if from == to {
		return s.groups[to].Locker
	}
	return s.joint[[2]int{from, to}]
}

// GroupOf returns the name of the group to which key belongs; during a transition, the one to which it will.
func (s *Sharded) GroupOf(key string) string {
	_, to := s.places(key)
	return s.groups[to].Name
}

// places returns where key belonged before, and where after a transition; the same outside of one.
func (s *Sharded) places(key string) (from, to int) {
	h := hash(hashTag(key))
	return rendezvous(h, s.before), rendezvous(h, s.after)
}

// Acquire is [Locker.Acquire] in the key's group. With [AndKeys] all keys must be of one group; otherwise the error
// matches [ErrInvalid] and names two that are not.
func (s *Sharded) Acquire(ctx context.Context, key string, ttl time.Duration, opts ...Option) (*Lock, error) {
	l, err := s.of(key, opts)
	if err != nil {
		return nil, err
	}
	return l.Acquire(ctx, key, ttl, opts...)
}

// TryAcquire is [Locker.TryAcquire] in the key's group. See [Sharded.Acquire].
func (s *Sharded) TryAcquire(ctx context.Context, key string, ttl time.Duration, opts ...Option) (*Lock, error) {
	l, err := s.of(key, opts)
	if err != nil {
		return nil, err
	}
	return l.TryAcquire(ctx, key, ttl, opts...)
}

// Do is [Locker.Do] in the key's group. See [Sharded.Acquire].
func (s *Sharded) Do(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error, opts ...Option) error {
	l, err := s.of(key, opts)
	if err != nil {
		return err
	}
	return l.Do(ctx, key, ttl, fn, opts...)
}

// Holder is [Locker.Holder] in the key's group. During a transition a key that moves is held when a majority of pairs
// has it in either of its groups.
func (s *Sharded) Holder(ctx context.Context, key string) (Holder, error) {
	return s.Locker(key).Holder(ctx, key)
}

// of returns the Locker for all keys of one acquisition.
func (s *Sharded) of(key string, opts []Option) (*Locker, error) {
	l := s.Locker(key)
	if len(opts) == 0 {
		return l, nil
	}
	var asked spec
	for _, opt := range opts {
		if opt == nil {
			return nil, invalid("nil Option")
		}
		if err := opt(&asked); err != nil {
			return nil, err
		}
	}
	for _, other := range asked.keys {
		if s.Locker(other) != l {
			return nil, invalid("AndKeys: %q belongs to group %q and %q to %q: a lock on several keys needs keys of one group; "+
				"give them a common hash tag, as in {tag}key", key, s.GroupOf(key), other, s.GroupOf(other))
		}
	}
	return l, nil
}

// Check is [Locker.Check] of every group, side by side. Masters are those of all groups, group by group in the order of
// their names. That a server is in two groups under different names is a finding of its own.
func (s *Sharded) Check(ctx context.Context) (*Audit, error) {
	audits, errs := make([]*Audit, len(s.groups)), make([]error, len(s.groups))
	s.each(func(i int, l *Locker) { audits[i], errs[i] = l.Check(ctx) })
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all, seen := &Audit{}, make(map[string]string)
	for i, audit := range audits {
		all.Masters = append(all.Masters, audit.Masters...)
		all.Findings = append(all.Findings, audit.Findings...)
		for _, m := range audit.Masters {
			if other := seen[m.RunID]; m.RunID != "" && other != "" {
				all.Findings = append(all.Findings, sharedServer(other, m.Name))
			}
		}
		for _, m := range audit.Masters {
			seen[m.RunID] = m.Name + " of group " + s.groups[i].Name
		}
	}
	slices.SortStableFunc(all.Findings, func(a, b Finding) int { return int(b.Severity) - int(a.Severity) })
	return all, nil
}

func sharedServer(first, second string) Finding {
	return Finding{
		Severity: Risk, Master: second,
		What: fmt.Sprintf("It is the same server as %s.", first),
		Why:  "Groups that share a server share its load and its failures, and a transition between them takes a lock for lost.",
		Fix:  "Give every group servers of its own.",
	}
}

// Close is [Locker.Close] of every group, side by side, those that stand for two groups first. Close again returns nil.
func (s *Sharded) Close(ctx context.Context) error {
	if ctx == nil {
		return invalid("nil context")
	}
	var err error
	s.closing.Do(func() {
		err = s.closeJoint(ctx) // their masters are the groups' to close
		errs := make([]error, len(s.groups))
		s.each(func(i int, l *Locker) { errs[i] = l.Close(ctx) })
		err = errors.Join(err, errors.Join(errs...))
	})
	return err
}

func (s *Sharded) closeJoint(ctx context.Context) error {
	var mu sync.Mutex
	var all error
	var closing sync.WaitGroup
	for _, l := range s.joint {
		closing.Go(func() {
			err := l.Close(ctx)
			mu.Lock()
			defer mu.Unlock()
			all = errors.Join(all, err)
		})
	}
	closing.Wait()
	return all
}

// each calls f for every group, side by side, and waits for all.
func (s *Sharded) each(f func(i int, l *Locker)) {
	var all sync.WaitGroup
	for i, g := range s.groups {
		all.Go(func() { f(i, g.Locker) })
	}
	all.Wait()
}
