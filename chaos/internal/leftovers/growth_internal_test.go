package leftovers

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/chaos/oracle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHazard137GoroutinesThatStayForEachHoldAreFound(t *testing.T) {
	if found := manyGoroutines(900, 200); len(found) > 0 {
		t.Errorf("of few holds: %v", found)
	}
	for goroutines, want := range map[int]int{290: 0, 750: 0, 900: 1} {
		if found := manyGoroutines(goroutines, 1000); len(found) != want {
			t.Errorf("%d goroutines: %v", goroutines, found)
		}
	}
}

// series are rounds of 500 acquisitions with these footprints after each.
func series(of func(n int) footprint, numbers ...int) *rounds {
	r := &rounds{size: 500, goroutines: true, heap: true, resident: true, connections: true}
	for _, n := range numbers {
		r.after = append(r.after, of(n))
	}
	return r
}

// kinds of growth, in comparable amounts.
var kinds = map[string]func(n int) footprint{
	"goroutines":            func(n int) footprint { return footprint{goroutines: n} },
	"connections":           func(n int) footprint { return footprint{connections: n} },
	"kB of heap":            func(n int) footprint { return footprint{heap: int64(n) << 11} },
	"kB of resident memory": func(n int) footprint { return footprint{resident: int64(n) << 20} },
}

func TestGrowthIsWhatGoesOnInEachThirdOfTheRounds(t *testing.T) {
	for name, tt := range map[string]struct {
		numbers []int
		grows   bool
	}{
		"it stays":                             {[]int{40, 40, 40, 40, 40, 40, 40}, false},
		"it goes up and down":                  {[]int{40, 900, 40, 900, 40, 900, 40}, false},
		"it goes up and down, and up in all":   {[]int{40, 20, 140, 120, 240, 220, 340}, true},
		"noise that happens to go up":          {[]int{40, 900, 140, 700, 240, 600, 340}, false},
		"one is kept of each acquisition":      {[]int{40, 540, 1040, 1540, 2040, 2540, 3040}, true},
		"one is kept of every tenth":           {[]int{40, 90, 140, 190, 240, 290, 340}, true},
		"it grows at first and then stays":     {[]int{40, 540, 1040, 1540, 1600, 1600, 1600}, false},
		"it grows at the end alone":            {[]int{40, 40, 40, 40, 40, 540, 1040}, false},
		"it grows now and then, as a map does": {[]int{40, 40, 540, 540, 1040, 1040, 1540}, true},
		"it grows by a handful":                {[]int{40, 44, 48, 52, 56, 60, 64}, false},
		"it shrinks":                           {[]int{3000, 2500, 2000, 1500, 1000, 500, 40}, false},
	} {
		for what, of := range kinds {
			t.Run(name+"/"+what, func(t *testing.T) {
				found := slices.DeleteFunc(series(of, tt.numbers...).judge(), fell)
				if len(found) != 0 != tt.grows || len(found) > 1 {
					t.Fatalf("found %v", found)
				}
				if !tt.grows {
					return
				}
				resident := strings.Contains(what, "resident") // proves nothing
				if found[0].Unknown != resident || !strings.Contains(found[0].Text, "number of "+what+" grows") {
					t.Errorf("unknown: %v, %s", found[0].Unknown, found[0])
				}
			})
		}
	}
}

func fell(v oracle.Violation) bool {
	return v.Unknown && strings.Contains(v.Text, "which may hide growth")
}

// A lock may keep memory in the same round in which another part of the process gives more memory back.
func TestNothingIsKnownOfAHeapThatFalls(t *testing.T) {
	for name, tt := range map[string]struct {
		numbers []int
		unknown bool
	}{
		"it falls once, by more than a third may grow": {[]int{400, 440, 480, 400, 440, 480, 520}, true},
		"it falls once, by less":                       {[]int{400, 440, 480, 420, 460, 500, 540}, false},
		"it falls while it warms up and once more":     {[]int{900, 400, 400, 400, 400, 400, 300}, true},
		"it stays": {[]int{400, 400, 400, 400, 400, 400, 400}, false},
	} {
		for what, of := range kinds {
			found := series(of, tt.numbers...).judge()
			want := tt.unknown && what == "kB of heap" // of the others nothing but the subject has any
			if want != (len(found) == 1 && fell(found[0])) || !want && len(found) > 0 {
				t.Errorf("%s: %s: found %v", name, what, found)
			}
		}
	}
	r := series(kinds["kB of heap"], 900, 400, 400, 400, 400, 400, 400)
	r.after[0].connections = 10 // closed connections give their buffers back
	if found := r.judge(); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

func TestTheBuffersOfConnectionsAreNoHeapThatIsKept(t *testing.T) {
	r := series(func(n int) footprint {
		return footprint{goroutines: 2 * n, connections: n, heap: int64(n) * 130 << 10}
	}, 40, 140, 240, 340, 440, 540, 640)
	if found := r.judge(); len(found) != 1 || !strings.Contains(found[0].Text, "number of connections") {
		t.Errorf("found %v", found)
	}
	for i := range r.after {
		r.after[i].connections = 700 - r.after[i].connections // they are closed, and something else takes their place
	}
	if found := r.judge(); len(found) != 2 {
		t.Errorf("found %v", found)
	}
}

func TestConnectionsToMastersThatOthersUseProveNothing(t *testing.T) {
	r := series(kinds["connections"], 0, 500, 1000, 1500, 2000, 2500, 3000)
	r.shared = true
	if found := r.judge(); len(found) != 1 || !found[0].Unknown {
		t.Errorf("found %v", found)
	}
}

func TestTooFewRoundsAreNoPass(t *testing.T) {
	r := series(kinds["goroutines"], 0, 1000, 2000)
	if found := r.judge(); len(found) > 0 {
		t.Errorf("of three rounds: %v", found)
	}
	r.doubt("a client made %d", 3)
	if found := r.judge(); len(found) != 1 || !found[0].Unknown || found[0].Text != "a client made 3" {
		t.Errorf("found %v", found)
	}
}
