//go:build !race

// The race detector allocates too.

package micro_test

import (
	"bufio"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// update rewrites testdata/baseline.txt: go test ./bench/micro -run Baseline -update
var update = flag.Bool("update", false, "write the baseline anew")

const baselineFile = "testdata/baseline.txt"

// counted are the figures that do not depend on the machine, in benchstat's units, with the increase that chance can
// explain. A pool that the garbage collector emptied is filled again, and a map grows.
var counted = map[string]struct{ factor, plus float64 }{
	"allocs/op":   {1.02, 0.3},
	"B/op":        {1.05, 64},
	"commands/op": {1, 0.05},
	"bytes-in/op": {1, 1},
	// Of this process, as Linux counts them. The Go runtime writes sometimes, to wake itself.
	"reads/op":  {1, 0.7},
	"writes/op": {1, 0.7},
}

// figures are numbers by unit, by benchmark.
type figures map[string]map[string]float64

// TestNothingCostsMoreThanTheBaseline compares heap allocations of the client, and commands and bytes on the master,
// with the baseline. benchstat can read the baseline too.
func TestNothingCostsMoreThanTheBaseline(t *testing.T) {
	now := measure(t)
	if *update {
		must(t, os.WriteFile(baselineFile, []byte(now.String()), 0o600))
	}
	text, err := os.ReadFile(baselineFile)
	must(t, err)
	base := read(t, string(text))
	if runtime.GOOS != "linux" {
		base.drop("reads/op", "writes/op")
	}
	for _, complaint := range compare(base, now) {
		t.Error(complaint + "; if it is meant: go test ./bench/micro -run Baseline -update")
	}
}

func TestTheBaselineNoticesHigherAndLowerFigures(t *testing.T) {
	base := figures{"A": {"allocs/op": 6, "commands/op": 4}, "B": {"B/op": 1000}}
	for name, tt := range map[string]struct {
		now  figures
		want string
	}{
		"the same": {base, ""},
		"chance":   {figures{"A": {"allocs/op": 6.2, "commands/op": 4.01}, "B": {"B/op": 1040}}, ""},
		"an allocation more": {
			figures{"A": {"allocs/op": 7, "commands/op": 4}, "B": {"B/op": 1000}}, "A: 7.00 allocs/op",
		},
		"half a command more": {
			figures{"A": {"allocs/op": 6, "commands/op": 4.5}, "B": {"B/op": 1000}}, "A: 4.50 commands/op",
		},
		"bytes": {
			figures{"A": {"allocs/op": 6, "commands/op": 4}, "B": {"B/op": 1200}}, "B: 1200.00 B/op",
		},
		"an allocation less": {
			figures{"A": {"allocs/op": 5, "commands/op": 4}, "B": {"B/op": 1000}}, "A: 5.00 allocs/op",
		},
		"a benchmark is gone":  {figures{"A": {"allocs/op": 6, "commands/op": 4}}, "B was not measured"},
		"a number is gone":     {figures{"A": {"allocs/op": 6}, "B": {"B/op": 1000}}, "A has no commands/op"},
		"a benchmark is added": {figures{"A": base["A"], "B": base["B"], "C": {"B/op": 1}}, "C is not in the baseline"},
	} {
		got := strings.Join(compare(base, tt.now), "; ")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func (f figures) drop(units ...string) {
	for _, of := range f {
		for _, unit := range units {
			delete(of, unit)
		}
	}
}

// compare lists the figures that rose. It also lists figures that fell so far that the baseline would not notice if the
// gain was lost again.
func compare(base, now figures) (complaints []string) {
	for _, name := range slices.Sorted(maps.Keys(base)) {
		if now[name] == nil {
			complaints = append(complaints, name+" was not measured")
			continue
		}
		for _, unit := range slices.Sorted(maps.Keys(base[name])) {
			was, allowed := base[name][unit], counted[unit]
			got, ok := now[name][unit]
			switch {
			case !ok:
				complaints = append(complaints, fmt.Sprintf("%s has no %s", name, unit))
			case got > was*allowed.factor+allowed.plus, got*allowed.factor+allowed.plus < was:
				complaints = append(complaints,
					fmt.Sprintf("%s: %.2f %s, and the baseline has %.2f", name, got, unit, was))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if base[name] == nil {
			complaints = append(complaints, name+" is not in the baseline")
		}
	}
	return complaints
}

// measure runs the benchmarks of the baseline: whole cycles over masters in memory, and requests to a real master.
func measure(t *testing.T) figures {
	t.Helper()
	must(t, flag.Set("test.benchtime", "2000x"))
	now := make(figures)
	run := func(name string, f func(*testing.B)) {
		r := testing.Benchmark(f)
		if r.N == 0 {
			t.Fatalf("%s failed", name)
		}
		now[name] = map[string]float64{
			"allocs/op": float64(r.MemAllocs) / float64(r.N), "B/op": float64(r.MemBytes) / float64(r.N),
		}
		maps.Copy(now[name], r.Extra)
	}
	for _, n := range []int{1, 5} {
		run(fmt.Sprintf("Quorum/masters=%d", n), func(b *testing.B) { b.Helper(); quorum(b, n) })
	}
	server := redistest.Start(t)
	m := dial(t, server)
	counting := func(name string, f func(*testing.B)) {
		run(name, func(b *testing.B) {
			b.Helper()
			f(b) // the first run also loads scripts and creates a counter; it is not compared
			before := spent(b, server)
			b.ResetTimer()
			f(b)
			for unit, n := range spent(b, server) {
				b.ReportMetric((n-before[unit])/float64(b.N), unit)
			}
		})
	}
	for name, f := range scripts(m) {
		if name != extending {
			counting("Script/"+name, f)
		}
	}
	locker := lockerOver(t, m)
	for name, opts := range cycles() {
		counting("Cycle/"+name, func(b *testing.B) {
			b.Helper()
			for range b.N {
				cycle(b, locker, opts...)
			}
		})
	}
	return now
}

// spent returns a server's statistics so far. The question itself costs a command that is not counted, and some bytes.
func spent(b *testing.B, server *redistest.Server) map[string]float64 {
	b.Helper()
	text, err := server.Client().Info(b.Context(), "all").Result()
	if err != nil {
		b.Fatal(err)
	}
	sum := systemCalls(b)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch command, ok := strings.CutPrefix(name, "cmdstat_"); {
		case name == "total_net_input_bytes":
			sum["bytes-in/op"], err = strconv.ParseFloat(value, 64)
		case ok && command != "info":
			var n int
			_, err = fmt.Sscanf(value, "calls=%d", &n)
			sum["commands/op"] += float64(n)
		}
		if err != nil {
			b.Fatalf("%s: %v", line, err)
		}
	}
	return sum
}

// systemCalls returns how often this process has read and written; nothing where the system does not count that.
func systemCalls(b *testing.B) map[string]float64 {
	b.Helper()
	sum := make(map[string]float64)
	if runtime.GOOS != "linux" {
		return sum
	}
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if unit := map[string]string{"syscr": "reads/op", "syscw": "writes/op"}[name]; unit != "" {
			if sum[unit], err = strconv.ParseFloat(value, 64); err != nil {
				b.Fatalf("%s: %v", line, err)
			}
		}
	}
	return sum
}

// String is in the form of a benchmark's output.
func (f figures) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(&b, "Benchmark%s 2000", name)
		for _, unit := range slices.Sorted(maps.Keys(f[name])) {
			fmt.Fprintf(&b, " %.2f %s", f[name][unit], unit)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// read is the reverse of String.
func read(t *testing.T, text string) figures {
	t.Helper()
	f := make(figures)
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) < 4 || len(words)%2 != 0 {
			t.Fatalf("%s: %q", baselineFile, lines.Text())
		}
		of := make(map[string]float64)
		for i := 2; i < len(words); i += 2 {
			n, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				t.Fatalf("%s: %v", baselineFile, err)
			}
			of[words[i+1]] = n
		}
		f[strings.TrimPrefix(words[0], "Benchmark")] = of
	}
	return f
}
