package oracle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// span is the time when a client believed that it held a lock, end not included.
type span struct {
	start, end int64
	attempt    int
	// until reports whether the span ends at the bound, and not because the holder stopped acting.
	until bool
}

// Overlap finds holds of one key that exclude each other and were held at the same time.
//
// A hold lasts from the return of its acquisition until its bound, or until its holder stops acting
// (release call, Done, Stopped) if that is earlier. An extension that returned after the old bound
// begins a new span: the time in between belonged to no client. Shared holds do not exclude each
// other, nor do reentrant holds of one owner.
//
// The sweep takes n log n in the number of holds. It reports at most one violation for each hold, with the one
// before it that lasts longest, so that one broken hold does not bury the report.
func Overlap(v *history.View) []Violation {
	var out []Violation
	var spans []span
	v.ByKey(func(key string, attempts []int) {
		spans = spans[:0]
		for _, i := range attempts {
			spans = appendSpans(spans, &v.Attempts[i], i)
		}
		slices.SortFunc(spans, func(a, b span) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.attempt, b.attempt))
		})
		out = append(out, sweep(v, key, spans)...)
	})
	return out
}

func appendSpans(spans []span, a *history.Attempt, i int) []span {
	if !a.Granted() {
		return spans
	}
	stop := a.StopsActing()
	s := span{start: a.Return, end: a.Until, attempt: i, until: true}
	for x := range a.Extensions {
		e := &a.Extensions[x]
		if !e.OK {
			continue
		}
		if e.Return > s.end {
			spans = appendSpan(spans, s, stop)
			s = span{start: e.Return, end: e.Until, attempt: i, until: true}
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

func (l *longest) add(v *history.View, s span) {
	switch {
	case s.end <= l.first.end:
		if s.end > l.second.end && !sameHolder(v, s, l.first) {
			l.second = s
		}
	case l.first.end > 0 && !sameHolder(v, s, l.first):
		l.first, l.second = s, l.first
	default:
		l.first = s
	}
}

// against returns the longest-lasting span of another holder than s's.
func (l *longest) against(v *history.View, s span) span {
	if l.first.end > 0 && sameHolder(v, s, l.first) {
		return l.second
	}
	return l.first
}

func sameHolder(v *history.View, s, t span) bool {
	if s.attempt == t.attempt {
		return true
	}
	a, b := &v.Attempts[s.attempt], &v.Attempts[t.attempt]
	return a.Kind == history.Reentrant && b.Kind == history.Reentrant && a.Owner != "" && a.Owner == b.Owner
}

func sweep(v *history.View, key string, spans []span) []Violation {
	var out []Violation
	var exclusive, shared longest
	for _, s := range spans {
		reads := v.Attempts[s.attempt].Kind == history.Shared
		other := exclusive.against(v, s)
		if !reads {
			if o := shared.against(v, s); o.end > other.end {
				other = o
			}
		}
		if other.end > s.start {
			out = append(out, overlapping(v, key, other, s))
		}
		if reads {
			shared.add(v, s)
		} else {
			exclusive.add(v, s)
		}
	}
	return out
}

// Contested reports whether some worker asked for a key while another one had it. Without such a request, a lock that
// locks nothing looks like any other.
func Contested(v *history.View) bool {
	contested := false
	v.ByKey(func(_ string, attempts []int) {
		var last *history.Attempt // the hold that lasts longest
		for _, i := range attempts {
			a := &v.Attempts[i]
			contested = contested || last != nil && last.End() > a.Call && last.Return < v.Asks(a) &&
				(last.Client != a.Client || last.Worker != a.Worker)
			if a.Granted() && (last == nil || a.End() > last.End()) {
				last = a
			}
		}
	})
	return contested
}

func overlapping(v *history.View, key string, first, second span) Violation {
	a, b := &v.Attempts[first.attempt], &v.Attempts[second.attempt]
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
