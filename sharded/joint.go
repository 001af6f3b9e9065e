package sharded

import (
	"cmp"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock"
)

// joinGroups makes the Locker for keys that move between two groups. Its lock has a quorum in each group. So it
// excludes every lock on the key, in the old group, in the new group, or in both.
func joinGroups(before, after *Group) (*redlock.Locker, error) {
	if a, b := before.Options.Generation, after.Options.Generation; a != b {
		return nil,
			invalid("keys move between the groups %q and %q with the generations %d and %d: number the "+
				"configurations of all groups together",
				before.Name, after.Name, a, b)
	}
	l, err := redlock.NewJoint(before.Masters, after.Masters, stricter(before.Options, after.Options))
	if err != nil {
		return nil, fmt.Errorf("%w (for keys that move from group %q to group %q)", err, before.Name, after.Name)
	}
	return l, nil
}

// stricter returns options that keep the promises of both groups.
func stricter(a, b redlock.Options) redlock.Options {
	b.DriftFactor = max(cmp.Or(a.DriftFactor, redlock.DefaultDriftFactor),
		cmp.Or(b.DriftFactor, redlock.DefaultDriftFactor))
	b.RequestTimeout = longer(a.RequestTimeout, b.RequestTimeout)
	if b.RestartGuard == 0 || a.RestartGuard > 0 && a.RestartGuard < b.RestartGuard {
		b.RestartGuard = a.RestartGuard
	}
	return b
}

// longer returns the request timeout that is enough for both groups. 0 is the default, which grows with the ttl: half a
// second where that is 10 s. A shorter one gives way to it.
func longer(a, b time.Duration) time.Duration {
	if long := max(a, b); min(a, b) > 0 || long > time.Second/2 {
		return long
	}
	return 0
}
