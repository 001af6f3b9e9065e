package sharded

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/address"
	"github.com/seed-624411e5/redlock/internal/boottime"
	"github.com/seed-624411e5/redlock/single"
)

// build opens the groups' masters and makes a Locker for each group, and one for each pair of groups between which keys
// move. If it fails, the caller closes the Lockers made so far.
func (s *Locker) build(opts Options) (err error) {
	if err := s.open(); err != nil {
		return err
	}
	if err := s.checkNames(); err != nil {
		return err
	}
	for _, g := range s.groups {
		l, err := redlock.New(g.Masters, g.Options)
		if err != nil {
			return fmt.Errorf("group %q: %w", g.Name, err)
		}
		s.lockers = append(s.lockers, l)
	}
	if s.before, err = s.seeds("Before", opts.Before); err != nil {
		return err
	}
	if s.after, err = s.seeds("After", opts.After); err != nil {
		return err
	}
	if err := s.checkMasters(); err != nil {
		return err
	}
	return s.joinMoving()
}

// open opens the masters given by URLs. A URL in two groups is one master of both.
func (s *Locker) open() error {
	byURL := make(map[string]*single.Master)
	for i := range s.groups {
		g := &s.groups[i]
		if len(g.URLs) > 0 && len(g.Masters) > 0 {
			return invalid("group %q has both URLs and Masters", g.Name)
		}
		g.Masters = slices.Clone(g.Masters)
		now := boottime.Now
		if g.Options.Clock != nil {
			now = g.Options.Clock.Now
		}
		for n, url := range g.URLs {
			if m := byURL[url]; m != nil {
				if m.RestartGuard() != g.Options.RestartGuard {
					return invalid("master %s of group %q has a restart guard of %v there, and in another group one "+
						"of %v",
						m.Name(), g.Name, g.Options.RestartGuard, m.RestartGuard())
				}
				g.Masters = append(g.Masters, m)
				continue
			}
			m, err := single.Dial(url, single.Options{RestartGuard: g.Options.RestartGuard, Clock: now})
			if err != nil {
				return fmt.Errorf("%w: group %q: master %d of %d: %w", redlock.ErrInvalid, g.Name, n+1, len(g.URLs),
					err)
			}
			byURL[url], s.owned = m, append(s.owned, m)
			g.Masters = append(g.Masters, m)
		}
	}
	return nil
}

// checkNames refuses groups with equal names and groups without masters.
func (s *Locker) checkNames() error {
	if len(s.groups) == 0 {
		return invalid("no groups")
	}
	for i, g := range s.groups {
		switch {
		case g.Name == "":
			return invalid("a group without a name")
		case len(g.Masters) == 0:
			return invalid("group %q has no masters", g.Name)
		case i > 0 && s.groups[i-1].Name == g.Name:
			return invalid("two groups are called %q", g.Name)
		case g.Options.Prefix != s.groups[0].Options.Prefix:
			return invalid("group %q has the Options.Prefix %q and group %q has %q: a key would have another name "+
				"in each",
				s.groups[0].Name, s.groups[0].Options.Prefix, g.Name, g.Options.Prefix)
		}
	}
	return nil
}

// checkMasters refuses groups that share masters, unless keys move between them. Like redlock.New it compares only
// names; Check asks the servers.
func (s *Locker) checkMasters() error {
	groups := make(map[string][]int) // by the names of their masters
	for i, g := range s.groups {
		for _, m := range g.Masters {
			name := address.Fold(m.Name())
			for _, other := range groups[name] {
				if !s.moves(other, i) && !s.moves(i, other) {
					return invalid("master %s is in the groups %q and %q, between which no key moves", m.Name(),
						s.groups[other].Name, g.Name)
				}
			}
			groups[name] = append(groups[name], i)
		}
	}
	return nil
}

// moves reports whether keys move between two groups: to added groups, and away from removed ones. Rendezvous hashing
// moves none between groups that stay.
func (s *Locker) moves(from, to int) bool {
	return from != to && s.before[from] != 0 && s.after[to] != 0 && (s.before[to] == 0 || s.after[from] == 0)
}

// seeds returns a hash for each group that takes part, and 0 for the others. No names mean all groups.
func (s *Locker) seeds(field string, names []string) ([]uint64, error) {
	seeds := make([]uint64, len(s.groups))
	if names == nil {
		for i, g := range s.groups {
			seeds[i] = hash(g.Name)
		}
		return seeds, nil
	}
	if len(names) == 0 {
		return nil, invalid("Options.%s names no group", field)
	}
	for _, name := range names {
		i, found := slices.BinarySearchFunc(s.groups, name, func(g Group, name string) int {
			return cmp.Compare(g.Name, name)
		})
		if !found {
			return nil, invalid("Options.%s names %q, which is no group", field, name)
		}
		seeds[i] = hash(name)
	}
	return seeds, nil
}

// joinMoving makes a Locker for every two groups between which keys move.
func (s *Locker) joinMoving() error {
	for from := range s.groups {
		for to := range s.groups {
			if !s.moves(from, to) {
				continue
			}
			locker, err := joinGroups(&s.groups[from], &s.groups[to])
			if err != nil {
				return err
			}
			s.joint[[2]int{from, to}] = locker
		}
	}
	return nil
}
