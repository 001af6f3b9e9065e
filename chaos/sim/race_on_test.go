//go:build race

package sim_test

// replayed is how many seeds of each profile are run twice: fewer, because the race detector takes ten times as long. It
// is the run without it that shows a thousand.
const replayed = 100
