package oracle

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// NameOutage is the name of Outage.
const NameOutage = "outage"

// outageShare is for which part of the time that somebody wanted a key while a fault was on nobody had it, in an outage.
const outageShare = 0.6

// Outage finds faults under which a lock is dead, although somebody who can reach a majority asks for keys that nobody
// holds. For each fault, and for all together, it adds up the stretches longer than patience in which a wanted key stayed free while that fault was
// on. It is an outage if they are longer than bound together, and more than three fifths of the time in which keys were wanted.
//
// One stretch proves little: what an attempt has left behind, or votes that were split between two, may be in the way.
// It needs the events that [Liveness] needs, FaultOn and FaultOff. Time in which the machine stood still does not count.
func Outage(v *history.View, patience, bound, gap time.Duration) []Violation {
	on, still := faultTimes(v), stalls(v)
	names := slices.Sorted(maps.Keys(on))
	on[anyFault] = merge(slices.Concat(slices.Collect(maps.Values(on))...), 0)
	wanted, dead := make(map[string]int64), make(map[string]int64)
	longest := make(map[string]Violation)
	eachWanted(v, gap, func(key string, _ []int, asked, free []window) {
		for name, times := range on {
			wanted[name] += length(subtract(intersect(asked, times), still))
			for _, w := range intersect(free, times) {
				d := w.to - w.from - covered(w, still)
				if d <= int64(patience) {
					continue
				}
				if dead[name] += d; d > longest[name].At {
					longest[name] = Violation{Key: key, At: d, Text: fmt.Sprintf("once %q from %s to %s", key, at(w.from), at(w.to))}
				}
			}
		}
	})
	var out []Violation
	for _, name := range append(names, anyFault) {
		if name == anyFault && len(out) > 0 || dead[name] <= int64(bound) || float64(dead[name]) < outageShare*float64(wanted[name]) {
			continue
		}
		out = append(out, Violation{
			Oracle: NameOutage, Key: longest[name].Key, At: on[name][0].from,
			Text: fmt.Sprintf("while %s was on, keys were wanted for %s by who could reach a majority, and for %s of that nobody had or got them: %s",
				name, took(wanted[name]), took(dead[name]), longest[name].Text),
		})
	}
	return out
}

// anyFault stands for all faults together.
const anyFault = "any fault"

// faultTimes are the stretches in which each fault was on, wherever. One that nobody healed is on until the end.
func faultTimes(v *history.View) map[string][]window {
	out, since, count := make(map[string][]window), make(map[string]int64), make(map[string]int)
	for i := range v.Events {
		switch e := &v.Events[i]; e.Type {
		case history.FaultOn:
			if count[e.Name]++; count[e.Name] == 1 {
				since[e.Name] = e.At
			}
		case history.FaultOff:
			if count[e.Name]--; count[e.Name] == 0 {
				out[e.Name] = append(out[e.Name], window{since[e.Name], e.At})
			}
		}
	}
	for name, n := range count {
		if n > 0 {
			out[name] = append(out[name], window{since[name], v.End})
		}
		out[name] = merge(out[name], 0)
	}
	return out
}
