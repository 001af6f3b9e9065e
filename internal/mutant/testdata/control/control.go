// Package control is what the tests of package mutant break: it has one number, and tests that look at it, or do not.
package control

// Answer is 42.
func Answer() int { return 42 }
