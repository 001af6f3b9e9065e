//go:build !race

package sim_test

// replayed is how many seeds of each profile are run twice.
const replayed = 1000
