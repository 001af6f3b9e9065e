//go:build race

package sim_test

// With the race detector, which takes ten times as long, fewer schedules are run. It is the run without it that shows
// so many.
const (
	raced = true
	// replayed is how many seeds of each profile are run twice.
	replayed = 30
	// harmless is how many schedules that show a mistake are run without it.
	harmless = 100
)
