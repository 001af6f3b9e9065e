//go:build !race

// The race detector needs additional memory, and many times as long.

package sim_test

import (
	"runtime"
	"testing"
)

// The million schedules of a night need too much memory if the garbage of each is not collected in time.
func TestALongRunTakesBoundedMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if status, _, stderr := command(t.Context(), "-schedules", "5000", "-seed", "5", "-quiet"); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.Sys) - int64(before.Sys); grown > 400<<20 {
		t.Errorf("5,000 schedules took %d MB more of memory", grown>>20)
	}
	allocated := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d MB more, %d MB allocated", (int64(after.Sys)-int64(before.Sys))>>20, allocated>>20)
	if allocated < 1<<30 {
		t.Errorf("they have allocated %d MB in all, which shows nothing", allocated>>20)
	}
}
