//go:build !race

package sim_test

const (
	raced     = false
	replayed  = 200
	schedules = 500
	harmless  = most
)
