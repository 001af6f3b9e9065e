// Package leftovers finds what holds leave behind: goroutines, memory and connections of the lock under test, and keys
// on the masters.
package leftovers

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/chaos/internal/machine"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// active counts the runs of this process, which share its heap; runs counts those that have ended too.
var (
	active atomic.Int64
	runs   atomic.Uint64
)

// Search is for the leftovers of one run.
type Search struct {
	Fleet   *masters.Fleet
	Machine *machine.Machine
	// Settle is how long goroutines may outlive their holds and clients.
	Settle time.Duration

	label   string            // of the goroutines that call the subject
	lockers []workload.Locker // that make rounds
	rounds  *rounds           // nil: none
	grown   int               // goroutines of the subject when all holds had been released
	left    int               // goroutines of the subject when its clients were closed
	leftAt  string            // the stack of the first

	keysBefore, keysAfter []map[string]time.Duration // by master: those that live for long
}

// Begin is called at the begin of a run, and End at its end.
func Begin() *Search {
	active.Add(1)
	return &Search{label: strconv.FormatUint(runs.Add(1), 10)}
}

// End ends what Begin began.
func (s *Search) End() { active.Add(-1) }

// LookBefore is for when no lock was taken yet.
func (s *Search) LookBefore(ctx context.Context) { s.keysBefore = longLived(ctx, s.Fleet) }

// LookReleased is for when all holds were released, and the clients are still open.
func (s *Search) LookReleased(ctx context.Context) {
	s.Machine.Await(ctx, s.Settle, func() bool { // what cleans up after attempts ends by itself
		n, _, err := goroutinesOf(s.label)
		s.grown = n
		return err != nil || n < 300
	})
}

// LookAfter is for when the clients were closed. It waits until the subject's goroutines have ended, at most for
// Settle.
func (s *Search) LookAfter(ctx context.Context) (err error) {
	s.Machine.Await(ctx, s.Settle, func() bool {
		s.left, s.leftAt, err = goroutinesOf(s.label)
		return err != nil || s.left == 0
	})
	s.keysAfter = longLived(ctx, s.Fleet)
	return err
}

// Goroutines is how many LookAfter found.
func (s *Search) Goroutines() int { return s.left }

// Crowded reports that another run in this process kept the heap from being judged.
func (s *Search) Crowded() bool { return s.rounds != nil && s.rounds.crowded }

// Judge returns leftovers that grow with the number of acquisitions, and goroutines that outlived their clients.
func (s *Search) Judge(now int64, keys, acquisitions int) []oracle.Violation {
	return slices.Concat(s.leaks(now), manyGoroutines(s.grown, acquisitions), s.rounds.judge(),
		litter(s.keysBefore, s.keysAfter, keys, acquisitions))
}

// Notes are for the report.
func (s *Search) Notes() []string { return s.rounds.notes() }
