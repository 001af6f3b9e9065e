package oracle

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// The names of Contexts and Starved.
const (
	NameContext = "context"
	NameService = "service"
)

// Contexts finds that acquisitions go on after the context of their caller has ended: more than a quarter of those that
// were still under way then, and three at least, returned later than within after that. Time in which the machine or
// the client stood still does not count.
func Contexts(v *history.View, within time.Duration) []Violation {
	still, paused := stalls(v), pauses(v)
	overdue, late := 0, Violation{Oracle: NameContext}
	for i := range v.Attempts {
		a := &v.Attempts[i]
		end, ret := a.Call+a.Patience, min(a.Return, v.End)
		if a.Patience == 0 || ret <= end {
			continue
		}
		overdue++
		lost := merge(slices.Concat(still, paused[a.Client]), 0)
		if ret-end-covered(window{a.Call, ret}, lost) <= int64(within) {
			continue
		}
		if len(late.Attempts) == 0 {
			late.Key, late.At, late.Events = a.Key, end, []int{a.CallEvent}
			late.Text = fmt.Sprintf("%s asked for %q at %s, gave up at %s and had its answer at %s", holder(a), a.Key,
				at(a.Call), at(end), at(ret))
		}
		late.Attempts = append(late.Attempts, a.ID)
	}
	if n := len(late.Attempts); n < 3 || 4*n <= overdue {
		return nil
	}
	late.Text = fmt.Sprintf("%d of %d acquisitions went on for more than %v after the context of their caller had "+
		"ended; the first: %s", len(late.Attempts),
		overdue, within, late.Text)
	return []Violation{late}
}

// Starved finds clients that got nothing, although they asked for longer than bound while they could reach a majority,
// and the other clients got ten holds each and more.
func Starved(v *history.View, bound time.Duration) []Violation {
	reach, still := newReach(v), stalls(v)
	asked, got := make(map[int][]window), make(map[int]int)
	for i := range v.Attempts {
		a := &v.Attempts[i]
		if a.Quiet {
			continue
		}
		asked[a.Client] = append(asked[a.Client], window{a.Call, min(a.Return, v.End)})
		if a.Granted() {
			got[a.Client]++
		}
	}
	var out []Violation
	for _, client := range slices.Sorted(maps.Keys(asked)) {
		waited := length(subtract(intersect(merge(asked[client], 0), reach.of(client)), still))
		least := history.Never
		for other := range asked {
			if other != client {
				least = min(least, int64(got[other]))
			}
		}
		if got[client] > 0 || len(asked) < 2 || least < 10 || waited <= int64(bound) {
			continue
		}
		out = append(out, Violation{
			Oracle: NameService, At: asked[client][0].from,
			Text: fmt.Sprintf("client %d got nothing, although it asked for %s with a majority in reach (bound %v); "+
				"every other client got %d holds or more",
				client, took(waited), bound, least),
		})
	}
	return out
}
