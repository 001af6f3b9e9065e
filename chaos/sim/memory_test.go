//go:build !race

// The race detector has memory of its own, and needs many times as long.

package sim_test

import (
	"runtime"
	"testing"
)

// A night's million schedules do not fit into memory if what they leave is not collected in time.
func TestALongRunTakesBoundedMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if status, _, stderr := command(t.Context(), "-schedules", "15000", "-seed", "5", "-quiet"); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.Sys) - int64(before.Sys); grown > 1<<30 {
		t.Errorf("15,000 schedules took %d MB more of memory", grown>>20)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated < 2<<30 {
		t.Errorf("they have allocated %d MB in all, which shows nothing", allocated>>20)
	}
}
