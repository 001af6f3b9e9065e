package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// span is a stretch of time in nanoseconds, end not included.
type span struct{ from, to int64 }

// together is the longest pause between two attempts that count as one. The harness's report uses the same.
const together = int64(50 * time.Millisecond)

// standstill returns the longest time for which some client wanted a key and no client had it.
//
// It differs from the outage in the harness's report. The outage counts a key as held until its release returns, as
// contenders do. If a release hangs while its server is down, that hides the outage. In standstill a hold ends when its
// holder stops acting.
func standstill(v *history.View) time.Duration {
	longest := int64(0)
	for _, attempts := range v.ByKey() {
		var asked, acted []span
		for _, a := range attempts {
			asked = append(asked, span{a.Call, min(a.Return, v.End)})
			if a.Granted() {
				acted = append(acted, span{a.Return, a.End()})
			}
		}
		acted = joined(acted, 0)
		for _, s := range joined(asked, together) {
			longest = max(longest, longestGap(s, acted))
		}
	}
	return time.Duration(longest)
}

// joined sorts spans, and joins two spans if the gap between them is small enough or they overlap. It reuses their
// memory.
func joined(spans []span, gap int64) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.from-out[n-1].to <= gap {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// longestGap returns the longest part of s that the other spans, taken together, do not cover.
func longestGap(s span, others []span) int64 {
	longest := int64(0)
	for _, o := range others {
		if o.to <= s.from || o.from >= s.to {
			continue
		}
		longest = max(longest, o.from-s.from)
		s.from = o.to
	}
	return max(longest, s.to-s.from)
}
