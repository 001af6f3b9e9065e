package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// AtMost finds times when more than n holds of one key were held at once, which a semaphore must
// prevent. The kind of the holds does not matter. Each counts for as long as in [Overlap]. AtMost
// reports each hold that was one too many when it began.
//
// It is not among the oracles that judge every run, because no history says how many there may be. Give it to a run as
// one of your own.
func AtMost(v *history.View, n int) []Violation {
	var out []Violation
	v.ByKey(func(key string, attempts []int) {
		var spans, held []span
		for _, i := range attempts {
			spans = appendSpans(spans, &v.Attempts[i], i)
		}
		slices.SortFunc(spans, func(a, b span) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.attempt, b.attempt))
		})
		for _, s := range spans {
			held = append(slices.DeleteFunc(held, func(h span) bool { return h.end <= s.start }), s)
			if len(held) > n {
				out = append(out, tooMany(v, key, n, held))
			}
		}
	})
	return out
}

// tooMany describes a set of holds with one hold too many, the last.
func tooMany(v *history.View, key string, n int, held []span) Violation {
	last := held[len(held)-1]
	violation := Violation{Key: key, At: last.start}
	until := last.end
	for _, s := range held {
		a := &v.Attempts[s.attempt]
		violation.Attempts, violation.Events = append(violation.Attempts, a.ID), append(violation.Events, a.ReturnEvent)
		until = min(until, s.end)
	}
	violation.Text = fmt.Sprintf("%q was held %d times from %s on, for %v, and %d times are allowed: the last by %s",
		key, len(held), at(last.start),
		time.Duration(until-last.start).Round(time.Microsecond), n, holder(&v.Attempts[last.attempt]))
	return violation
}
