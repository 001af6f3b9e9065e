// Package control exists for the tests of package mutant, which break it. It has one number, and tests that check it
// or do not.
package control

// Answer is 42.
func Answer() int { return 42 }
