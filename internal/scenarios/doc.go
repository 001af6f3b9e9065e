// Package scenarios has only tests: kinds of locks, rights, guards and exchanges of masters, over real masters and
// through the public API.
//
// libraries_test.go repeats tests of other Redlock libraries. docs/evidence/scenarios.md lists the scenarios of each
// library with the tests, and the deliberate differences.
package scenarios
