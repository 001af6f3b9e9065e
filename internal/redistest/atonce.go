package redistest

import (
	"flag"
	"runtime"
	"strconv"
)

// AtOnce lets n parallel tests run at the same time, or as many as there are processors, unless somebody has said how many: those that mostly wait
// need no processor each. It is for TestMain, before the tests are run.
func AtOnce(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(max(n, runtime.GOMAXPROCS(0)))) // testing registers it
	}
}
