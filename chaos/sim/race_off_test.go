//go:build !race

package sim_test

const (
	raced    = false
	replayed = 100
	harmless = most
)
