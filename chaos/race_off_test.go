//go:build !race

package chaos_test

const raced, atOnce = false, 3
