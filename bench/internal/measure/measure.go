// Package measure turns a benchmark's observations into numbers: latency histograms, medians over repetitions, the
// fairness of a queue, and the wait in a perfect queue. Everything in it is pure except the locks inside [Recorder]. It
// knows nothing of Redis or of locks.
package measure

import (
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// lowest and highest are the range of a histogram, in nanoseconds. Shorter durations count as lowest and longer
	// ones as highest, so no measurement is ever dropped.
	lowest  = int64(1 * time.Microsecond)
	highest = int64(10 * time.Minute)

	// digits is how many significant decimal digits a histogram keeps: an error of at most 0.1 %.
	digits = 3

	// shards is the number of locks over which one Recorder spreads its goroutines. With a thousand workers on few
	// cores, a single lock would distort the measurement.
	shards = 8
)

// Recorder collects durations from many goroutines at once. The zero value is not usable; call [NewRecorder].
type Recorder struct {
	shard [shards]struct {
		mu   sync.Mutex
		hist *Histogram
		_    [40]byte // keep two shards off one cache line
	}
}

// NewRecorder returns an empty Recorder.
func NewRecorder() *Recorder {
	r := &Recorder{}
	for i := range r.shard {
		r.shard[i].hist = NewHistogram()
	}
	return r
}

// Record adds one duration. The worker only chooses a shard: any number is allowed. Safe for concurrent use.
func (r *Recorder) Record(worker int, d time.Duration) {
	s := &r.shard[uint(worker)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hist.Record(d)
}

// Snapshot returns everything recorded so far. Safe for concurrent use; later records do not change the answer.
func (r *Recorder) Snapshot() Latency {
	h := hdrhistogram.New(lowest, highest, digits)
	for i := range r.shard {
		s := &r.shard[i]
		s.mu.Lock()
		h.Merge(s.hist.hist)
		s.mu.Unlock()
	}
	return Latency{hist: h}
}

// Histogram collects the durations of one goroutine, which needs no lock for that. It is not safe for concurrent use.
type Histogram struct{ hist *hdrhistogram.Histogram }

// NewHistogram returns an empty Histogram.
func NewHistogram() *Histogram { return &Histogram{hdrhistogram.New(lowest, highest, digits)} }

// Record adds one duration.
func (h *Histogram) Record(d time.Duration) {
	// The value is within the histogram's range, so there is no error to return.
	_ = h.hist.RecordValue(min(max(int64(d), lowest), highest))
}

// Snapshot returns everything recorded so far.
func (h *Histogram) Snapshot() Latency { return Merge(Latency{hist: h.hist}) }

// Latency is a finished distribution of durations. The zero value is an empty one. It is never changed after it was
// made, so it is safe for concurrent use.
type Latency struct {
	hist *hdrhistogram.Histogram
}

// Count is how many durations were recorded.
func (l Latency) Count() int64 {
	if l.hist == nil {
		return 0
	}
	return l.hist.TotalCount()
}

// Quantile returns the duration that a share q of all recorded ones does not exceed; q is between 0 and 1. An empty
// distribution answers 0.
func (l Latency) Quantile(q float64) time.Duration {
	if l.Count() == 0 {
		return 0
	}
	return time.Duration(l.hist.ValueAtPercentile(q * 100))
}

// Max is the greatest recorded duration, 0 for an empty distribution.
func (l Latency) Max() time.Duration {
	if l.Count() == 0 {
		return 0
	}
	return time.Duration(l.hist.Max())
}

// Merge returns one distribution with everything that was recorded in any of the given ones.
func Merge(all ...Latency) Latency {
	h := hdrhistogram.New(lowest, highest, digits)
	for _, l := range all {
		if l.hist != nil {
			h.Merge(l.hist)
		}
	}
	return Latency{hist: h}
}

// Micros is d in microseconds, the unit of every latency in the output.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Spread is one number over several repetitions: the median, the least and the greatest.
type Spread struct {
	Median, Min, Max float64
}

// SpreadOf takes the median, the least and the greatest of values. Of an even number of values the median is the mean
// of the two in the middle. No values give the zero Spread. The argument is not changed.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	s := slices.Sorted(slices.Values(values))
	mid := s[len(s)/2]
	if len(s)%2 == 0 {
		mid = (s[len(s)/2-1] + s[len(s)/2]) / 2
	}
	return Spread{Median: mid, Min: s[0], Max: s[len(s)-1]}
}
