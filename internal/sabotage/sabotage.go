// Package sabotage names known-bad variants of the algorithm. The simulator and the chaos harness switch one on and
// must find the violation that it causes: a proof that they would notice such a mistake in the real thing.
//
// The package is internal, so only this project's own tests can ask for a broken lock.
package sabotage

// Switches each replace one rule of the algorithm by a plausible mistake. The zero value breaks nothing.
type Switches struct {
	// HalfQuorum counts floor(n/2) grants as a majority.
	HalfQuorum bool
	// NoDrift leaves the drift allowance out of the validity.
	NoDrift bool
	// DropStragglers neither waits for nor releases a vote that arrives after its round was decided.
	DropStragglers bool
	// UnorderedRelease sends a release without waiting for the same master's acquire to end.
	UnorderedRelease bool
	// CountRepairs counts a master on which the key had to be set again as if it had been there all along.
	CountRepairs bool
	// EagerRepair sets the key again with every extension, also with one that is not won, and counts it the next time.
	EagerRepair bool
	// LateExtend extends without asking whether the validity is already over.
	LateExtend bool
	// BoundFromNow computes validity from the end of the round instead of its start.
	BoundFromNow bool
	// MaxToken takes the greatest of the masters' counters as the fencing token without raising the others to it.
	MaxToken bool
}
