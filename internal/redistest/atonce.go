package redistest

import (
	"flag"
	"runtime"
	"strconv"
)

// AtOnce lets at least n parallel tests run at the same time, or as many as there are processors, unless the command
// line sets a number. Tests that mostly wait need no processor each. Call it in TestMain, before the tests run.
func AtOnce(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(max(n, runtime.GOMAXPROCS(0)))) // testing registers it
	}
}
