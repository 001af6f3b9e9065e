package benchmark

import (
	"math/bits"
	"time"
)

const (
	// precision is the number of bits of a duration that a histogram keeps. Every power of two nanoseconds has
	// 2^precision buckets. So a bucket's width is at most 1/256 of its values, and a quantile's error at most half of
	// that.
	precision = 8
	// longest is the limit of a histogram: it treats all longer durations as this one. 18 minutes are far beyond every
	// timeout of an operation.
	longest = time.Duration(1) << 40
)

// Histogram counts durations in buckets that grow with the durations, as HdrHistogram does. The zero value is empty. It
// is not safe for concurrent use.
type Histogram struct {
	counts   []uint64
	n        uint64
	min, max time.Duration
}

// bucketOf returns the bucket of a duration up to longest: its highest precision+1 bits, and the number of bits below.
func bucketOf(d time.Duration) int {
	v := uint64(d)
	shift := max(bits.Len64(v)-precision-1, 0)
	return shift<<precision + int(v>>shift)
}

// bucketRange returns the range of durations in this bucket: from, and up to but without to.
func bucketRange(i int) (from, to time.Duration) {
	shift := max(i>>precision-1, 0)
	low := i - shift<<precision
	return time.Duration(low) << shift, time.Duration(low+1) << shift
}

// Record adds a duration. A negative one counts as 0.
func (h *Histogram) Record(d time.Duration) {
	d = min(max(d, 0), longest)
	i := bucketOf(d)
	h.grow(i + 1)
	h.counts[i]++
	if h.n == 0 || d < h.min {
		h.min = d
	}
	h.max = max(h.max, d)
	h.n++
}

func (h *Histogram) grow(n int) {
	if n > len(h.counts) {
		h.counts = append(h.counts, make([]uint64, n-len(h.counts))...)
	}
}

// Add adds all durations of another histogram.
func (h *Histogram) Add(other *Histogram) {
	if other.n == 0 {
		return
	}
	h.grow(len(other.counts))
	for i, n := range other.counts {
		h.counts[i] += n
	}
	if h.n == 0 || other.min < h.min {
		h.min = other.min
	}
	h.max = max(h.max, other.max)
	h.n += other.n
}

// Count is how many durations were recorded.
func (h *Histogram) Count() int { return int(h.n) }

// Max is the longest duration, exactly; 0 if there is none.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile returns the least duration that a share q of all durations does not exceed, for q from 0 to 1. Its error is
// at most 1/512 of its value. It is 0 if there is no duration.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := rankOf(q, h.n)
	var seen uint64
	for i, n := range h.counts {
		if seen += n; seen >= rank {
			from, to := bucketRange(i)
			return min(max(from+(to-from)/2, h.min), h.max)
		}
	}
	return h.max
}

// rankOf returns the rank of the quantile among n sorted values, counted from 1.
func rankOf(q float64, n uint64) uint64 {
	exact := q * float64(n)
	rank := uint64(exact)
	if float64(rank) < exact-1e-9*exact { // 0.99 × 100 is a little more than 99
		rank++
	}
	return min(max(rank, 1), n)
}

// reportedBits is the number of bits by which reported buckets are coarser than counted ones. The width of a reported
// bucket is at most 1/32 of its values, which is finer than the drawing.
const reportedBits = 3

// Buckets returns the buckets that have counted something, in order. It puts several counted buckets together.
func (h *Histogram) Buckets() (buckets []Bucket) {
	const together = 1 << reportedBits
	for i := 0; i < len(h.counts); i += together {
		var n uint64
		for _, count := range h.counts[i:min(i+together, len(h.counts))] {
			n += count
		}
		if n > 0 {
			from, _ := bucketRange(i)
			_, to := bucketRange(i + together - 1)
			buckets = append(buckets, Bucket{From: micros(from), To: micros(to), N: n})
		}
	}
	return buckets
}

// Bucket is how many durations were in a range: From ≤ duration < To, in microseconds.
type Bucket struct {
	From float64 `json:"from_us"`
	To   float64 `json:"to_us"`
	N    uint64  `json:"n"`
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
