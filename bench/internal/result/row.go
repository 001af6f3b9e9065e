// Package result holds a benchmark's results: a Slice for each repetition, a Row for all repetitions, and the JSON.
package result

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/seed-624411e5/redlock/bench/internal/measure"
)

// Key identifies a row: there is one row for each Key.
type Key struct {
	Scenario, Subject string
	Workers, Masters  int
	// Kind is the kind of hold in the scenario kinds, and empty everywhere else.
	Kind string
}

// Slice holds the measurements of one repetition of one subject. It has latencies as distributions; [Of] computes the
// figures.
type Slice struct {
	OpsPerSecond float64
	// Latency is the source of p50_us, p99_us and max_us: the cycle, or in the scenario contended the wait.
	Latency measure.Latency
	Errors  int64
	// Extra has further numbers by their JSON names; of several repetitions the median is taken.
	Extra map[string]float64
	// Worst has further numbers; a Row has the greatest of the repetitions.
	Worst map[string]float64
	// Count has further numbers that are summed over the repetitions, such as overlaps.
	Count map[string]int64
	// Distributions are for the plots, by name: cycle, acquire, gap, wait.
	Distributions map[string]measure.Latency
	// FirstError explains Errors to a human; it is not part of the JSON.
	FirstError error
}

// The names of figures that every JSON row has, null where they were not measured. Allocations and bytes are per cycle.
// They are missing if the harness's own can't be excluded.
const (
	OpsPerS = "ops_per_s"
	P50     = "p50_us"
	P99     = "p99_us"
	Max     = "max_us"
	Allocs  = "allocs_per_op"
	Bytes   = "bytes_per_op"
)

// Fairness is the name of Jain's index, which only rows about contention have.
const Fairness = "fairness"

// ranged lists figures. A Row also has their least and greatest value over the repetitions, such as ops_per_s_min.
var ranged = []string{OpsPerS, P50, P99, Allocs, Bytes, Fairness}

// Row is the median of several Slices of one Key.
type Row struct {
	Key
	// Figures are the numbers by their JSON names, without those that were not measured.
	Figures map[string]float64
	Errors  int64
	// Repeat is the number of repetitions behind the median.
	Repeat int
	// Distributions are all repetitions together, for the plots.
	Distributions map[string]measure.Latency
	// About describes the subject and its servers, if it does not use the masters; for people.
	About string
	// FirstError is one of the errors, for a human.
	FirstError error
}

// Of makes a row from the repetitions of a key. Numbers are medians. max_us and the numbers in Worst are the greatest
// of all, and errors and counts are sums, because an average would hide the worst repetition.
func Of(key Key, repetitions []Slice) Row {
	row := Row{
		Key: key, Repeat: len(repetitions), Figures: map[string]float64{}, Distributions: map[string]measure.Latency{},
	}
	values := map[string][]float64{}
	note := func(name string, v float64) { values[name] = append(values[name], v) }
	worst := func(name string, v float64) { row.Figures[name] = max(v, row.Figures[name]) }
	for _, s := range repetitions {
		note(OpsPerS, s.OpsPerSecond)
		if s.Latency.Count() > 0 {
			note(P50, measure.Micros(s.Latency.Quantile(0.50)))
			note(P99, measure.Micros(s.Latency.Quantile(0.99)))
			worst(Max, measure.Micros(s.Latency.Max()))
		}
		for name, v := range s.Extra {
			note(name, v)
		}
		row.Errors += s.Errors
		row.FirstError = cmp.Or(row.FirstError, s.FirstError)
		for name, v := range s.Worst {
			worst(name, v)
		}
		for name, n := range s.Count {
			row.Figures[name] += float64(n)
		}
		for name, d := range s.Distributions {
			row.Distributions[name] = measure.Merge(row.Distributions[name], d)
		}
	}
	for name, v := range values {
		s := measure.SpreadOf(v)
		row.Figures[name] = s.Median
		if slices.Contains(ranged, name) {
			row.Figures[name+"_min"], row.Figures[name+"_max"] = s.Min, s.Max
		}
	}
	return row
}

// Get returns the number with this JSON name; false if the row has none.
func (r Row) Get(name string) (float64, bool) {
	if name == "errors" {
		return float64(r.Errors), true
	}
	v, ok := r.Figures[name]
	return v, ok
}

// MarshalJSON writes the row as one flat object: the common fields first, then the others by name.
func (r Row) MarshalJSON() ([]byte, error) {
	out := bytes.NewBufferString("{")
	var failed error
	add := func(name string, value any) {
		b, err := json.Marshal(value)
		if err != nil {
			failed = fmt.Errorf("result: row %+v: %s: %w", r.Key, name, err)
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		fmt.Fprintf(out, "%q:%s", name, b)
	}
	left := maps.Clone(r.Figures)
	figure := func(name string) {
		if v, there := left[name]; there {
			add(name, v)
		} else {
			add(name, nil)
		}
		delete(left, name)
	}
	add("scenario", r.Scenario)
	add("subject", r.Subject)
	if r.Kind != "" {
		add("kind", r.Kind)
	}
	add("workers", r.Workers)
	add("masters", r.Masters)
	for _, name := range []string{OpsPerS, P50, P99, Max, Allocs, Bytes} {
		figure(name)
	}
	add("errors", r.Errors)
	add("repeat", r.Repeat)
	for _, name := range slices.Sorted(maps.Keys(left)) {
		figure(name)
	}
	out.WriteByte('}')
	return out.Bytes(), failed
}

// WriteJSON writes all rows as one array, an object a line.
func WriteJSON(w io.Writer, rows []Row) error {
	out := bytes.NewBufferString("[")
	for i, r := range rows {
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n  ")
		out.Write(b)
	}
	out.WriteString("\n]\n")
	_, err := w.Write(out.Bytes())
	return err
}
