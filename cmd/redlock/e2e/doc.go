// Package e2e tests the redlock command as its users meet it: real processes, real signals, real redis-servers. The
// scripts are in testdata; see commands_test.go for the words they use beside those of testscript.
//
// It is a module of its own because testscript is not to be inherited by those who import the library.
package e2e
