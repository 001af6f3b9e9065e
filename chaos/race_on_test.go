//go:build race

package chaos_test

// raced says that tests run with the race detector, which takes ten times as long.
const raced = true
