package redlock

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/seed-624411e5/redlock/internal/address"
)

// NewJoint makes a Locker for the time in which one set of masters takes another's place: when a master is replaced or
// moved, when there are to be more or fewer of them. The sets may share any number of masters; of those in both, both lists
// must have the same Master. Every lock then has the agreement of a quorum of either set, so such a Locker and one that
// [New] has made over either set exclude each other. Lockers over the old and over the new set do not: docs/membership.md says
// in which steps no two processes ever have these at the same time.
//
// Otherwise it is as New's. Errors of both lists match [ErrInvalid], and so does one that says that the sets are the same.
func NewJoint(before, after []Master, opts Options) (*Locker, error) {
	masters, sets, err := union(before, after)
	if err != nil {
		return nil, err
	}
	return newLocker(masters, sets, opts)
}

// DialJoint is [NewJoint] with URLs as [Dial] takes them. A master of both sets must have the same URL in both lists.
func DialJoint(ctx context.Context, before, after []string, opts Options) (*Locker, error) {
	d, err := newDialing(ctx, opts)
	if err != nil {
		return nil, err
	}
	return d.joint(before, after)
}

// joint makes a Locker over two sets.
func (d *dialing) joint(before, after []string) (*Locker, error) {
	return d.locker(func(opts Options) (*Locker, error) {
		old, err := d.dial(before)
		if err != nil {
			return nil, fmt.Errorf("%w (of the old masters)", err)
		}
		next, err := d.dial(after)
		if err != nil {
			return nil, fmt.Errorf("%w (of the new masters)", err)
		}
		return NewJoint(old, next, opts)
	})
}

// union is the masters of both sets, each of them once, and which of them vote in which set.
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
		i := slices.IndexFunc(before, func(other Master) bool { return address.Fold(other.Name()) == address.Fold(m.Name()) })
		switch {
		case i < 0:
			i = len(masters)
			masters = append(masters, m)
		case !identical(before[i], m):
			return nil, nil, invalid("%s is one of the old and of the new masters, and must be the same Master, or have the same URL, in both lists", m.Name())
		}
		if i < maxMasters {
			members |= 1 << i
		}
	}
	if len(masters) > maxMasters {
		return nil, nil, invalid("%d old and new masters together, and %d is the most", len(masters), maxMasters)
	}
	old := everyMaster >> (maxMasters - len(before))
	if members == old {
		return nil, nil, invalid("the old and the new masters are the same: make the Locker with one set")
	}
	return masters, electorates{newElectorate("old", old), newElectorate("new", members)}, nil
}

// identical reports that both are one Master. Those that can't be compared are not, be it for their type or for what is in them.
func identical(a, b Master) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}
