package oracle

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// span is the time when a client believed that it held a lock, end not included.
type span struct {
	start, end int64
	hold       *history.Attempt
	// until reports whether the span ends at the bound, and not because the holder stopped acting.
	until bool
}

// Overlap finds holds of one key that exclude each other and were held at the same time.
//
// A hold lasts from the return of its acquisition until its bound, or until its holder stops acting (release call,
// Done, Stopped) if that is earlier. An extension that returned after the old bound begins a new span: the time in
// between belonged to no client. Shared holds do not exclude each other, nor do reentrant holds of one owner.
//
// The sweep takes n log n in the number of holds. It reports at most one violation for each hold, with the one
// before it that lasts longest, so that one broken hold does not bury the report.
func Overlap(v *history.View) []Violation {
	var out []Violation
	var spans []span
	for key, attempts := range v.ByKey() {
		spans = spansOf(spans[:0], attempts)
		out = append(out, sweep(key, spans)...)
	}
	return out
}

// spansOf adds the spans of attempts, in the order of their times.
func spansOf(spans []span, attempts []*history.Attempt) []span {
	for _, a := range attempts {
		spans = appendSpans(spans, a)
	}
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.hold.CallEvent, b.hold.CallEvent))
	})
	return spans
}

func appendSpans(spans []span, a *history.Attempt) []span {
	if !a.Granted() {
		return spans
	}
	stop := a.StopsActing()
	s := span{start: a.Return, end: a.Until, hold: a, until: true}
	for x := range a.Extensions {
		e := &a.Extensions[x]
		if !e.OK {
			continue
		}
		if e.Return > s.end {
			spans = appendSpan(spans, s, stop)
			s = span{start: e.Return, end: e.Until, hold: a, until: true}
			continue
		}
		s.end = max(s.end, e.Until)
	}
	return appendSpan(spans, s, stop)
}

func appendSpan(spans []span, s span, stop int64) []span {
	if stop < s.end {
		s.end, s.until = stop, false
	}
	if s.start >= s.end {
		return spans
	}
	return append(spans, s)
}

// longest remembers the two longest-lasting spans that belong to different holders, which is all that a later span
// can be in conflict with.
type longest struct{ first, second span }

// noSpan ends before any other.
var noSpan = span{end: math.MinInt64}

func (l *longest) add(s span) {
	switch {
	case s.end <= l.first.end:
		if s.end > l.second.end && !sameHolder(s.hold, l.first.hold) {
			l.second = s
		}
	case l.first.hold != nil && !sameHolder(s.hold, l.first.hold):
		l.first, l.second = s, l.first
	default:
		l.first = s
	}
}

// against returns the longest-lasting span of another holder than s's.
func (l *longest) against(s span) span {
	if l.first.hold != nil && sameHolder(s.hold, l.first.hold) {
		return l.second
	}
	return l.first
}

func sameHolder(a, b *history.Attempt) bool {
	return a == b || a.Kind == history.Reentrant && b.Kind == history.Reentrant && a.Owner != "" && a.Owner == b.Owner
}

func sweep(key string, spans []span) []Violation {
	var out []Violation
	exclusive, shared := longest{noSpan, noSpan}, longest{noSpan, noSpan}
	for _, s := range spans {
		reads := s.hold.Kind == history.Shared
		other := exclusive.against(s)
		if !reads {
			if o := shared.against(s); o.end > other.end {
				other = o
			}
		}
		if other.end > s.start {
			out = append(out, overlapping(key, other, s))
		}
		if reads {
			shared.add(s)
		} else {
			exclusive.add(s)
		}
	}
	return out
}

// Contested reports whether some worker asked for a key while another one had it. Without such a request, a lock that
// locks nothing looks like any other.
func Contested(v *history.View) bool {
	contested := false
	for _, attempts := range v.ByKey() {
		var last *history.Attempt // the hold that lasts longest
		for _, a := range attempts {
			contested = contested || last != nil && last.End() > a.Call && last.Return < v.Asks(a) &&
				(last.Client != a.Client || last.Worker != a.Worker)
			if a.Granted() && (last == nil || a.End() > last.End()) {
				last = a
			}
		}
	}
	return contested
}

func overlapping(key string, first, second span) Violation {
	a, b := first.hold, second.hold
	leaves := "stops at"
	if first.until {
		leaves = "believes in it until"
	}
	return Violation{
		Oracle: NameOverlap, Key: key, At: second.start, Attempts: []uint64{a.ID, b.ID},
		Events: []int{a.ReturnEvent, b.ReturnEvent},
		Text: fmt.Sprintf("%q was held twice for %s: %s has it from %s and %s %s, %s has it from %s", key,
			took(min(first.end, second.end)-second.start), holder(a), at(first.start), leaves, at(first.end),
			holder(b), at(second.start)),
	}
}
