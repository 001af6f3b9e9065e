//go:build !race

package sim_test

const (
	raced     = false
	replayed  = 1000
	schedules = 500
	harmless  = most
)
