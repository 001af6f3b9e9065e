package limit

import (
	"math"
	"testing"
)

func TestRatesAreReadFromTheOutputOfRedisBenchmark(t *testing.T) {
	const out = `"test","rps","avg_latency_ms","min_latency_ms"
"SET a__rand_int__ owner NX PX 10000","772923.06","1.204","0.496"
`
	rate, err := parse(out)
	if err != nil || rate != 772923.06 {
		t.Errorf("got %v, %v", rate, err)
	}
	for _, bad := range []string{
		"", "Could not connect", "\"test\",\"rps\"\n", "\"test\",\"rps\"\n\"SET\",\"fast\"\n",
		"\"test\",\"x\"\n\"SET\",\"1\"\n",
	} {
		if rate, err := parse(bad); err == nil {
			t.Errorf("%q gave %v", bad, rate)
		}
	}
}

func TestTheLimitOfCyclesFollowsFromTheRatesOfBothCommands(t *testing.T) {
	if got := (Rates{Set: 129_000, Drop: 92_500}).Cycles(); math.Abs(got-53_871) > 1 {
		t.Errorf("got %f", got)
	}
	if got := (Rates{Set: 1}).Cycles(); got != 0 {
		t.Errorf("a command that was never done gives %f cycles", got)
	}
}
