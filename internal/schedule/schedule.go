// Package schedule calls targets when they are due, with one heap and one timer for any number of entries.
//
// A late timer makes no entry early: an entry fires at its time by the clock, or later, never before. All methods are
// safe for concurrent use. The Schedule holds no mutex while an entry fires, so the target may set and remove
// entries, including its own. Callers may call a Schedule while they hold their own mutexes.
package schedule

import (
	"container/heap"
	"sync"
	"time"
)

// longestSleep bounds how long a Schedule sleeps while it has entries. Timers stop while the machine is suspended,
// but clocks do not: entries that became due during the suspension fire within this time after it.
const longestSleep = time.Second

// Timer is a scheduled call. *time.Timer is one.
type Timer interface {
	Stop() bool
	Reset(d time.Duration) bool
}

// AfterFunc is [time.AfterFunc], for callers without a special clock.
func AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// Target is the object that an entry calls.
type Target interface{ Fire() }

// Entry becomes due once. Its Schedule's mutex guards it. It must not be copied once it has been set.
type Entry struct {
	at       time.Duration
	target   Target
	position int // in the heap, counted from 1; 0: not in it
}

// Schedule calls the targets of its entries. Make it with [New].
type Schedule struct {
	now   func() time.Duration
	after func(time.Duration, func()) Timer

	mu      sync.Mutex
	entries entries
	timer   Timer
	armed   time.Duration // when the timer fires; 0: it is not set
	firing  bool          // run is at work, and will set the timer at its end
	closed  bool
	runs    sync.WaitGroup
}

// New makes a Schedule on a clock. now reads the clock; after calls a function in a new goroutine after some time.
func New(now func() time.Duration, after func(time.Duration, func()) Timer) *Schedule {
	return &Schedule{now: now, after: after}
}

// Set makes e call target at the given time of the clock. It replaces an earlier setting of e.
func (s *Schedule) Set(e *Entry, at time.Duration, target Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	e.at, e.target = at, target
	if e.position == 0 {
		heap.Push(&s.entries, e)
	} else {
		heap.Fix(&s.entries, e.position-1)
	}
	if !s.firing && (s.armed == 0 || at < s.armed) {
		s.armLocked()
	}
}

// Remove prevents e from firing, unless it has begun to.
func (s *Schedule) Remove(e *Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.position > 0 {
		heap.Remove(&s.entries, e.position-1)
	}
}

// armLocked sets the timer for the first entry.
func (s *Schedule) armLocked() {
	now := s.now()
	d := max(0, min(s.entries[0].at-now, longestSleep))
	s.armed = now + d
	if s.timer == nil {
		s.timer = s.after(d, s.run)
		return
	}
	s.timer.Reset(d)
}

// run fires every entry that is due.
func (s *Schedule) run() {
	if !s.begin() {
		return
	}
	defer s.runs.Done()
	for t := s.next(); t != nil; t = s.next() {
		t.Fire()
	}
}

// begin reports whether run may fire entries: the Schedule is open and no other run is at work.
func (s *Schedule) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.firing {
		return false
	}
	s.firing = true
	s.runs.Add(1)
	return true
}

// next removes the first due entry and returns its target. From then on the entry may be set again. If no entry is
// due, next ends the run and sets the timer for the first one.
func (s *Schedule) next() Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && len(s.entries) > 0 && s.entries[0].at <= s.now() {
		return heap.Pop(&s.entries).(*Entry).target
	}
	s.firing, s.armed = false, 0
	if !s.closed && len(s.entries) > 0 {
		s.armLocked()
	}
	return nil
}

// Close fires no more entries, and waits for targets that are being called.
func (s *Schedule) Close() {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.runs.Wait()
}

// entries is a heap ordered by due time.
type entries []*Entry

func (h entries) Len() int           { return len(h) }
func (h entries) Less(i, j int) bool { return h[i].at < h[j].at }

func (h entries) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].position, h[j].position = i+1, j+1
}

// Push implements heap.Interface.
func (h *entries) Push(x any) {
	e := x.(*Entry)
	*h = append(*h, e)
	e.position = len(*h)
}

// Pop implements heap.Interface.
func (h *entries) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.position = 0
	return e
}
