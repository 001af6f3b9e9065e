package benchmark

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// reportFormat is the version of stored reports. A report of another version can't be compared.
const reportFormat = 1

// Report has the results of a run; it is stored and printed as JSON. Times are in microseconds.
type Report struct {
	Format      int       `json:"format"`
	Time        time.Time `json:"time"` // when it ended
	Version     string    `json:"version"`
	Go          string    `json:"go"`
	Platform    string    `json:"platform"`
	CPUs        int       `json:"cpus"`
	Settings    Settings  `json:"settings"`
	Masters     []Master  `json:"masters"`
	Seconds     float64   `json:"seconds"` // that were measured, warm-up included
	Operations  int64     `json:"operations"`
	Interrupted bool      `json:"interrupted,omitempty"`
	// Overlaps is how often two held the lock at once. A number other than 0 means a broken lock.
	Overlaps   int         `json:"overlaps"`
	Keys       Keys        `json:"keys"`
	Measures   []Measure   `json:"measures"`
	Comparison *Comparison `json:"comparison,omitempty"`
}

// Settings decide whether two reports are comparable: all except Rounds must be the same.
type Settings struct {
	Loop       string  `json:"loop"` // closed or open
	Rate       float64 `json:"rate,omitempty"`
	Rounds     int     `json:"rounds"`
	Window     float64 `json:"window_seconds"`
	Workers    int     `json:"workers"`
	Contenders int     `json:"contenders"`
	Ops        int     `json:"ops"` // 0: any number
	TTL        float64 `json:"ttl_seconds"`
	Fenced     bool    `json:"fenced"`
	Masters    int     `json:"masters"`
}

// SettingsOf returns the settings in a report of c on so many masters.
func SettingsOf(c Config, masters int) Settings {
	s := Settings{
		Loop: "closed", Rate: c.Rate, Rounds: c.Rounds, Window: c.Window.Seconds(), Workers: c.Workers,
		Contenders: c.Contenders,
		Ops:        c.Ops, TTL: c.TTL.Seconds(), Fenced: c.Fenced, Masters: masters,
	}
	if c.Rate > 0 {
		s.Loop = "open"
	}
	return s
}

// Master is one measured master.
type Master struct {
	Name   string `json:"name"`
	Usable bool   `json:"usable"`
	Error  string `json:"error,omitempty"`
}

// Measure is one kind of operation.
type Measure struct {
	Name   string `json:"name"`
	N      int    `json:"n"`
	Failed int    `json:"failed"`
	// counted in N with the time that they had taken when the window was long over
	Unfinished int    `json:"unfinished"`
	Error      string `json:"error,omitempty"`
	Quantiles
	Max     float64  `json:"max_us"`
	Rounds  []Round  `json:"rounds"`
	Buckets []Bucket `json:"histogram"`
}

// Round is one window of a measure.
type Round struct {
	N          int `json:"n"`
	Failed     int `json:"failed,omitempty"`
	Unfinished int `json:"unfinished,omitempty"`
	Quantiles
}

// Quantiles are the quantiles of a distribution. A whole measure lacks a quantile if less than one operation is beyond
// it: a p99 needs 100 operations. A round lacks a quantile only if it had no operation. With few operations, it is the
// slowest one.
type Quantiles struct {
	P50  *float64 `json:"p50_us,omitempty"`
	P90  *float64 `json:"p90_us,omitempty"`
	P99  *float64 `json:"p99_us,omitempty"`
	P999 *float64 `json:"p999_us,omitempty"`
}

// quantiles are the names of the fields of Quantiles, with the share of each and the number of samples that it needs.
var quantiles = []struct {
	name  string
	share float64
	least int
}{{"p50", 0.5, 2}, {"p90", 0.9, 10}, {"p99", 0.99, 100}, {"p99.9", 0.999, 1000}}

// fields are the quantiles in the order of the names above.
func (q *Quantiles) fields() []**float64 { return []**float64{&q.P50, &q.P90, &q.P99, &q.P999} }

// leastOf returns how many samples the quantile with this name needs; 0 if there is no such quantile.
func leastOf(name string) int {
	for _, q := range quantiles {
		if q.name == name {
			return q.least
		}
	}
	return 0
}

// get returns the quantile of this name, and false if there is none.
func (q *Quantiles) get(name string) (float64, bool) {
	for i, field := range q.fields() {
		if quantiles[i].name == name && *field != nil {
			return **field, true
		}
	}
	return 0, false
}

// quantilesOf returns the quantiles for which there are enough operations. With all, any operation is enough.
func quantilesOf(h *Histogram, all bool) (q Quantiles) {
	for i, field := range q.fields() {
		if h.Count() >= quantiles[i].least || all && h.Count() > 0 {
			value := micros(h.Quantile(quantiles[i].share))
			*field = &value
		}
	}
	return q
}

func newMeasure(name string, rounds []Round, total *Histogram, why string) Measure {
	m := Measure{
		Name: name, N: total.Count(), Error: why, Quantiles: quantilesOf(total, false), Max: micros(total.Max()),
		Rounds: rounds, Buckets: total.Buckets(),
	}
	for _, r := range rounds {
		m.Failed += r.Failed
		m.Unfinished += r.Unfinished
	}
	return m
}

// samples returns the rounds' values of a quantile, and how many rounds have too few operations for it.
func (m *Measure) samples(quantile string) (values []float64, short int) {
	least := leastOf(quantile)
	for i := range m.Rounds {
		r := &m.Rounds[i]
		if v, ok := r.get(quantile); ok {
			values = append(values, v)
		}
		if r.N < least {
			short++
		}
	}
	return values, short
}

// whole reports whether r has exactly the measures of its masters, in their order.
func (r *Report) whole() bool {
	return len(r.Masters) > 0 && len(r.Masters) == r.Settings.Masters &&
		slices.EqualFunc(r.Measures, measuresOf(r.Masters), func(m Measure, name string) bool { return m.Name == name })
}

// measuresOf returns the names of all measures in the order of the output.
func measuresOf(masters []Master) []string {
	var names []string
	for _, m := range masters {
		names = append(names, roundTrip+" "+m.Name)
	}
	return append(names, acquireFree, releaseFree, renew, acquireContended, releaseContended, handoff)
}

// Read reads a stored report.
func Read(stored []byte) (*Report, error) {
	var r Report
	switch err := json.Unmarshal(stored, &r); {
	case err != nil:
		return nil, fmt.Errorf("it is no report of redlock bench: %w", err)
	case r.Format != reportFormat:
		return nil, fmt.Errorf("its format is %d, and this version of redlock reads %d", r.Format, reportFormat)
	case !r.whole():
		return nil, errors.New("it is no report of redlock bench: its masters and measures do not go together")
	case r.Interrupted:
		return nil, errors.New("it is of a run that was interrupted")
	}
	return &r, nil
}
