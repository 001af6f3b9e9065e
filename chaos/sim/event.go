package sim

import "math"

// event is something that is going to happen.
type event struct {
	at     int64
	tie    uint64 // decides between events of one instant
	client int    // the client whose step it is; none for what a paused client does not hold up
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

// stale reports that what the event was for has been settled in another way.
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

// eventHeap is a heap of events by time, then by lot. It is written out because container/heap would allocate every
// event twice.
type eventHeap []event

func (a eventHeap) before(i, j int) bool {
	if a[i].at != a[j].at {
		return a[i].at < a[j].at
	}
	return a[i].tie < a[j].tie
}

// next is the time of the first event.
func (a eventHeap) next() int64 {
	if len(a) == 0 {
		return math.MaxInt64
	}
	return a[0].at
}

func (a *eventHeap) push(e event) {
	h := append(*a, e)
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.before(i, parent) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
	*a = h
}

func (a *eventHeap) pop() event {
	h := *a
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h[last] = event{}
	h = h[:last]
	for i := 0; ; {
		least := i
		for _, child := range [...]int{2*i + 1, 2*i + 2} {
			if child < last && h.before(child, least) {
				least = child
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	*a = h
	return first
}
