package history

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// Never is the time of something that did not happen.
const Never int64 = math.MaxInt64

// Extension is one extension of a hold, successful or not.
type Extension struct {
	Call, Return int64 // Return is Never for one that was not answered
	OK           bool
	Until        int64 // the new bound; 0 unless OK
	TTL          int64
	Event        int // index of the event that ended it, or of its call
	// Seen says that Return is when the new bound was noticed; the extension was decided some time before. Looked is
	// when the holder had looked before.
	Seen   bool
	Looked int64
}

// Attempt is one acquisition attempt and, when it was granted, the whole life of the hold.
type Attempt struct {
	ID       uint64
	Client   int
	Worker   int
	Key      string
	Kind     Kind
	Owner    string
	TTL      int64
	Wait     int64
	Patience int64
	Renew    bool
	Quiet    bool
	Lock     uint64 // shared with the attempts for the other keys of the same lock; 0 when there are none
	// Call and Return bracket the acquisition; Return is Never for an attempt that was not answered.
	Call, Return int64
	Outcome      Outcome
	Until        int64 // the first bound
	Token        uint64
	NoDone       bool
	Extensions   []Extension
	// Moments in the hold's life; Never when they did not happen.
	ReleaseCall, ReleaseReturn, Done, Stopped int64
	DoneLooked                                int64 // when the holder had looked at its bound before Done closed
	Released                                  bool  // the release was confirmed
	Left                                      bool  // it stopped because no time remained
	Note                                      string
	Excused                                   bool // its loss is no defect
	// CallEvent and ReturnEvent index the view's Events; ReturnEvent is -1 while pending.
	CallEvent, ReturnEvent int
	DoneEvent              int // -1 unless Done closed
	ReleaseEvent           int // -1 unless the release returned
}

// Granted tells whether the attempt became a hold.
func (a *Attempt) Granted() bool { return a.Outcome == Acquired }

// Killed tells whether the holder stopped before its bound for another reason than time.
func (a *Attempt) Killed() bool { return !a.Left && a.Stopped < a.LastUntil() }

// StopsActing returns the moment when the holder stops acting, apart from its bound: the earliest
// of its release call, Done and Stopped, or Never.
func (a *Attempt) StopsActing() int64 { return min(a.ReleaseCall, a.Done, a.Stopped) }

// LastUntil returns the bound after all successful extensions, whenever they returned.
func (a *Attempt) LastUntil() int64 {
	until := a.Until
	for i := range a.Extensions {
		if a.Extensions[i].OK {
			until = max(until, a.Extensions[i].Until)
		}
	}
	return until
}

// End returns the end of the hold: its last bound or the moment when it stopped acting, if that is earlier.
func (a *Attempt) End() int64 { return min(a.LastUntil(), a.StopsActing()) }

// View is a history with its events put together into attempts.
type View struct {
	// Events is the history, as it was given.
	Events []Event
	// Attempts are in the order of their call events.
	Attempts []Attempt
	// End is the time of the last event.
	End int64

	byID map[uint64]int
}

// NewView puts events together, which must not change while the view is in use. It ignores events of an attempt
// without a recorded call: such a hold has no interval to judge.
func NewView(events []Event) *View {
	v := &View{Events: events, byID: make(map[uint64]int)}
	for i := range events {
		e := &events[i]
		v.End = max(v.End, e.At)
		if e.Type == AcquireCall {
			v.begin(e, i)
		} else if at, ok := v.byID[e.Attempt]; ok && e.Attempt != 0 {
			v.Attempts[at].add(e, i)
		}
	}
	return v
}

// Asks returns when an attempt stopped asking: it was answered, its client was killed, or the history ends.
func (v *View) Asks(a *Attempt) int64 { return min(a.Return, a.Stopped, v.End) }

// Lookup returns the attempt with that number, or nil.
func (v *View) Lookup(id uint64) *Attempt {
	if i, ok := v.byID[id]; ok {
		return &v.Attempts[i]
	}
	return nil
}

// Holds yields the attempts that became holds, in the order of their call events.
func (v *View) Holds() iter.Seq[*Attempt] {
	return func(yield func(*Attempt) bool) {
		for i := range v.Attempts {
			if a := &v.Attempts[i]; a.Granted() && !yield(a) {
				return
			}
		}
	}
}

// ByKey yields every key, in the order of the keys, with its attempts in the order of their calls.
func (v *View) ByKey() iter.Seq2[string, []*Attempt] {
	return func(yield func(key string, attempts []*Attempt) bool) {
		order := make([]*Attempt, len(v.Attempts))
		for i := range order {
			order[i] = &v.Attempts[i]
		}
		slices.SortFunc(order, func(a, b *Attempt) int {
			return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Call, b.Call), cmp.Compare(a.CallEvent, b.CallEvent))
		})
		for len(order) > 0 {
			n := 1
			for n < len(order) && order[n].Key == order[0].Key {
				n++
			}
			if !yield(order[0].Key, order[:n]) {
				return
			}
			order = order[n:]
		}
	}
}

func (v *View) begin(e *Event, i int) {
	v.byID[e.Attempt] = len(v.Attempts)
	v.Attempts = append(v.Attempts, Attempt{
		ID: e.Attempt, Client: e.Client, Worker: e.Worker, Key: e.Key, Kind: e.Kind, Owner: e.Owner, TTL: e.TTL,
		Wait: e.Wait, Patience: e.Patience, Renew: e.Renew, Quiet: e.Quiet, Lock: e.Lock, Call: e.At, Return: Never,
		NoDone: e.NoDone, ReleaseCall: Never, ReleaseReturn: Never, Done: Never, Stopped: Never,
		CallEvent: i, ReturnEvent: -1, DoneEvent: -1, ReleaseEvent: -1,
	})
}

func (a *Attempt) add(e *Event, i int) {
	switch e.Type {
	case AcquireReturn:
		a.Return, a.Outcome, a.Until, a.Token, a.ReturnEvent = e.At, e.Outcome, e.Until, e.Token, i
		a.NoDone = a.NoDone || e.NoDone
		a.Note = e.Note
		if e.Owner != "" {
			a.Owner = e.Owner
		}
	case ExtendCall:
		a.Extensions = append(a.Extensions, Extension{Call: e.At, Return: Never, TTL: e.TTL, Event: i})
	case ExtendReturn:
		a.extended(e, i)
	case ReleaseCall:
		a.ReleaseCall = min(a.ReleaseCall, e.At)
	case ReleaseReturn:
		if e.Outcome == Acquired || !a.Released {
			a.ReleaseReturn, a.ReleaseEvent = e.At, i
		}
		a.Released = a.Released || e.Outcome == Acquired
	case DoneClosed:
		if e.At < a.Done {
			a.Done, a.DoneEvent, a.DoneLooked = e.At, i, e.At-e.Value
		}
	case Stopped:
		a.Stopped, a.Left = min(a.Stopped, e.At), a.Left || e.Note == NoteBound
	case Excused:
		a.Excused = true
	}
}

// extended ends the current extension. A renewal in the background reports only its returns. Such a
// return makes a new extension: its call is unknown, and the return's time takes its place.
func (a *Attempt) extended(e *Event, i int) {
	n := len(a.Extensions)
	if n == 0 || a.Extensions[n-1].Return != Never {
		a.Extensions = append(a.Extensions, Extension{Call: e.At, TTL: e.TTL})
		n++
	}
	x := &a.Extensions[n-1]
	x.Return, x.OK, x.Event, x.Seen = e.At, e.Outcome == Acquired, i, e.Note == NoteSeen
	x.Looked = e.At - e.Value
	if x.OK {
		x.Until = e.Until
	}
}
