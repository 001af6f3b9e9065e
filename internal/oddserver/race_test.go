//go:build race

package oddserver_test

const (
	// allowedResident is more under the race detector, whose shadow of the memory is several times its size.
	allowedResident = 6 * maxResident
	// defaultShare is which part of the cases is played: one of so many. Each takes several times as long here.
	defaultShare = 151
)
