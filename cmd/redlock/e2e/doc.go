// Package e2e tests the redlock command as its users run it: with real processes, real signals and real redis-servers.
// The scripts are in testdata. commands_test.go defines the words that they use in addition to testscript's.
//
// It is a separate module, so that programs which import the library do not depend on testscript.
package e2e
