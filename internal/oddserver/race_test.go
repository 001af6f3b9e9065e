//go:build race

package oddserver_test

const (
	// allowedResident is greater under the race detector, because its shadow memory is several times the size of the
	// program's.
	allowedResident = 6 * maxResident
	// defaultShare selects the cases to play: one in so many. Each case takes several times as long here.
	defaultShare = 151
)
