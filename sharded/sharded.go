// Package sharded spreads keys over independent groups of masters, so that throughput grows with their number: a key belongs
// to one group, whose quorum alone decides about it. Which one is decided by rendezvous hashing of the groups' names
// and the key's hash tag: the part between the first '{' and the next '}', as in a Redis Cluster, or the whole key if
// there is none. Locks on several keys ([redlock.AndKeys]) need keys of one group, which a common hash tag makes sure of.
//
// # Adding and removing groups
//
// With one more group of n, one key in n moves there and no other moves; the keys of a group that is removed move to
// the others. Two processes that disagree about the groups could both lock a key that moves. So a change is rolled out
// in two steps, with a transition in between that agrees with both:
//
//  1. Have every process use a transition: all groups, [Options].Before naming the old ones and After the new ones. Keys that
//     move are locked in both of their groups as one lock: with a majority in each of them, or not at all
//     ([redlock.NewJoint]). So these processes and those of before exclude each other.
//  2. When the last process of before has ended, wait for its locks to end: the longest ttl in use.
//  3. Have every process use the new groups only. They and the transition's processes exclude each other.
//
// No lock that is held has to be given up, and nothing has to stop. A lock belongs for its whole life to the groups
// in which it was acquired. During the transition a key that moves needs what [redlock.NewJoint] needs: a majority of the one group
// and one of the other, whichever masters these are. Each group can do without as many masters as at other times. The groups may
// have different numbers of masters, and masters in common: the same Master, or the same URL, in both. An error or an event
// about such a key says by Set, "old" or "new", in which group something was amiss. The observer of the group to which the key
// moves is told of its locks.
//
// Fencing tokens of a key that moves stay in order if a process of the transition acquires it, [redlock.Fenced], after the last
// acquisition by a process of before, and before the first by one that has the new groups only: between steps 2 and 3. That
// acquisition gets a token above all that the old group has given out, and has a majority of the new group accept it. An
// earlier one does not do: processes of before raise the counters of the old group alone. Without it the order rests on the
// clients' wall clocks.
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
	// Name decides together with a key's whether the key belongs to this group. It must never change, be the same in every
	// process, and may outlive the masters: give a number or a place, not an address.
	Name string
	// URLs are the group's masters as [redlock.Dial] takes them; Close closes their connections. Or:
	URLs []string
	// Masters are the group's masters as [redlock.New] takes them; they stay the caller's to close, after the Locker.
	Masters []redlock.Master
	// Options are those of the group's Locker. All groups need the same Prefix; groups between which keys move need the same Generation,
	// one more with every step.
	Options redlock.Options
}

// Options configure a [Locker]. The zero value is for a set of groups that does not change.
type Options struct {
	// Before and After name the groups among which keys are spread before and after a change of groups, and make this
	// Locker one of the transition: a key whose group is not the same in both is locked in both. See the package's
	// description. Default: all groups.
	Before, After []string
}

// Locker takes locks in the groups to which their keys belong. It is safe for concurrent use. Close it to end its goroutines.
type Locker struct {
	groups        []Group           // sorted by name
	lockers       []*redlock.Locker // of the groups
	before, after []uint64
	joint         map[[2]int]*redlock.Locker // by the positions of the groups before and after

	owned  []*single.Master // opened here, closed with it
	closed atomic.Bool
	ended  chan struct{} // closed when Close has returned; nil in a Locker that New has not made
}

// New makes a Locker over groups, in any order. Nothing is sent yet. The error matches [redlock.ErrInvalid].
func New(groups []Group, opts Options) (*Locker, error) {
	s := &Locker{groups: slices.Clone(groups), joint: make(map[[2]int]*redlock.Locker), ended: make(chan struct{})}
	slices.SortFunc(s.groups, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	if err := s.build(opts); err != nil {
		return nil, errors.Join(err, s.closeAll(context.Background())) // nothing was sent
	}
	return s, nil
}

// Locker returns the Locker that decides about key: its group's or, during a transition, the one that stands for both
// of its groups. It is there for what this package does not do itself, such as a [redlock.Election]. Do not close it. It is
// nil, of which every method returns an error, if s was not made by New.
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

// GroupOf returns the name of the group to which key belongs; during a transition, the one to which it will. It is "" if s
// was not made by New.
func (s *Locker) GroupOf(key string) string {
	if s.check() != nil {
		return ""
	}
	_, to := s.groupsOf(key)
	return s.groups[to].Name
}

// groupsOf returns to which group key belonged before, and to which after a transition; the same outside of one.
func (s *Locker) groupsOf(key string) (from, to int) {
	h := hash(hashTag(s.groups[0].Options.Prefix + key)) // the name on the masters, for those who use it without a Prefix
	return rendezvous(h, s.before), rendezvous(h, s.after)
}

// Acquire is [redlock.Locker.Acquire] in the key's group. With [redlock.AndKeys] all keys must be of one group; otherwise the error
// matches [redlock.ErrInvalid] and names two that are not.
func (s *Locker) Acquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock, error) {
	l, err := s.of(key, opts)
	if err != nil {
		return nil, err
	}
	return l.Acquire(ctx, key, ttl, opts...)
}

// TryAcquire is [redlock.Locker.TryAcquire] in the key's group. See [Locker.Acquire].
func (s *Locker) TryAcquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock, error) {
	l, err := s.of(key, opts)
	if err != nil {
		return nil, err
	}
	return l.TryAcquire(ctx, key, ttl, opts...)
}

// Do is [redlock.Locker.Do] in the key's group. See [Locker.Acquire].
func (s *Locker) Do(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error, opts ...redlock.Option) error {
	l, err := s.of(key, opts)
	if err != nil {
		return err
	}
	return l.Do(ctx, key, ttl, fn, opts...)
}

// Holder is [redlock.Locker.Holder] in the key's group. During a transition a key that moves is held when a majority of
// either of its groups has it.
func (s *Locker) Holder(ctx context.Context, key string) (redlock.Holder, error) {
	if err := s.check(); err != nil {
		return redlock.Holder{}, err
	}
	return s.Locker(key).Holder(ctx, key)
}

// Announce is [redlock.Locker.Announce] in every group, side by side: in a transition in those of before and of after. It returns nil
// once a quorum of each group keeps the generation. Otherwise the error names the groups that do not; the others may. Where one group's
// Locker refuses the number, none is told.
func (s *Locker) Announce(ctx context.Context, generation uint64) error {
	if err := s.check(); err != nil {
		return err
	}
	for i := range s.groups {
		if own := s.groups[i].Options.Generation; own > 0 && generation > own+1 {
			return invalid("group %q: generation %d is two or more ahead of its Locker's, %d: it would stop everybody who has that one",
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
			return nil, invalid("AndKeys: %q belongs to group %q and %q to %q: a lock on several keys needs keys of one group; "+
				"give them a common hash tag, as in {tag}key", key, s.GroupOf(key), other, s.GroupOf(other))
		}
	}
	return l, nil
}

// Check is [redlock.Locker.Check] of every group, side by side. Masters are those of all groups, group by group in the order of
// their names; one that is in two of them is reported with the first. That a server is in two groups under different names is
// a finding of its own.
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
		var fresh []audit.MasterReport // and not of another group, too, from which keys move
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
		Why:  "Groups that share a server share its load and its failures, and in a transition between them it refuses by the one name what it has granted by the other.",
		Fix:  "Give every group servers of its own.",
	}
}

// Close is [redlock.Locker.Close] of every group and of what stands for two groups, all at the same time: none of them takes a lock
// from now on, and each has the whole time that ctx leaves. Close again waits for the first to return, and returns nil, or
// its own ctx's error if that is done before.
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

// invalid makes an error that matches redlock.ErrInvalid and says what was wrong.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", redlock.ErrInvalid, fmt.Sprintf(format, args...))
}
