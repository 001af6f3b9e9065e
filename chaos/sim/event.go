package sim

import "math"

// event is something that is going to happen.
type event struct {
	at     int64
	tie    uint64 // decides between events of one instant
	client int    // the client that makes the step; none if a paused client does not delay the event
	kind   eventKind
	gen    uint64 // of the timer
	f      *flight
	t      *timer
	l      *link
	do     func()
}

type eventKind uint8

const (
	hidden  eventKind = iota // do; no goroutine of the engine notices
	visible                  // do; goroutines of the engine wake up
	fire                     // timer t
	answer                   // flight f returns with what there is
	expire                   // flight f returns because its time is up
	flush                    // the lanes of the client, or of link l alone, take their batches
)

// none is the client of an event that is no client's.
const none = -1

// stale reports that the event has no purpose any more, because its subject was settled in another way.
func (e *event) stale() bool {
	switch e.kind {
	case fire:
		return !e.t.armed || e.t.generation != e.gen
	case answer, expire:
		return e.f.returned
	default:
		return false
	}
}

// eventHeap is a heap of events by time, then by lot. The elements that it moves hold no pointers, because each move of
// a pointer would cost the garbage collector work; container/heap would allocate every event twice.
type eventHeap struct {
	order  []place
	events []event // by their slots
	free   []int32 // slots
}

// place is where in the order an event stands.
type place struct {
	at   int64
	tie  uint64
	slot int32
}

func (a *place) before(b *place) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return a.tie < b.tie
}

// next is the time of the first event.
func (h *eventHeap) next() int64 {
	if len(h.order) == 0 {
		return math.MaxInt64
	}
	return h.order[0].at
}

func (h *eventHeap) empty() bool { return len(h.order) == 0 }

func (h *eventHeap) push(e event) {
	var slot int32
	if n := len(h.free); n > 0 {
		slot, h.free = h.free[n-1], h.free[:n-1]
		h.events[slot] = e
	} else {
		slot = int32(len(h.events))
		h.events = append(h.events, e)
	}
	h.order = append(h.order, place{at: e.at, tie: e.tie, slot: slot})
	h.up(len(h.order) - 1)
}

func (h *eventHeap) up(i int) {
	order := h.order
	for i > 0 {
		parent := (i - 1) / 2
		if !order[i].before(&order[parent]) {
			break
		}
		order[i], order[parent] = order[parent], order[i]
		i = parent
	}
}

func (h *eventHeap) pop() event {
	order, last := h.order, len(h.order)-1
	slot := order[0].slot
	order[0] = order[last]
	order = order[:last]
	h.order = order
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if order[child].before(&order[least]) {
				least = child
			}
		}
		if least == i {
			break
		}
		order[i], order[least] = order[least], order[i]
		i = least
	}
	e := h.events[slot]
	h.events[slot] = event{}
	h.free = append(h.free, slot)
	return e
}

// postpone delays the events that which selects.
func (h *eventHeap) postpone(d int64, which func(*event) bool) {
	for i := range h.order {
		if p := &h.order[i]; which(&h.events[p.slot]) {
			p.at += d
			h.events[p.slot].at += d
		}
	}
	for i := range h.order { // each in turn finds its place among those before it
		h.up(i)
	}
}
