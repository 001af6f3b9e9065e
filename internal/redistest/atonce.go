package redistest

import (
	"flag"
	"runtime"
	"strconv"
)

// AtOnce lets n parallel tests run at the same time, unless somebody has said how many: those that mostly wait need no processor each. It is for
// TestMain, before the tests are run.
func AtOnce(n int) {
	flag.Parse()
	if most := flag.Lookup("test.parallel"); most.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = most.Value.Set(strconv.Itoa(n))
	}
}
