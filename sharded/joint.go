package sharded

import (
	"cmp"
	"fmt"

	"github.com/seed-624411e5/redlock"
)

// joinGroups makes the Locker for keys that move between two groups: a lock of it has a quorum of either group, so whoever
// locks in the one group only, or in the other only, or in both, excludes all the others.
func joinGroups(before, after *Group) (*redlock.Locker, error) {
	if a, b := before.Options.Generation, after.Options.Generation; a != b {
		return nil, invalid("keys move between the groups %q and %q, whose generations are %d and %d: number the configurations of all groups together",
			before.Name, after.Name, a, b)
	}
	l, err := redlock.NewJoint(before.Masters, after.Masters, stricter(before.Options, after.Options))
	if err != nil {
		return nil, fmt.Errorf("%w (for keys that move from group %q to group %q)", err, before.Name, after.Name)
	}
	return l, nil
}

// stricter are options that keep what either group's promise.
func stricter(a, b redlock.Options) redlock.Options {
	b.DriftFactor = max(cmp.Or(a.DriftFactor, redlock.DefaultDriftFactor), cmp.Or(b.DriftFactor, redlock.DefaultDriftFactor))
	b.RequestTimeout = max(a.RequestTimeout, b.RequestTimeout)
	if b.RestartGuard == 0 || a.RestartGuard > 0 && a.RestartGuard < b.RestartGuard {
		b.RestartGuard = a.RestartGuard
	}
	return b
}
