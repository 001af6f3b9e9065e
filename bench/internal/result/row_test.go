package result_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/measure"
	"github.com/seed-624411e5/redlock/bench/internal/result"
)

func latency(durations ...time.Duration) measure.Latency {
	r := measure.NewRecorder()
	for i, d := range durations {
		r.Record(i, d)
	}
	return r.Snapshot()
}

func slices() []result.Slice {
	boom := errors.New("boom")
	return []result.Slice{
		{
			OpsPerSecond: 100, Latency: latency(time.Millisecond), Errors: 1, FirstError: boom,
			Extra: map[string]float64{"gap_p50_us": 5, result.Allocs: 10}, Count: map[string]int64{"overlaps": 1},
			Distributions: map[string]measure.Latency{"cycle": latency(time.Millisecond)},
		},
		{
			OpsPerSecond: 300, Latency: latency(3 * time.Millisecond), Errors: 2,
			Extra: map[string]float64{"gap_p50_us": 7, result.Allocs: 30}, Worst: map[string]float64{"away_max_us": 9},
			Count:         map[string]int64{"overlaps": 2},
			Distributions: map[string]measure.Latency{"cycle": latency(3 * time.Millisecond)},
		},
		{
			OpsPerSecond: 200, Latency: latency(2 * time.Millisecond),
			Extra: map[string]float64{"gap_p50_us": 6, result.Allocs: 20, result.Fairness: 0.5},
			Worst: map[string]float64{"away_max_us": 4},
		},
	}
}

func TestRowIsTheMedianWithTheWorstKept(t *testing.T) {
	r := result.Of(result.Key{Scenario: "distinct", Subject: "redlock", Workers: 8, Masters: 5}, slices())
	for name, want := range map[string]float64{
		"ops_per_s": 200, "ops_per_s_min": 100, "ops_per_s_max": 300, "p50_us": 2000, "max_us": 3000,
		"allocs_per_op": 20, "errors": 3, "overlaps": 3, "gap_p50_us": 6, "away_max_us": 9, "fairness": 0.5,
	} {
		got, ok := r.Get(name)
		if !ok || math.Abs(got-want) > want/500 {
			t.Errorf("%s = %v (%t), want %v", name, got, ok, want)
		}
	}
	if _, ok := r.Get("bytes_per_op"); ok {
		t.Error("bytes_per_op was never measured and has a value")
	}
	if r.Distributions["cycle"].Count() != 2 || r.FirstError == nil || r.Repeat != 3 {
		t.Errorf("distribution of %d, error %v, %d repetitions", r.Distributions["cycle"].Count(), r.FirstError,
			r.Repeat)
	}
}

func TestJSONIsAnArrayOfFlatObjects(t *testing.T) {
	var out bytes.Buffer
	rows := []result.Row{
		result.Of(result.Key{Scenario: "contended", Subject: "redlock", Workers: 8, Masters: 5}, slices()),
		result.Of(result.Key{Scenario: "distinct", Subject: "limit", Workers: 8, Masters: 5},
			[]result.Slice{{OpsPerSecond: 7}}),
	}
	if err := result.WriteJSON(&out, rows); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	if len(got) != 2 {
		t.Fatalf("%d objects, want 2", len(got))
	}
	for _, name := range []string{
		"scenario", "subject", "workers", "masters", "ops_per_s", "p50_us", "p99_us", "max_us", "allocs_per_op",
		"bytes_per_op", "errors",
	} {
		for i, object := range got {
			if _, there := object[name]; !there {
				t.Errorf("object %d has no %s", i, name)
			}
		}
	}
	if got[0]["fairness"] != 0.5 || got[0]["gap_p50_us"] != 6.0 || got[0]["overlaps"] != 3.0 {
		t.Errorf("the extra fields are not among the others: %v", got[0])
	}
	if got[1]["p50_us"] != nil || got[1]["ops_per_s"] != 7.0 {
		t.Errorf("figures without a measurement must be null: %v", got[1])
	}
	if _, there := got[1]["fairness"]; there {
		t.Errorf("fairness without contention: %v", got[1])
	}
}

func TestNumbersThatJSONCannotCarryAreErrors(t *testing.T) {
	r := result.Of(result.Key{Scenario: "x"}, []result.Slice{{Extra: map[string]float64{"odd": math.NaN()}}})
	if err := result.WriteJSON(&bytes.Buffer{}, []result.Row{r}); err == nil {
		t.Error("no error for NaN")
	}
}

func TestNoRowsAreAnEmptyArray(t *testing.T) {
	var out bytes.Buffer
	if err := result.WriteJSON(&out, nil); err != nil {
		t.Fatal(err)
	}
	var got []any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got == nil || len(got) != 0 {
		t.Errorf("%q is no empty array (%v)", out.String(), err)
	}
}
