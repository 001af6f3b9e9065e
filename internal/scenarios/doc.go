// Package scenarios has only tests. They repeat the tests of other Redlock libraries with this one, over real masters
// and through its public API. docs/evidence/scenarios.md lists each library's scenario with its test here, and says
// where this library deliberately does something else.
package scenarios
