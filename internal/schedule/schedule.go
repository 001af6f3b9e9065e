// Package schedule calls what is due: one heap and one timer, however many entries there are.
//
// A timer that is late makes nothing early: an entry fires when the clock says that it is due, or later, never before. All
// methods are safe for concurrent use. An entry fires without any mutex of the Schedule, so it may set and remove entries,
// its own among them; its mutex may be taken under the callers'.
package schedule

import (
	"container/heap"
	"sync"
	"time"
)

// longestSleep bounds how long a Schedule sleeps while it has entries. Timers stand still while the machine is suspended,
// clocks do not: within this time after it has resumed, what became due meanwhile fires.
const longestSleep = time.Second

// Timer is a call that is going to happen. *time.Timer is one.
type Timer interface {
	Stop() bool
	Reset(d time.Duration) bool
}

// AfterFunc is [time.AfterFunc], for those who have no clock of their own.
func AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// Target is what an entry calls.
type Target interface{ Fire() }

// Entry is one thing that becomes due. Its Schedule's mutex guards it; it must not be copied once it has been set.
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
	firing  bool          // run is at work, and sets the timer when it is done
	closed  bool
	runs    sync.WaitGroup
}

// New makes a Schedule on a clock: now reads it, after calls a function in a goroutine of its own once a time has passed.
func New(now func() time.Duration, after func(time.Duration, func()) Timer) *Schedule {
	return &Schedule{now: now, after: after}
}

// Set has e call target at the given time of the clock, instead of what was set before.
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

// Remove keeps e from firing, unless it has begun to.
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

// begin reports that nobody else fires entries, and that somebody may.
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

// next takes the next entry that is due and returns its target: the entry itself may be set again from now on. If there is
// none it ends the run, with the timer set for the first one.
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

// Close fires nothing more, and waits for what is being called.
func (s *Schedule) Close() {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.runs.Wait()
}

// entries are a heap by when they are due.
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
