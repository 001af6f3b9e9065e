// Package result holds a benchmark's results: a Slice for each repetition, a Row for all repetitions, and the JSON.
package result

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
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
	// Allocs and Bytes are per cycle. They are nil if the harness's own allocations can't be excluded.
	Allocs, Bytes *float64
	Errors        int64
	// Fairness is Jain's index, nil without contention.
	Fairness *float64
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

// Row is the median of several Slices of one Key.
type Row struct {
	Scenario    string   `json:"scenario"`
	Subject     string   `json:"subject"`
	Kind        string   `json:"kind,omitempty"`
	Workers     int      `json:"workers"`
	Masters     int      `json:"masters"`
	OpsPerS     float64  `json:"ops_per_s"`
	P50         *float64 `json:"p50_us"`
	P99         *float64 `json:"p99_us"`
	Max         *float64 `json:"max_us"`
	AllocsPerOp *float64 `json:"allocs_per_op"`
	BytesPerOp  *float64 `json:"bytes_per_op"`
	Errors      int64    `json:"errors"`
	Fairness    *float64 `json:"fairness,omitempty"`
	// Repeat is the number of repetitions behind the median.
	Repeat int `json:"repeat"`

	// Extra has the range of the repetitions (ops_per_s_min, p50_us_max, …) and the numbers of single scenarios. In
	// JSON its entries are fields of the row, like the others.
	Extra map[string]float64 `json:"-"`
	// Distributions are all repetitions together, for the plots.
	Distributions map[string]measure.Latency `json:"-"`
	// About describes the subject and its servers, if it does not use the masters; for people.
	About string `json:"-"`
	// FirstError is one of the errors, for a human.
	FirstError error `json:"-"`
}

// Key returns the row's key.
func (r Row) Key() Key {
	return Key{Scenario: r.Scenario, Subject: r.Subject, Workers: r.Workers, Masters: r.Masters, Kind: r.Kind}
}

// Of makes a row from the repetitions of a key. Numbers are medians. max_us and the numbers in Worst are the greatest
// of all, and errors and counts are sums, because an average would hide the worst repetition. Without slices the row
// has only zeros.
func Of(key Key, slices []Slice) Row {
	row := Row{
		Scenario: key.Scenario, Subject: key.Subject, Kind: key.Kind, Workers: key.Workers, Masters: key.Masters,
		Repeat: len(slices), Extra: map[string]float64{}, Distributions: map[string]measure.Latency{},
	}
	values := map[string][]float64{}
	note := func(name string, v float64) { values[name] = append(values[name], v) }
	for _, s := range slices {
		note("ops_per_s", s.OpsPerSecond)
		if s.Latency.Count() > 0 {
			note("p50_us", measure.Micros(s.Latency.Quantile(0.50)))
			note("p99_us", measure.Micros(s.Latency.Quantile(0.99)))
			note("max_us", measure.Micros(s.Latency.Max()))
		}
		noteIf(note, "allocs_per_op", s.Allocs)
		noteIf(note, "bytes_per_op", s.Bytes)
		noteIf(note, "fairness", s.Fairness)
		for name, v := range s.Extra {
			note("+"+name, v)
		}
		row.Errors += s.Errors
		row.FirstError = cmp.Or(row.FirstError, s.FirstError)
		for name, v := range s.Worst {
			row.Extra[name] = max(v, row.Extra[name])
		}
		for name, n := range s.Count {
			row.Extra[name] += float64(n)
		}
		for name, d := range s.Distributions {
			row.Distributions[name] = measure.Merge(row.Distributions[name], d)
		}
	}
	row.fill(values)
	return row
}

func noteIf(note func(string, float64), name string, v *float64) {
	if v != nil {
		note(name, *v)
	}
}

func (r *Row) fill(values map[string][]float64) {
	median := func(name string) *float64 {
		if len(values[name]) == 0 {
			return nil
		}
		s := measure.SpreadOf(values[name])
		r.Extra[name+"_min"], r.Extra[name+"_max"] = s.Min, s.Max
		return &s.Median
	}
	if ops := median("ops_per_s"); ops != nil {
		r.OpsPerS = *ops
	}
	r.P50, r.P99 = median("p50_us"), median("p99_us")
	r.AllocsPerOp, r.BytesPerOp, r.Fairness = median("allocs_per_op"), median("bytes_per_op"), median("fairness")
	if maxima := values["max_us"]; len(maxima) > 0 {
		greatest := slices.Max(maxima)
		r.Max = &greatest
	}
	for name, v := range values {
		if name[0] == '+' {
			r.Extra[name[1:]] = measure.SpreadOf(v).Median
		}
	}
}

// Get returns the number with this JSON name; false if the row has none.
func (r Row) Get(name string) (float64, bool) {
	fixed := map[string]*float64{
		"ops_per_s": &r.OpsPerS, "p50_us": r.P50, "p99_us": r.P99, "max_us": r.Max,
		"allocs_per_op": r.AllocsPerOp, "bytes_per_op": r.BytesPerOp, "fairness": r.Fairness,
	}
	if name == "errors" {
		return float64(r.Errors), true
	}
	if v, known := fixed[name]; known {
		if v == nil {
			return 0, false
		}
		return *v, true
	}
	v, ok := r.Extra[name]
	return v, ok
}

// MarshalJSON writes the row as one flat object: the common fields first, then the extra ones by name.
func (r Row) MarshalJSON() ([]byte, error) {
	type plain Row // without methods, or this would call itself
	head, err := json.Marshal(plain(r))
	if err != nil {
		return nil, fmt.Errorf("result: row %+v: %w", r.Key(), err)
	}
	out := bytes.NewBuffer(head[:len(head)-1])
	for _, name := range slices.Sorted(maps.Keys(r.Extra)) {
		v := r.Extra[name]
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("result: row %+v: %s is %v", r.Key(), name, v)
		}
		fmt.Fprintf(out, ",%q:%s", name, jsonNumber(v))
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

func jsonNumber(v float64) []byte {
	// A finite float always marshals; the caller has made sure of that.
	b, _ := json.Marshal(v)
	return b
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
