//go:build race

package chaos_test

// raced says that tests run with the race detector, which takes ten times as long.
const raced = true

// atOnce is how many runs a processor has time for.
const atOnce = 2
