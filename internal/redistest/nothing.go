package redistest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// withoutServer in the environment, set to 1, leaves out the tests that need a server.
	withoutServer = "REDLOCK_NO_SERVER"
	// leftOut is an environment variable with the name of a file. Each test that is left out adds a line to the file,
	// with the reason, a tab and its name.
	leftOut = "REDISTEST_LEFT_OUT"
	// instructions say how to get a server.
	instructions = "NO SERVER. Tests need redis-server or valkey-server: ./test finds or fetches one, " +
		withoutServer + "=1 leaves these tests out"
)

// NothingTested ends a test that cannot test anything here, because the machine lacks a requirement. The test is
// skipped. If the environment has CI=true, it fails, so that no pipeline is green because it tested nothing.
//
// Without a Redis server (an error that matches [ErrNoServer]), one test of each run of the go command fails with
// instructions, and the others are skipped. With REDLOCK_NO_SERVER=1 all are skipped.
func NothingTested(tb TB, why any) {
	tb.Helper()
	forgetResult()
	err, _ := why.(error)
	noServer, accepted := errors.Is(err, ErrNoServer), isTrue(withoutServer)
	switch {
	case noServer && accepted:
	case noServer && firstOfRun():
		tb.Fatalf("%s (%v)", instructions, why)
		return
	case !noServer && isTrue("CI"):
		tb.Fatalf("NOTHING WAS TESTED, which is a failure in CI: %v", why)
		return
	}
	if noServer {
		why = "a redis-server or valkey-server"
	}
	note(tb.Name(), why)
	tb.Skipf("SKIPPED, NOTHING WAS TESTED: %v", why)
}

func isTrue(variable string) bool {
	is, _ := strconv.ParseBool(os.Getenv(variable))
	return is
}

// firstOfRun reports whether this test is the first of the go command's run to ask. The go command runs test programs
// from a temporary directory, one per run. A program that a person runs directly is a separate run.
func firstOfRun() bool {
	program, err := os.Executable()
	if err != nil {
		return true
	}
	shared := filepath.Dir(filepath.Dir(program))
	if !strings.HasPrefix(filepath.Base(shared), "go-build") {
		return true
	}
	file, err := os.OpenFile(filepath.Join(shared, "no-server"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return !errors.Is(err, os.ErrExist)
	}
	_ = file.Close()
	return true
}

// note adds a line to the list of tests that were left out.
func note(test string, why any) {
	path := os.Getenv(leftOut)
	if path == "" {
		return
	}
	//nolint:gosec // whoever runs the tests names it
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	_, _ = fmt.Fprintf(file, "%s\t%s\n", strings.Join(strings.Fields(fmt.Sprint(why)), " "), test)
}

// forgetResult prevents the go command from caching this program's result: it would say "ok (cached)" even with a
// server. The function removes the log that the go command reads for that.
func forgetResult() {
	if log := flag.Lookup("test.testlogfile"); log != nil && log.Value.String() != "" {
		_ = os.Remove(log.Value.String())
	}
}
