//go:build !race

package oddserver_test

const (
	allowedResident = maxResident
	defaultShare    = 37
)
