package measure

import (
	"sync"
	"time"
)

// Handoffs watches one key from inside the process that runs all its contenders: who was granted it, how long it lay
// free in between, and whether two ever held it at the same time. All contenders share one monotonic clock, which is
// what makes a gap between two of them measurable at all.
//
// Safe for concurrent use. A benchmark that did not look for overlapping holders would rank a broken lock first.
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

// Releasing notes that a contender is about to call release, having held the key for held. It stops being a holder
// with this call and not when release returns: from here on another may rightly be granted the key.
func (h *Handoffs) Releasing(now time.Time, held time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holders--
	h.released = now
	h.holds += held
	h.ended++
}

// HandoffStats is what was seen.
type HandoffStats struct {
	// Gaps is the time from a release call to the next grant, of any contender.
	Gaps Latency
	// Grants counts the grants of each contender.
	Grants []int64
	// Overlaps counts the grants that came while another contender still held the key. Anything but 0 is a broken lock.
	Overlaps int64
	// MeanHold is how long the key was really held; a timer never wakes anybody early and often late.
	MeanHold time.Duration
}

// Stats returns what was seen so far.
func (h *Handoffs) Stats() HandoffStats {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := HandoffStats{Gaps: h.gaps.Snapshot(), Grants: append([]int64(nil), h.grants...), Overlaps: h.overlaps}
	if h.ended > 0 {
		s.MeanHold = h.holds / time.Duration(h.ended)
	}
	return s
}
