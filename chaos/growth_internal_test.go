package chaos

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/chaos/oracle"
)

func TestHazard137GoroutinesThatStayForEachHoldAreFound(t *testing.T) {
	if found := crowded(900, 200); len(found) > 0 {
		t.Errorf("of few holds: %v", found)
	}
	for goroutines, want := range map[int]int{290: 0, 750: 0, 900: 1} {
		if found := crowded(goroutines, 1000); len(found) != want {
			t.Errorf("%d goroutines: %v", goroutines, found)
		}
	}
}

// series are rounds of 500 acquisitions with these numbers after each, of all that is counted.
func series(numbers ...int) *rounds {
	r := &rounds{size: 500, goroutines: true, heap: true, resident: true, connections: true}
	for _, n := range numbers {
		r.after = append(r.after, footprint{n, n, int64(n) << 10, int64(n) << 20})
	}
	return r
}

func TestGrowthIsWhatGoesOnInEachThirdOfTheRounds(t *testing.T) {
	for name, tt := range map[string]struct {
		numbers []int
		grows   bool
	}{
		"it stays":                             {[]int{40, 40, 40, 40, 40, 40, 40}, false},
		"it goes up and down":                  {[]int{40, 900, 40, 900, 40, 900, 40}, false},
		"one is kept of each acquisition":      {[]int{40, 540, 1040, 1540, 2040, 2540, 3040}, true},
		"one is kept of every tenth":           {[]int{40, 90, 140, 190, 240, 290, 340}, true},
		"it grows at first and then stays":     {[]int{40, 540, 1040, 1540, 1600, 1600, 1600}, false},
		"it grows at the end alone":            {[]int{40, 40, 40, 40, 40, 540, 1040}, false},
		"it grows now and then, as a map does": {[]int{40, 40, 540, 540, 1040, 1040, 1540}, true},
		"it grows by a handful":                {[]int{40, 44, 48, 52, 56, 60, 64}, false},
		"it shrinks":                           {[]int{3000, 2500, 2000, 1500, 1000, 500, 40}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := series(tt.numbers...)
			for _, m := range r.measures() {
				if m.what == "goroutines" && grows(r.after, m) != tt.grows {
					t.Errorf("%s: %s", m.what, r.series(m))
				}
				if m.what == "connections" && grows(r.after, m) != tt.grows {
					t.Errorf("%s: %s", m.what, r.series(m))
				}
			}
		})
	}
}

func TestGrowthOfHeapIsConvictedAndOfAProcessInDoubt(t *testing.T) {
	r := series(0, 1000, 2000, 3000, 4000, 5000, 6000) // 2 kB of heap and 2 MB of memory for each acquisition
	found := r.judge()
	unknown := func(v oracle.Violation) bool { return v.Unknown }
	if len(found) != 4 || !slices.ContainsFunc(found, unknown) {
		t.Fatalf("found %v", found)
	}
	for _, v := range found {
		if resident := strings.Contains(v.Text, "resident"); v.Unknown != resident || v.Oracle != NameGrowth {
			t.Errorf("unknown %v: %s", v.Unknown, v)
		}
	}
	r.shared = true
	for _, v := range r.judge() {
		if strings.Contains(v.Text, "connections") && !v.Unknown {
			t.Errorf("of masters that others use: %s", v)
		}
	}
	small := series(0, 1, 2, 3, 4, 5, 6) // 2 bytes
	if found := small.judge(); len(found) > 0 {
		t.Errorf("of next to nothing: %v", found)
	}
}

func TestTooFewRoundsAreNoPass(t *testing.T) {
	r := series(0, 1000, 2000)
	if found := r.judge(); len(found) > 0 {
		t.Errorf("of three rounds: %v", found)
	}
	r.doubt("a client made %d", 3)
	if found := r.judge(); len(found) != 1 || !found[0].Unknown || found[0].Text != "a client made 3" {
		t.Errorf("found %v", found)
	}
}
