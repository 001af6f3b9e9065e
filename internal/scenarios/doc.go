// Package scenarios has nothing but tests: what the tests of other Redlock libraries try, tried with this one over real masters,
// through nothing but its public API. docs/evidence/scenarios.md says which scenario of which library is which test, and where this
// library does something else on purpose.
package scenarios
