package redlock

import (
	"container/heap"
	"sync"
	"time"
)

// agendaNap bounds how long the agenda sleeps while there are holds. Timers stand still with the machine, clocks do
// not: after a suspension it is noticed within this time which holds are over.
const agendaNap = time.Second

// agenda wakes up the holds of one Locker when they are due, to be renewed or ended: a heap and a timer, however many
// holds there are. Its mutex is taken under those of locks, and it calls locks without it.
type agenda struct {
	clock Clock

	mu      sync.Mutex
	holds   alarmHeap
	timer   Timer
	armed   time.Duration // when the timer fires; 0: it is not set
	ringing bool          // run is at work, and sets the timer when it is done
	closed  bool
	runs    sync.WaitGroup
}

// alarm is a hold's place in the agenda. The agenda's mutex guards it.
type alarm struct {
	at    time.Duration
	place int // in the heap, counted from 1; 0: not in it
}

func newAgenda(clock Clock) *agenda { return &agenda{clock: clock} }

// set has k ring at the given time, instead of the one set before.
func (a *agenda) set(k *Lock, at time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	k.alarm.at = at
	if k.alarm.place == 0 {
		heap.Push(&a.holds, k)
	} else {
		heap.Fix(&a.holds, k.alarm.place-1)
	}
	if !a.ringing && (a.armed == 0 || at < a.armed) {
		a.arm()
	}
}

// remove takes k out of the agenda.
func (a *agenda) remove(k *Lock) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k.alarm.place > 0 {
		heap.Remove(&a.holds, k.alarm.place-1)
	}
}

// arm sets the timer for the first hold. The caller holds the mutex.
func (a *agenda) arm() {
	now := a.clock.Now()
	d := max(0, min(a.holds[0].alarm.at-now, agendaNap))
	a.armed = now + d
	if a.timer == nil {
		a.timer = a.clock.AfterFunc(d, a.run)
		return
	}
	a.timer.Reset(d)
}

// run rings every hold that is due.
func (a *agenda) run() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.ringing {
		return
	}
	a.ringing = true
	a.runs.Add(1)
	defer a.runs.Done()
	for !a.closed && len(a.holds) > 0 && a.holds[0].alarm.at <= a.clock.Now() {
		k := heap.Pop(&a.holds).(*Lock)
		a.mu.Unlock()
		k.ring()
		a.mu.Lock()
	}
	a.ringing, a.armed = false, 0
	if !a.closed && len(a.holds) > 0 {
		a.arm()
	}
}

// close stops the agenda and waits for holds that are being rung.
func (a *agenda) close() {
	a.mu.Lock()
	a.closed = true
	if a.timer != nil {
		a.timer.Stop()
	}
	a.mu.Unlock()
	a.runs.Wait()
}

// alarmHeap orders holds by when they are due.
type alarmHeap []*Lock

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].alarm.at < h[j].alarm.at }

func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].alarm.place, h[j].alarm.place = i+1, j+1
}

// Push implements heap.Interface.
func (h *alarmHeap) Push(x any) {
	k := x.(*Lock)
	*h = append(*h, k)
	k.alarm.place = len(*h)
}

// Pop implements heap.Interface.
func (h *alarmHeap) Pop() any {
	last := len(*h) - 1
	k := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	k.alarm.place = 0
	return k
}
