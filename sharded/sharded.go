// Package sharded spreads keys over independent groups of masters, so that throughput grows with the number of
// groups. A key belongs to one group, and only that group's quorum decides about it. Rendezvous hashing of the
// groups' names and the key's hash tag selects the group. The hash tag is the part between the first '{' and the next
// '}', as in a Redis Cluster, or the whole key if there is none. Locks on several keys ([redlock.AndKeys]) need keys
// of one group: give them the same hash tag.
//
// # Adding and removing groups
//
// With one more group of n, one key in n moves to it and no other key moves. The keys of a removed group move to the
// others. Two processes with different groups could both lock a key that moves. So change the groups in steps, with a
// transition that excludes both old and new processes:
//
//  1. Restart every process in the transition: all groups, with the old ones in [Options].Before and the new ones in
//     After. A key that moves is locked in both of its groups as one lock: with a majority in each group, or not at
//     all ([redlock.NewJoint]). So these processes and the old ones exclude each other.
//  2. When the last old process has ended, wait for its locks to end: the longest ttl in use.
//  3. Restart every process with the new groups only. They and the transition's processes exclude each other.
//
// Held locks stay valid, and no process needs to stop its work. A lock belongs for its whole life to the groups of its
// acquisition. During the transition a key that moves needs a majority of each of its two groups ([redlock.NewJoint]),
// and each group tolerates as many failed masters as at other times. The groups may have different numbers of masters,
// and masters in common: the same Master, or the same URL, in both. For such a key Set in errors and events, "old" or
// "new", names the group that failed. The observer of the key's new group receives the events.
//
// Fencing tokens of a key that moves stay in order on one condition: a process of the transition acquires the key,
// [redlock.Fenced], between steps 2 and 3. That is after the last acquisition by an old process, and before the first
// by a new one. It gets a token above all tokens of the old group, and a majority of the new group accepts it. An
// acquisition before step 2 does not help, since old processes still raise the counters of the old group alone.
// Without it the order depends on the clients' wall clocks.
package sharded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/audit"
	"github.com/seed-624411e5/redlock/single"
)

// Group is one independent set of masters.
type Group struct {
	// Name decides, together with the key, whether the key belongs to this group. It must never change, and must be the
	// same in every process. It may outlive the masters, so use a number or a place, not an address.
	Name string
	// URLs are the URLs of the group's masters for [redlock.Dial]; Close closes their connections. Or:
	URLs []string
	// Masters are the group's masters for [redlock.New]. The caller closes them after the Locker.
	Masters []redlock.Master
	// Options configure the group's Locker. All groups need the same Prefix. Groups between which keys move need the
	// same Generation; raise it by one with every step.
	Options redlock.Options
}

// Options configure a [Locker]. The zero value is for a set of groups that does not change.
type Options struct {
	// Before and After name the groups before and after a change of groups. They put this Locker into the transition:
	// a key with different groups in the two is locked in both. See the package's description. Default: all groups.
	Before, After []string
}

// Locker takes each lock in the group of its key. It is safe for concurrent use. Close ends its
// goroutines.
type Locker struct {
	groups        []Group           // sorted by name
	lockers       []*redlock.Locker // of the groups
	before, after []uint64
	joint         map[[2]int]*redlock.Locker // by the positions of the groups before and after

	owned  []*single.Master // opened here, closed with it
	closed atomic.Bool
	ended  chan struct{} // closed when Close has returned; nil in a Locker that New has not made
}

// New returns a Locker over groups, in any order. It sends nothing yet. The error matches [redlock.ErrInvalid].
func New(groups []Group, opts Options) (*Locker, error) {
	s := &Locker{groups: slices.Clone(groups), joint: make(map[[2]int]*redlock.Locker), ended: make(chan struct{})}
	slices.SortFunc(s.groups, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	if err := s.build(opts); err != nil {
		return nil, errors.Join(err, s.closeAll(context.Background())) // nothing was sent
	}
	return s, nil
}

// Locker returns the Locker that decides about key: its group's Locker or, during a transition, the joint Locker of
// both groups. Use it for features that this package does not have, such as elections (package leader). Do not close
// it. It is nil if New did not make s; every method of the nil Locker returns an error.
func (s *Locker) Locker(key string) *redlock.Locker {
	if s.check() != nil {
		return nil
	}
	from, to := s.groupsOf(key)
	if from == to {
		return s.lockers[to]
	}
	return s.joint[[2]int{from, to}]
}

// GroupOf returns the name of key's group; during a transition, the name of its new group. It is "" if New did not
// make s.
func (s *Locker) GroupOf(key string) string {
	if s.check() != nil {
		return ""
	}
	_, to := s.groupsOf(key)
	return s.groups[to].Name
}

// groupsOf returns the groups of key before and after a transition. Outside a transition they are the same.
func (s *Locker) groupsOf(key string) (from, to int) {
	// The hash is over the key's name on the masters, for clients that use that name without a Prefix.
	h := hash(hashTag(s.groups[0].Options.Prefix + key))
	return rendezvous(h, s.before), rendezvous(h, s.after)
}

// Acquire is [redlock.Locker.Acquire] in the key's group. With [redlock.AndKeys] all keys must be of one group;
// otherwise the error matches [redlock.ErrInvalid] and names two that are not.
func (s *Locker) Acquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock,
	error,
) {
	l, err := s.of(key, opts)
	if err != nil {
		return nil, err
	}
	return l.Acquire(ctx, key, ttl, opts...)
}

// TryAcquire is [redlock.Locker.TryAcquire] in the key's group. See [Locker.Acquire].
func (s *Locker) TryAcquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock,
	error,
) {
	l, err := s.of(key, opts)
	if err != nil {
		return nil, err
	}
	return l.TryAcquire(ctx, key, ttl, opts...)
}

// Do is [redlock.Locker.Do] in the key's group. See [Locker.Acquire].
func (s *Locker) Do(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error,
	opts ...redlock.Option,
) error {
	l, err := s.of(key, opts)
	if err != nil {
		return err
	}
	return l.Do(ctx, key, ttl, fn, opts...)
}

// TryDo is [redlock.Locker.TryDo] in the key's group. See [Locker.Acquire].
func (s *Locker) TryDo(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error,
	opts ...redlock.Option,
) error {
	l, err := s.of(key, opts)
	if err != nil {
		return err
	}
	return l.TryDo(ctx, key, ttl, fn, opts...)
}

// Holder is [redlock.Locker.Holder] in the key's group. During a transition a key that moves is held when a majority of
// either of its groups has it.
func (s *Locker) Holder(ctx context.Context, key string) (redlock.Holder, error) {
	if err := s.check(); err != nil {
		return redlock.Holder{}, err
	}
	return s.Locker(key).Holder(ctx, key)
}

// Announce calls [redlock.Locker.Announce] for every group at the same time, in a transition for old and new groups.
// It returns nil once a quorum of each group keeps the generation. Otherwise the error names the groups that failed;
// the others may have the generation. If one group's Locker refuses the number, no group gets it.
func (s *Locker) Announce(ctx context.Context, generation uint64) error {
	if err := s.check(); err != nil {
		return err
	}
	for i := range s.groups {
		if own := s.groups[i].Options.Generation; own > 0 && generation > own+1 {
			return invalid("group %q: generation %d is two or more ahead of its Locker's, %d: it would stop every "+
				"process with that generation",
				s.groups[i].Name, generation, own)
		}
	}
	errs := make([]error, len(s.lockers))
	var each sync.WaitGroup
	for i, l := range s.lockers {
		each.Go(func() {
			if err := l.Announce(ctx, generation); err != nil {
				errs[i] = fmt.Errorf("sharded: group %q: %w", s.groups[i].Name, err)
			}
		})
	}
	each.Wait()
	return errors.Join(errs...)
}

// of returns the Locker for all keys of one acquisition.
func (s *Locker) of(key string, opts []redlock.Option) (*redlock.Locker, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	l := s.Locker(key)
	if len(opts) == 0 {
		return l, nil
	}
	keys, err := redlock.KeysOf(key, opts...)
	if err != nil {
		return nil, err
	}
	for _, other := range keys {
		if s.Locker(other) != l {
			return nil,
				invalid("AndKeys: %q belongs to group %q and %q to %q: a lock on several keys needs keys of one "+
					"group; "+
					"give them a common hash tag, as in {tag}key", key, s.GroupOf(key), other, s.GroupOf(other))
		}
	}
	return l, nil
}

// Check calls [redlock.Locker.Check] for every group at the same time. Masters are listed group by group, sorted by
// the group's name; a master of two groups is listed with the first. A server that is in two groups under different
// names is a separate finding.
func (s *Locker) Check(ctx context.Context) (*audit.Report, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	audits, errs := make([]*audit.Report, len(s.lockers)), make([]error, len(s.lockers))
	var each sync.WaitGroup
	for i, l := range s.lockers {
		each.Go(func() { audits[i], errs[i] = l.Check(ctx) })
	}
	each.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all, runs, names := &audit.Report{}, make(map[string]string), make(map[string]bool)
	for i, report := range audits {
		var fresh []audit.MasterReport // masters not yet reported for another group
		for _, m := range report.Masters {
			if !names[m.Name] {
				fresh = append(fresh, m)
			}
		}
		all.Masters = append(all.Masters, fresh...)
		all.Add(slices.DeleteFunc(report.Findings, func(f audit.Finding) bool { return names[f.Master] })...)
		for _, m := range fresh {
			if other := runs[m.RunID]; m.RunID != "" && other != "" {
				all.Add(sharedServer(other, m.Name))
			}
		}
		for _, m := range fresh {
			names[m.Name], runs[m.RunID] = true, m.Name+" of group "+s.groups[i].Name
		}
	}
	return all, nil
}

func sharedServer(first, second string) audit.Finding {
	return audit.Finding{
		Severity: audit.Risk, Master: second,
		What: fmt.Sprintf("It is the same server as %s.", first),
		Why: "Groups that share a server share its load and its failures. In a transition between such groups, the " +
			"server refuses under one name the locks that it has granted under the other.",
		Fix: "Give every group separate servers.",
	}
}

// Close calls [redlock.Locker.Close] for every group and every joint Locker at the same time. No Locker takes a lock
// from then on, and each has the whole time that ctx leaves. A second Close waits for the first to return, and returns
// nil, or its own ctx's error if that is done before.
func (s *Locker) Close(ctx context.Context) error {
	if err := s.check(); err != nil {
		return err
	}
	if ctx == nil {
		return invalid("nil context")
	}
	if s.closed.Swap(true) {
		return s.awaitClose(ctx)
	}
	defer close(s.ended)
	return s.closeAll(ctx)
}

// awaitClose waits for another call of Close.
func (s *Locker) awaitClose(ctx context.Context) error {
	select {
	case <-s.ended:
		return nil
	default:
	}
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
		err, cause := ctx.Err(), context.Cause(ctx)
		if !errors.Is(cause, err) {
			err = fmt.Errorf("%w: %w", err, cause)
		}
		return fmt.Errorf("sharded: close: waiting for another call of Close: %w", err)
	}
}

// check refuses a Locker that New has not made. s may be nil.
func (s *Locker) check() error {
	if s == nil || s.ended == nil {
		return invalid("a sharded.Locker must be made by New")
	}
	return nil
}

// closeAll closes the Lockers, all at the same time, and then the masters that were opened here.
func (s *Locker) closeAll(ctx context.Context) error {
	lockers := append(slices.Collect(maps.Values(s.joint)), s.lockers...)
	errs := make([]error, len(lockers))
	var each sync.WaitGroup
	for i, l := range lockers {
		each.Go(func() { errs[i] = l.Close(ctx) })
	}
	each.Wait()
	err := errors.Join(errs...)
	for _, m := range s.owned {
		if failed := m.Close(); failed != nil {
			err = errors.Join(err, fmt.Errorf("sharded: close master %s: %w", m.Name(), failed))
		}
	}
	return err
}

// invalid returns an error that matches redlock.ErrInvalid and has the reason.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", redlock.ErrInvalid, fmt.Sprintf(format, args...))
}
