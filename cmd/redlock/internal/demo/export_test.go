package demo

import "github.com/seed-624411e5/redlock/cmd/redlock/internal/term"

// The inside of the package that its tests look at.
var (
	NewResource = newResource
	Percentile  = percentile
	KeysLeft    = (*Show).keysLeft
)

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
	return picture(v, &f.h, log, width, height, style)
}

// Squeezed is how many columns remain of the film when it has room for n.
func (f *Film) Squeezed(n int) int { return len(f.h.squeezed(n)) }
