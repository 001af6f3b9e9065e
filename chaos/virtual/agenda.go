package virtual

import (
	"container/heap"
	"time"
)

// agenda has the events to come. One goroutine performs them, and no two at the same nanosecond.
type agenda struct {
	events events
	taken  map[int64]bool // their times
	sooner chan struct{}  // of capacity 1: the first event is another one now
	over   chan struct{}  // closed at the end
}

type event struct {
	at int64
	do func()
}

// events are a heap; see container/heap.
type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) } //nolint:forcetypeassert // only atLocked pushes
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return x
}

// at performs f at about that time.
func (w *world) at(t int64, f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.atLocked(t, f)
}

// atLocked is at for a caller that has the mutex. It returns the nanosecond.
func (w *world) atLocked(t int64, f func()) int64 {
	for t = max(t, w.now()+1); w.agenda.taken[t]; t++ {
	}
	w.agenda.taken[t] = true
	heap.Push(&w.agenda.events, event{t, f})
	if w.agenda.events[0].at == t {
		select {
		case w.agenda.sooner <- struct{}{}:
		default:
		}
	}
	return t
}

// loop performs the events. When the time of one has come, all other goroutines of the bubble wait for something.
func (w *world) loop() {
	timer := time.NewTimer(time.Hour)
	for {
		w.mu.Lock()
		wait := time.Hour
		if len(w.agenda.events) > 0 {
			wait = time.Duration(w.agenda.events[0].at - w.now())
		}
		w.mu.Unlock()
		timer.Reset(wait)
		select {
		case <-w.agenda.over:
			return
		case <-w.agenda.sooner:
		case <-timer.C:
			w.mu.Lock()
			if len(w.agenda.events) == 0 || w.agenda.events[0].at > w.now() {
				w.mu.Unlock()
				continue
			}
			e := heap.Pop(&w.agenda.events).(event) //nolint:forcetypeassert // nothing else is pushed
			delete(w.agenda.taken, e.at)
			w.mu.Unlock()
			e.do()
		}
	}
}
