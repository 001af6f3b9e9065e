package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// DoneAfterBound finds holds that did not close Done at their bound: it closed later, or never,
// although the holder was still there.
//
// The bound is the latest bound of the hold when it passed: an extension that returned after it
// does not count. tolerance allows for the scheduler of a real machine; in virtual time it is zero.
// A client that was paused over its bound has until it resumes, plus the tolerance. Time when the
// machine stood still does not count. Holds marked NoDone are not judged.
func DoneAfterBound(v *history.View, tolerance time.Duration) []Violation {
	var out []Violation
	still, paused := stalls(v), pauses(v)
	for a := range v.Holds() {
		if a.NoDone {
			continue
		}
		bound := boundInForce(a)
		left := min(a.ReleaseCall, a.Stopped)
		due := resumed(paused[a.Client], bound)
		if due >= history.Never/2 {
			continue
		}
		latest := due + int64(tolerance) + covered(window{due, min(a.Done, left, v.End)}, still)
		if left <= bound || min(a.Done, left) <= latest {
			continue
		}
		if a.Done == history.Never && v.End <= latest {
			continue
		}
		if a.Renew && a.Done != history.Never && bound-a.DoneLooked > a.TTL/10 {
			continue // as for an extension that was seen late
		}
		out = append(out, late(a, bound))
	}
	return out
}

func late(a *history.Attempt, bound int64) Violation {
	events := []int{a.ReturnEvent}
	text := fmt.Sprintf("Done of %s never closed although its bound was %s", holder(a), at(bound))
	if a.Done != history.Never {
		events = append(events, a.DoneEvent)
		text = fmt.Sprintf("Done of %s closed at %s, %s after its bound %s", holder(a), at(a.Done), took(a.Done-bound),
			at(bound))
	}
	return Violation{
		Oracle: NameDoneAfterBound, Key: a.Key, At: bound, Attempts: []uint64{a.ID}, Events: events, Text: text,
	}
}

// boundInForce returns the bound that ended the hold, unless its holder ended it earlier. An
// extension counts if it returned before the bound in force at the time. An extension that was only
// seen later began before its new bound minus its ttl. It also counts if nobody looked for more than a tenth of the ttl
// before the old bound: a holder that stood still has missed other renewals.
func boundInForce(a *history.Attempt) int64 {
	until := a.Until
	for i := range a.Extensions {
		x := &a.Extensions[i]
		inTime := x.Return <= until || x.Seen && (x.Until-x.TTL <= until || until-x.Looked > x.TTL/10)
		if x.OK && inTime {
			until = max(until, x.Until)
		}
	}
	return until
}

// pauses returns when each client was paused. A pause that the history does not see the end of ends at Never/2.
func pauses(v *history.View) map[int][]window {
	out, since := make(map[int][]window), make(map[int]int64)
	for i := range v.Events {
		e := &v.Events[i]
		switch e.Type {
		case history.Paused:
			if _, paused := since[e.Client]; !paused {
				since[e.Client] = e.At
			}
		case history.Resumed:
			if from, paused := since[e.Client]; paused {
				out[e.Client] = append(out[e.Client], window{from, e.At})
				delete(since, e.Client)
			}
		}
	}
	for client, from := range since {
		out[client] = append(out[client], window{from, history.Never / 2})
	}
	return out
}

// resumed returns t, or the end of the pause that contains t.
func resumed(paused []window, t int64) int64 {
	for _, p := range paused {
		if p.from <= t && t < p.to {
			return p.to
		}
	}
	return t
}

// ExtensionContinuity finds holds that were extended although another owner had held the key since they were granted.
//
// Between the grant and the return of the last successful extension, no other client may have held
// the key in a kind that excludes this one. This includes a gap after the bound: a successful
// extension tells its caller that the lock was held throughout, up to the new bound. An answer
// that comes after that bound, as when the client stood still, says nothing about the time between.
//
// ExtensionContinuity also finds holds that were extended after their release was confirmed.
func ExtensionContinuity(v *history.View) []Violation {
	out := revived(v)
	for key, attempts := range v.ByKey() {
		var kept []span
		for _, a := range attempts {
			if x := lastExtension(a); x != nil {
				kept = append(kept, span{start: a.Return, end: min(x.Return, x.Until), hold: a})
			}
		}
		if len(kept) == 0 {
			continue
		}
		spans := spansOf(nil, attempts)
		for _, k := range kept {
			if s, found := within(spans, k); found {
				out = append(out, discontinuous(key, k.hold, s))
			}
		}
	}
	return out
}

func revived(v *history.View) (out []Violation) {
	for i := range v.Attempts {
		a := &v.Attempts[i]
		for _, x := range a.Extensions {
			if !x.OK || x.Seen || !a.Released || x.Call <= a.ReleaseReturn {
				continue
			}
			out = append(out, Violation{
				Oracle: NameContinuity, Key: a.Key, At: x.Return, Attempts: []uint64{a.ID},
				Events: []int{a.ReleaseEvent, x.Event},
				Text: fmt.Sprintf("%q: %s extended its hold at %s, after its release was confirmed at %s", a.Key,
					holder(a), at(x.Call), at(a.ReleaseReturn)),
			})
		}
	}
	return out
}

// lastExtension is the last one of a hold that was won before its release; nil if there is none.
func lastExtension(a *history.Attempt) *history.Extension {
	if !a.Granted() {
		return nil
	}
	for i, e := range slices.Backward(a.Extensions) {
		if e.OK && e.Return < a.ReleaseCall {
			return &a.Extensions[i]
		}
	}
	return nil
}

// within finds a span of another holder that began inside k and is excluded by k's holder. One that began before is
// reported as an overlap.
func within(spans []span, k span) (span, bool) {
	from, _ := slices.BinarySearchFunc(spans, k.start, func(s span, t int64) int { return cmp.Compare(s.start, t) })
	for _, s := range spans[from:] {
		if s.start >= k.end {
			break
		}
		if excludes(s.hold, k.hold) {
			return s, true
		}
	}
	return span{}, false
}

func excludes(a, b *history.Attempt) bool {
	return !sameHolder(a, b) && (a.Kind != history.Shared || b.Kind != history.Shared)
}

func discontinuous(key string, a *history.Attempt, s span) Violation {
	b, x := s.hold, lastExtension(a)
	return Violation{
		Oracle: NameContinuity, Key: key, At: s.start, Attempts: []uint64{a.ID, b.ID},
		Events: []int{a.ReturnEvent, b.ReturnEvent, x.Event},
		Text: fmt.Sprintf("%q: %s got the answer at %s that its hold from %s continues, but %s held the key from %s",
			key, holder(a), at(x.Return), at(a.Return), holder(b), at(s.start)),
	}
}
