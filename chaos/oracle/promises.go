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
	still := newStandstill(v)
	overdue, late := 0, Violation{Oracle: NameContext}
	for i := range v.Attempts {
		a := &v.Attempts[i]
		end, ret := a.Call+a.Patience, v.Asks(a)
		if a.Patience == 0 || ret <= end {
			continue
		}
		overdue++
		if ret-end-covered(window{a.Call, ret}, still.of(a.Client)) <= int64(within) {
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
		"ended; the first: %s", len(late.Attempts), overdue, within, late.Text)
	return []Violation{late}
}

// Starved finds clients that got no lock although they asked for longer than bound with a majority in reach, while
// every other client got at least ten. It also finds single acquisitions of this kind: see overtaken. A lock that
// chooses its next holder at random is correct, so a wait that bad luck explains is no violation.
func Starved(v *history.View, bound time.Duration) []Violation {
	reach, still := newReach(v), newStandstill(v)
	asked, got := make(map[int][]window), make(map[int]int)
	for i := range v.Attempts {
		a := &v.Attempts[i]
		if a.Quiet {
			continue
		}
		asked[a.Client] = append(asked[a.Client], window{a.Call, v.Asks(a)})
		if a.Granted() {
			got[a.Client]++
		}
	}
	var out []Violation
	for _, client := range slices.Sorted(maps.Keys(asked)) {
		waited := length(subtract(intersect(merge(asked[client], 0), reach.of(client)), still.of(client)))
		least := history.Never
		for other := range asked {
			if other != client {
				least = min(least, int64(got[other]))
			}
		}
		if got[client] > 0 || len(asked) < 2 || least < 10 || waited <= int64(bound) ||
			unlucky(len(asked), len(asked)-1, grantedIn(v, asked[client])) {
			continue
		}
		out = append(out, Violation{
			Oracle: NameService, At: asked[client][0].from,
			Text: fmt.Sprintf("client %d got nothing, although it asked for %s with a majority in reach (bound %v); "+
				"every other client got %d holds or more", client, took(waited), bound, least),
		})
	}
	return append(out, overtaken(v, reach, still, bound)...)
}

// grantedIn counts the acquisitions that succeeded in these times.
func grantedIn(v *history.View, times []window) (n int) {
	for a := range v.Holds() {
		in := func(w window) bool { return w.from < a.Return && a.Return < w.to }
		if !a.Quiet && slices.ContainsFunc(times, in) {
			n++
		}
	}
	return n
}

// overtaken finds acquisitions that waited for longer than bound with a majority in reach, while every other worker
// that asked for the key got it at least ten times. Workers of the same client that got nothing do not count: they
// may wait for the same reason. Readers may overtake a writer. A lock over several keys may wait for another key.
func overtaken(v *history.View, reach *reach, still standstill, bound time.Duration) (out []Violation) {
	for key, attempts := range v.ByKey() {
		for _, a := range attempts {
			w := window{a.Call, v.Asks(a)}
			if w.to-w.from <= int64(bound) || a.Lock != 0 || a.Kind == history.Exclusive {
				continue
			}
			waited := length(subtract(intersect([]window{w}, reach.of(a.Client)), still.of(a.Client)))
			least, others, grants := overtakers(v, attempts, a, w)
			if waited <= int64(bound) || others < 2 || least < 10 || unlucky(len(attempts), others, grants) {
				continue
			}
			out = append(out, Violation{
				Oracle: NameService, Key: key, At: a.Call, Attempts: []uint64{a.ID}, Events: []int{a.CallEvent},
				Text: fmt.Sprintf("%s waited for %q for %s with a majority in reach (bound %v), while %d other "+
					"workers got it %d times, each at least %d times. Mutual exclusion is not lost, but the lock is "+
					"less fair than a choice at random", holder(a), key, took(waited), bound, others, grants, least),
			})
		}
	}
	return out
}

// overtakers counts the other workers that asked in w for the key of a, and how often they got it; each got it at least
// so often.
func overtakers(v *history.View, attempts []*history.Attempt, a *history.Attempt, w window) (
	least, others, grants int,
) {
	type worker struct{ client, number int }
	got := make(map[worker]int)
	for _, b := range attempts {
		who := worker{b.Client, b.Worker}
		if who == (worker{a.Client, a.Worker}) || b.Call >= w.to || v.Asks(b) <= w.from {
			continue
		}
		got[who] += 0
		if b.Granted() && b.Return < w.to {
			got[who]++
		}
	}
	for who, n := range got {
		if n == 0 && who.client == a.Client {
			continue
		}
		if others++; others == 1 || n < least {
			least = n
		}
		grants += n
	}
	return least, others, grants
}
