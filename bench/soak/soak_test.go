package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable()
	goleak.VerifyTestMain(m)
}

// TestEveryWorkIsDoneOnRealServers is short: it has too few samples and faults to prove anything, and must say so.
func TestEveryWorkIsDoneOnRealServers(t *testing.T) {
	redistest.Start(t) // is there a server?
	dir := t.TempDir()
	out, file := filepath.Join(dir, "soak.json"), filepath.Join(dir, "soak.svg")
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), []string{"-for", "8s", "-every", "1s", "-lockers", "1", "-json", out, "-plot", file},
		&stdout, &stderr)
	if status != exitUnknown || !strings.Contains(stdout.String(), "samples were taken") {
		t.Errorf("status %d: %s%s", status, &stdout, &stderr)
	}
	var seen observation
	raw, err := os.ReadFile(out)
	if err != nil || json.Unmarshal(raw, &seen) != nil || len(seen.Samples) < 3 {
		t.Fatalf("%s, %v", raw, err)
	}
	for name, n := range seen.Work {
		if n[0] == 0 {
			t.Errorf("%s: never once, and %d failed", name, n[1])
		}
	}
	var faults int64
	for _, n := range seen.Faults {
		faults += n[0]
	}
	if picture, err := os.ReadFile(file); err != nil || !bytes.Contains(picture, []byte("<svg")) || faults == 0 {
		t.Errorf("%d faults, a picture of %d bytes, %v", faults, len(picture), err)
	}
}

func TestBadFlagsAreNamed(t *testing.T) {
	for says, args := range map[string][]string{
		"unexpected argument \"1h\"": {"1h"},
		"have to be positive":        {"-for", "0s"},
		"-nonsense":                  {"-nonsense"},
	} {
		var stdout, stderr bytes.Buffer
		if status := run(t.Context(), args, &stdout, &stderr); status != exitUsage ||
			!strings.Contains(stderr.String(), says) {
			t.Errorf("%q: status %d, %s", args, status, &stderr)
		}
	}
}

func TestGrowthIsFound(t *testing.T) {
	flat := func(i int) float64 { return 1e7 + float64(i%7)*1e5 }
	for name, tt := range map[string]struct {
		heap, goroutines func(i int) float64
		n                int
		grew, unshown    string
	}{
		"flat": {flat, func(int) float64 { return 200 }, 90, "", ""},
		"filled at first": {func(i int) float64 { return min(1e7, 1e6*float64(i)) }, func(int) float64 {
			return 200
		}, 90, "", ""},
		"a leak of memory": {func(i int) float64 { return 1e7 + 1e5*float64(i) }, func(int) float64 {
			return 200
		}, 90, "heap", ""},
		"a leak of goroutines":  {flat, func(i int) float64 { return 200 + float64(i) }, 90, "goroutines", ""},
		"too few to be trusted": {flat, func(int) float64 { return 200 }, 20, "", "20 samples"},
	} {
		o := observation{Work: map[string][2]int64{"locks": {1, 0}}, Faults: map[string][2]int64{"stopped": {1, 0}}}
		for i := range tt.n {
			o.Samples = append(o.Samples, sample{At: float64(i), Heap: tt.heap(i), Goroutines: tt.goroutines(i)})
		}
		for what, got := range map[string][2]string{
			"grew": {strings.Join(o.grew(), ";"), tt.grew}, "unshown": {strings.Join(o.unshown(), ";"), tt.unshown},
		} {
			if got[1] == "" && got[0] != "" || !strings.Contains(got[0], got[1]) {
				t.Errorf("%s: %s: %q, want %q", name, what, got[0], got[1])
			}
		}
	}
	idle := observation{Samples: make([]sample, leastSamples), Work: map[string][2]int64{"locks": {0, 5}}}
	if got := idle.unshown(); len(got) != 1 || !strings.Contains(got[0], "locks: never once") {
		t.Errorf("of what never succeeded: %q", got)
	}
}
