package oracle

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// lateContexts is the share of acquisitions that may ignore the end of their context. Of this library none does: of 172
// cancelled acquisitions in 7 scenarios, at a load of 20 on two processors and without a stall, the slowest returned
// 10 ms after the end of its context.
const lateContexts = 0.1

// The names of Contexts and Starved.
const (
	NameContext = "context"
	NameService = "service"
)

// Contexts finds acquisitions that go on after the context of their caller has ended. Contexts allows each of them to
// return within the given time after that, and a tenth of them to take longer; more only if chance explains it. Time in
// which the machine or the client stood still does not count.
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
	if !beyondChance(len(late.Attempts), overdue, lateContexts) {
		return nil
	}
	late.Text = fmt.Sprintf("%d of %d acquisitions went on for more than %v after the context of their caller had "+
		"ended; the first: %s", len(late.Attempts),
		overdue, within, late.Text)
	return []Violation{late}
}

// Starved finds clients that got no lock although they asked for longer than bound with a majority in reach, while
// every other client got at least ten.
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
