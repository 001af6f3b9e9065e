package redlock

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-624411e5/redlock/single"
)

// enter looks for the key among the locks whose Contexts ctx descends from. A Reentrant or Exclusive one is entered
// again, as its owner, by an acquisition that does not ask for a kind of its own; readers go in beside each other;
// anything else would wait for itself.
func (s *spec) enter(ctx context.Context, l *Locker) error {
	for c := lockOf(ctx); c != nil; c = lockOf(c.Context) {
		outer := c.lock
		if outer.locker != l || !intersect(outer.spec.keys, s.keys) || outer.Err() != nil {
			continue
		}
		kinds := [2]single.Kind{outer.spec.kind, s.kind}
		switch {
		case kinds == [2]single.Kind{single.Shared, single.Shared}:
			s.owner, s.within, s.entered = outer.owner, outer.hold, true // waiting writers do not keep it out
			return nil
		case outer.spec.kind == single.Exclusive && s.enterable(outer.owner):
			s.kind, s.owner, s.entered = single.Exclusive, outer.owner, true
			return nil
		default:
			return fmt.Errorf("%w: %q", ErrAlreadyHeld, s.keys[0])
		}
	}
	return nil
}

// enterable reports that the acquisition may become one more hold of owner.
func (s *spec) enterable(owner string) bool {
	return s.kind != single.Shared && !s.fenced && len(s.keys) == 1 && (s.owner == "" || s.owner == owner)
}

func lockOf(ctx context.Context) *lockContext {
	c, _ := ctx.Value(lockContextKey{}).(*lockContext)
	return c
}

func intersect(a, b []string) bool {
	return slices.ContainsFunc(a, func(key string) bool { return slices.Contains(b, key) })
}
