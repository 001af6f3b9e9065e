package oracle

import (
	"fmt"
	"slices"

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
	for key, attempts := range v.ByKey() {
		var held []span
		for _, s := range spansOf(nil, attempts) {
			held = append(slices.DeleteFunc(held, func(h span) bool { return h.end <= s.start }), s)
			if len(held) > n {
				out = append(out, tooMany(key, n, held))
			}
		}
	}
	return out
}

// tooMany describes a set of holds with one hold too many, the last.
func tooMany(key string, n int, held []span) Violation {
	last := held[len(held)-1]
	violation := Violation{Key: key, At: last.start}
	until := last.end
	for _, s := range held {
		violation.Attempts = append(violation.Attempts, s.hold.ID)
		violation.Events = append(violation.Events, s.hold.ReturnEvent)
		until = min(until, s.end)
	}
	violation.Text = fmt.Sprintf("%q was held %d times from %s on, for %v, and %d times are allowed: the last by %s",
		key, len(held), at(last.start), took(until-last.start), n, holder(last.hold))
	return violation
}
