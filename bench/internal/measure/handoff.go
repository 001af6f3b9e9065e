package measure

import (
	"sync"
	"time"
)

// Handoffs watches one key from the process that runs all its contenders. It records each grant, the time in which the
// key was free between two holders, and whether two ever held it at the same time. All contenders share one monotonic
// clock, so the gap between two of them can be measured.
//
// Handoffs is safe for concurrent use. It looks for overlapping holders, because a benchmark without that check would
// rank a broken lock first.
type Handoffs struct {
	gaps *Recorder

	mu       sync.Mutex
	holders  int
	overlaps int64
	released time.Time // when the last holder called release; zero before the first one did
	grants   []int64
	holds    time.Duration
	ended    int64
}

// NewHandoffs returns a watcher for the given number of contenders.
func NewHandoffs(contenders int) *Handoffs {
	return &Handoffs{gaps: NewRecorder(), grants: make([]int64, contenders)}
}

// Granted notes that a contender (counted from 0) has just been granted the key.
func (h *Handoffs) Granted(contender int, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.grants[contender]++
	h.holders++
	if h.holders > 1 {
		h.overlaps++
		return
	}
	if !h.released.IsZero() {
		h.gaps.Record(contender, now.Sub(h.released))
		h.released = time.Time{}
	}
}

// Releasing notes that a contender is about to call release, after it has held the key for held. The contender stops
// being a holder with this call, not when release returns: from now on another may rightly get the key.
func (h *Handoffs) Releasing(now time.Time, held time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holders--
	h.released = now
	h.holds += held
	h.ended++
}

// HandoffStats holds the results of Handoffs.
type HandoffStats struct {
	// Gaps is the time from a release call to the next grant, of any contender.
	Gaps Latency
	// Grants counts the grants of each contender.
	Grants []int64
	// Overlaps counts the grants that came while another contender still held the key. Anything but 0 is a broken lock.
	Overlaps int64
	// MeanHold is how long the key was really held. A timer never fires early and often fires late.
	MeanHold time.Duration
}

// Stats returns the results so far.
func (h *Handoffs) Stats() HandoffStats {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := HandoffStats{Gaps: h.gaps.Snapshot(), Grants: append([]int64(nil), h.grants...), Overlaps: h.overlaps}
	if h.ended > 0 {
		s.MeanHold = h.holds / time.Duration(h.ended)
	}
	return s
}
