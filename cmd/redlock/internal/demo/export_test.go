package demo

import (
	"context"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/term"
)

// The inside of the package that its tests look at.
var (
	NewResource = newResource
	Percentile  = percentile
	KeysLeft    = (*Show).keysLeft
	Exclusion   = exclusion
)

// Phase is a part of the exchange of masters, and List one of the lists.
type (
	Phase = phase
	List  = list
)

// TTL is the longest that the show uses, and the lists of masters are these.
const (
	TTL = ttl

	OldList, BothLists, NewList = oldList, bothLists, newList
)

// Check judges the results of a phase.
func (p phase) Check() Check { return p.check() }

// OnlyReplace makes the exchange of these masters the whole show.
func (s *Show) OnlyReplace(dead, skipJoint bool, leave ...int) {
	s.script = func(ctx context.Context) {
		s.replace(ctx, replacement{leave: leave, dead: dead, skipJoint: skipJoint})
	}
}

// Enter, Leave and Look are the resource's methods.
func (r *resource) Enter(worker int) { r.enter(worker) }
func (r *resource) Leave(worker int) { r.leave(worker) }
func (r *resource) Look() (inside []int, handoffs, overlaps int) {
	return r.look()
}

// Film draws frames from snapshots.
type Film struct{ h history }

// Frame adds a snapshot and draws it.
func (f *Film) Frame(v Snapshot, log []string, width, height int, style term.Style) []string {
	f.h.add(v)
	return picture(v, f.h, log, width, height, style)
}

// Squeezed is how many columns remain of the film when it has room for n.
func (f *Film) Squeezed(n int) int { return len(f.h.squeezed(n)) }
