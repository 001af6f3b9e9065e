package redlock

import (
	"cmp"
	"context"
	"time"
)

// DriftAllowance is the part of a ttl that clocks of different rates cost.
func DriftAllowance(ttl time.Duration, factor float64) time.Duration {
	return drift(factor).Allowance(ttl)
}

// ID is under which name the Locker waits in the masters' queues.
func (l *Locker) ID() string { return l.crowd.ID }

// Pending counts the releases that the janitor has yet to see confirmed.
func (l *Locker) Pending() int { return l.env.Janitor.Pending() }

// OutageSince returns the time when the present outage began, as far as the Locker knows; 0 if there is none.
func OutageSince(l *Locker) time.Duration { return l.crowd.Outage.Since() }

// OpenedByDialJoint is the masters that DialJoint opens, and how it ends.
func OpenedByDialJoint(ctx context.Context, before, after []string) ([]Master, error) {
	d := newDialing(ctx, Options{})
	_, err := d.joint(before, after)
	return d.opened, err
}

// ExtendAsOf extends the lock's hold, and calls current where Extend waits for the configuration.
func (k *Lock) ExtendAsOf(ttl time.Duration, current func(context.Context) (time.Duration, error)) error {
	f, err := k.hold.Extend(context.Background(), ttl, current)
	return cmp.Or(err, k.failed(context.Background(), f))
}
