package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-624411e5/redlock/bench/internal/measure"
)

// observation is the record of a soak.
type observation struct {
	Seed    uint64              `json:"seed"`
	Samples []sample            `json:"samples"`
	Work    map[string][2]int64 `json:"work"`   // successes and failures
	Faults  map[string][2]int64 `json:"faults"` // the same
}

// leastSamples is the number of samples below which a trend can't be told from work in progress.
const leastSamples = 30

// quantity is one number of a sample. It also has the increase that is no growth, because samples differ by the work in
// progress.
type quantity struct {
	name   string
	of     func(sample) float64
	factor float64
	plus   float64
}

func quantities() []quantity {
	const mega = 1 << 20
	return []quantity{
		{"heap (bytes)", func(s sample) float64 { return s.Heap }, 1.05, mega / 2},
		{"stacks (bytes)", func(s sample) float64 { return s.Stack }, 1.05, mega / 2},
		{"goroutines", func(s sample) float64 { return s.Goroutines }, 1.05, 5},
		{"open files", func(s sample) float64 { return s.Files }, 1.05, 5},
	}
}

// grew compares the last third of the time with the one before. It ignores the first third, in which caches and pools
// fill.
func (o *observation) grew() (what []string) {
	third := len(o.Samples) / 3
	if third == 0 {
		return nil
	}
	for _, m := range quantities() {
		before, after := m.median(o.Samples[third:2*third]), m.median(o.Samples[2*third:])
		if after > before*m.factor+m.plus {
			what = append(what,
				fmt.Sprintf("%s from %.0f to %.0f, medians of the second and the last third of the time", m.name,
					before, after))
		}
	}
	return what
}

func (m quantity) median(samples []sample) float64 {
	var of []float64
	for _, s := range samples {
		of = append(of, m.of(s))
	}
	return measure.SpreadOf(of).Median
}

// unshown lists the planned work and faults that did not happen.
func (o *observation) unshown() (what []string) {
	if len(o.Samples) < leastSamples {
		what = append(what, fmt.Sprintf("%d samples were taken, and %d are needed", len(o.Samples), leastSamples))
	}
	for _, of := range []map[string][2]int64{o.Work, o.Faults} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			if of[name][0] == 0 {
				what = append(what, fmt.Sprintf("%s: never once", name))
			}
		}
	}
	return what
}

func (o *observation) latest() string {
	s := o.Samples[len(o.Samples)-1]
	return fmt.Sprintf("%5.0f s: heap %.1f MB, stacks %.1f MB, %.0f goroutines, %.0f open files;", s.At, s.Heap/1e6,
		s.Stack/1e6, s.Goroutines, s.Files)
}

// String describes the work and the faults.
func (o *observation) String() string {
	var b strings.Builder
	for _, of := range []map[string][2]int64{o.Work, o.Faults} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			fmt.Fprintf(&b, "  %-28s %8d", name, of[name][0])
			if failed := of[name][1]; failed > 0 {
				fmt.Fprintf(&b, ", %d failed", failed)
			}
			b.WriteByte('\n')
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
