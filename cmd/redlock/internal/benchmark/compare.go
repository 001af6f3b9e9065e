package benchmark

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Verdicts of a comparison.
const (
	// Slower: the difference is not chance, and it is large enough to matter.
	Slower = "slower"
	// Faster is the same in the other direction.
	Faster = "faster"
	// Small: the difference is not chance, but too small to matter.
	Small = "no relevant difference"
	// NotShown: the difference may be chance.
	NotShown = "no difference shown"
	// Unknown: there are too few samples for an answer. It is never a pass.
	Unknown = "UNKNOWN"
)

const (
	// alpha is the allowed probability of a false alarm, for all rows of a comparison together.
	alpha = 0.05
	// mostFailed is the greatest share of failed operations at which the times of the others still mean something.
	mostFailed = 0.01
)

// Comparison compares a report with earlier ones.
type Comparison struct {
	Old   []string `json:"old"`   // the files
	Runs  int      `json:"runs"`  // compared with the old ones
	Worse float64  `json:"worse"` // the least difference that matters, as a fraction
	Alpha float64  `json:"alpha"`
	// Verdict is Slower if one row is, else Unknown if one row is, else "not slower".
	Verdict string   `json:"verdict"`
	Notes   []string `json:"notes,omitempty"` // other differences
	Rows    []Delta  `json:"rows"`
}

// NotSlower is the verdict of a comparison without slower rows and without unknown rows.
const NotSlower = "not slower"

// Delta compares a quantile of a measure. A sample is the quantile of one round.
type Delta struct {
	Measure  string  `json:"measure"`
	Quantile string  `json:"quantile"`
	Old      Center  `json:"old"`
	New      Center  `json:"new"`
	Change   float64 `json:"change"` // change of the median, as a fraction of the old one
	// P is the probability of such samples if nothing differs, by the Mann-Whitney U test. Adjusted is P corrected by
	// Holm's method: it keeps the probability of a false alarm in any row below Alpha.
	P        float64 `json:"p"`
	Adjusted float64 `json:"p_adjusted"`
	Verdict  string  `json:"verdict"`
	Why      string  `json:"why,omitempty"` // why it is unknown, or why P is small and no difference is shown

	apart bool // every run of the slower side is slower than every run of the other
}

// Judgement has the limits of a comparison.
type Judgement struct {
	Quantiles []string // p50, p90, p99, p99.9
	Worse     float64
}

// Check returns an error if j is invalid, in the words of the command's flags.
func (j Judgement) Check() error {
	if !(j.Worse > 0 && j.Worse <= 10) {
		return fmt.Errorf("-worse: want a part greater than 0, up to 1000%%")
	}
	for i, q := range j.Quantiles {
		if leastOf(q) == 0 {
			return errors.New("-judge: there are p50, p90, p99 and p99.9")
		}
		if slices.Contains(j.Quantiles[:i], q) {
			return fmt.Errorf("-judge: %s is there twice", q)
		}
	}
	return nil
}

// Comparable returns the reason why reports with these settings can't be compared; nil if they can.
func Comparable(old, now Settings) error {
	var differ []string
	add := func(name string, a, b any) {
		if a != b {
			differ = append(differ, fmt.Sprintf("%s (%v, then %v)", name, a, b))
		}
	}
	add("loop", old.Loop, now.Loop)
	add("-rate", old.Rate, now.Rate)
	add("-window", seconds(old.Window), seconds(now.Window))
	add("-workers", old.Workers, now.Workers)
	add("-contenders", old.Contenders, now.Contenders)
	add("-ops", old.Ops, now.Ops)
	add("-ttl", seconds(old.TTL), seconds(now.TTL))
	add("-fenced", old.Fenced, now.Fenced)
	add("the number of masters", old.Masters, now.Masters)
	if len(differ) > 0 {
		return fmt.Errorf("they were measured in different ways: %s", strings.Join(differ, ", "))
	}
	return nil
}

// Compare judges whether operations in the reports now are slower than in the old ones. All reports must be comparable.
// Compare pools the rounds of the reports on each side. The rounds of one run share its good or bad minutes, which no
// test over rounds can detect. So if there are several runs, a row is slower only if it is slower in every new run than
// in every old one.
func Compare(old, now []*Report, j Judgement) *Comparison {
	c := &Comparison{Runs: len(now), Worse: j.Worse, Alpha: alpha, Verdict: NotSlower, Notes: notes(old[0], now[0])}
	before, after := pooled(old), pooled(now)
	for i := range after {
		for _, q := range j.Quantiles {
			d := delta(before[i], after[i], q)
			d.apart = apart(mediansOf(old, i, q), mediansOf(now, i, q))
			c.Rows = append(c.Rows, d)
		}
	}
	c.judge()
	for _, row := range c.Rows {
		if row.Verdict == Slower || row.Verdict == Unknown && c.Verdict != Slower {
			c.Verdict = row.Verdict
		}
	}
	return c
}

// pooled returns the measures with the rounds and histograms of all reports. It matches measures by position, because
// masters may have other names than before.
func pooled(reports []*Report) []Measure {
	measures := slices.Clone(reports[0].Measures)
	for i := range measures {
		m := &measures[i]
		m.Rounds, m.Buckets = slices.Clone(m.Rounds), slices.Clone(m.Buckets)
		for _, more := range reports[1:] {
			other := more.Measures[i]
			m.Rounds = append(m.Rounds, other.Rounds...)
			m.N, m.Failed, m.Unfinished = m.N+other.N, m.Failed+other.Failed, m.Unfinished+other.Unfinished
			m.Buckets, m.Max = append(m.Buckets, other.Buckets...), max(m.Max, other.Max)
		}
		slices.SortFunc(m.Buckets, func(a, b Bucket) int { return cmp.Compare(a.From, b.From) })
	}
	return measures
}

// mediansOf are the medians of a measure's rounds, one of each report.
func mediansOf(reports []*Report, measure int, quantile string) (medians []float64) {
	for _, r := range reports {
		values, _ := r.Measures[measure].samples(quantile)
		medians = append(medians, center(values).Median)
	}
	return medians
}

// apart reports whether all values of one side are above all of the other.
func apart(a, b []float64) bool {
	return slices.Max(a) < slices.Min(b) || slices.Max(b) < slices.Min(a)
}

// delta compares one quantile. It sets the verdict only if that is unknown; otherwise the verdict depends on the other
// quantiles.
func delta(old, now Measure, quantile string) Delta {
	d := Delta{Measure: now.Name, Quantile: quantile, P: 1, Adjusted: 1}
	before, oldShort := old.samples(quantile)
	after, newShort := now.samples(quantile)
	d.Old, d.New = center(before), center(after)
	if d.Old.Median > 0 && d.New.N > 0 {
		d.Change = d.New.Median/d.Old.Median - 1
	}
	switch {
	case old.N == 0 || now.N == 0:
		d.Why = "nothing was measured"
	case tooManyFailed(old) || tooManyFailed(now):
		d.Why = fmt.Sprintf("of %d operations %d failed or did not end, then of %d %d", old.N+old.Failed,
			old.Failed+old.Unfinished, now.N+now.Failed, now.Failed+now.Unfinished)
	case oldShort > mostShort(old) || newShort > mostShort(now):
		d.Why = fmt.Sprintf("%d rounds have less than the %d operations that it takes; a longer -window has more",
			oldShort+newShort, leastOf(quantile))
	default:
		d.P = mannWhitney(before, after)
		return d
	}
	d.Verdict = Unknown
	return d
}

// mostShort is the number of rounds that may have too few operations for a quantile. A round has few operations if the
// machine or the network made little progress. Such a round counts, with its slowest operation.
func mostShort(m Measure) int { return len(m.Rounds) / 4 }

func tooManyFailed(m Measure) bool {
	return float64(m.Failed+m.Unfinished) > mostFailed*float64(m.N+m.Failed)
}

// judge sets the verdicts of the rows that have none.
func (c *Comparison) judge() {
	p := make([]float64, len(c.Rows))
	for i, row := range c.Rows {
		p[i] = row.P
	}
	for i, adjusted := range holm(p) {
		row := &c.Rows[i]
		row.Adjusted = adjusted
		switch {
		case row.Verdict != "":
		case leastP(row.Old.N, row.New.N)*float64(len(c.Rows)) >= c.Alpha:
			row.Verdict = Unknown
			row.Why = fmt.Sprintf("%d and %d rounds are too few to show any difference among %d rows; -rounds "+
				"makes more", row.Old.N, row.New.N, len(c.Rows))
		case adjusted >= c.Alpha:
			row.Verdict = NotShown
		case !row.apart && math.Abs(row.Change) >= c.Worse:
			row.Verdict, row.Why = NotShown, "runs of both sides overlap"
		case row.Change >= c.Worse:
			row.Verdict = Slower
		case row.Change <= -c.Worse:
			row.Verdict = Faster
		default:
			row.Verdict = Small
		}
	}
}

// notes lists differences other than settings. Reports with such differences can still be compared.
func notes(old, now *Report) (notes []string) {
	add := func(what, a, b string) {
		if a != b {
			notes = append(notes, fmt.Sprintf("%s: %s, then %s", what, a, b))
		}
	}
	all := func(Master) bool { return true }
	isDown := func(m Master) bool { return !m.Usable }
	add("masters", names(old, all), names(now, all))
	add("masters that did not answer", names(old, isDown), names(now, isDown))
	add("machine", fmt.Sprintf("%s, %d CPUs", old.Platform, old.CPUs),
		fmt.Sprintf("%s, %d CPUs", now.Platform, now.CPUs))
	add("redlock", old.Version, now.Version)
	add("Go", old.Go, now.Go)
	return notes
}

func names(r *Report, is func(Master) bool) string {
	var names []string
	for _, m := range r.Masters {
		if is(m) {
			names = append(names, m.Name)
		}
	}
	return cmp.Or(strings.Join(names, " "), "none")
}
