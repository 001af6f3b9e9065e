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

// outageShare is the least share, in an outage, of the time with wanted keys that these keys stay free.
const outageShare = 0.6

// Outage finds faults that make a lock useless: clients that can reach a majority ask for free
// keys, and do not get them. For each fault, and for all together, it adds up the times longer than
// patience that a wanted key stayed free while the fault was on. The result is an outage if it is
// longer than bound, and more than three fifths of the time with wanted keys.
//
// If no fault came on, Outage judges the whole history. Then bound takes the place of patience, because a call may be
// slow, and there must be five such times.
//
// One such time proves little: the leftovers of an attempt, or split votes, may block the key. The leftovers
// of a hold that a fault interrupts do not count: until their ttl its keys stay on masters that only others can reach.
// Outage needs the events that [Liveness] needs, FaultOn and FaultOff. Time when the machine stood still does not
// count, nor as much after each such time, at most a second, nor time when masters answered late.
func Outage(v *history.View, patience, bound, gap time.Duration) []Violation {
	on, still := faultTimes(v), slowed(v, int64(time.Second))
	faults := slices.Concat(slices.Collect(maps.Values(on))...)
	calm := len(on) == 0
	if calm {
		on[noFault], patience = []window{{0, history.Never}}, bound
	}
	names := slices.Sorted(maps.Keys(on))
	on[anyFault] = merge(slices.Concat(slices.Collect(maps.Values(on))...), 0)
	wanted, dead, count := make(map[string]int64), make(map[string]int64), make(map[string]int)
	longest := make(map[string]Violation)
	eachWanted(v, gap, func(key string, attempts []*history.Attempt, asked, free []window) {
		left := intersect(free, leftovers(attempts, faults))
		asked, free = subtract(asked, left), subtract(free, left)
		for name, times := range on {
			wanted[name] += length(subtract(intersect(asked, times), still))
			for _, w := range intersect(free, times) {
				d := w.to - w.from - covered(w, still)
				if d <= int64(patience) {
					continue
				}
				count[name]++
				if dead[name] += d; d > longest[name].At {
					longest[name] = Violation{
						Key: key, At: d, Text: fmt.Sprintf("once %q from %s to %s", key, at(w.from), at(w.to)),
					}
				}
			}
		}
	})
	var out []Violation
	for _, name := range append(names, anyFault) {
		few := calm && count[name] < fewestOutages
		if few || name == anyFault && len(out) > 0 || dead[name] <= int64(bound) ||
			float64(dead[name]) < outageShare*float64(wanted[name]) {
			continue
		}
		out = append(out, Violation{
			Oracle: NameOutage, Key: longest[name].Key, At: on[name][0].from,
			Text: fmt.Sprintf("while %s was on, clients with a majority in reach wanted keys for %s, "+
				"and for %s of that no client had or got them: %s",
				name, took(wanted[name]), took(dead[name]), longest[name].Text),
		})
	}
	return out
}

// leftovers returns the times when keys of holds may be left on some masters, because a fault came on between the
// request for the hold and the end of its release.
func leftovers(attempts []*history.Attempt, faults []window) []window {
	var out []window
	for _, a := range attempts {
		if !a.Granted() {
			continue
		}
		asked, until := max(a.Call, a.Until-a.TTL), a.LastUntil()
		for _, fault := range faults {
			if asked < fault.from && fault.from <= min(a.ReleaseReturn, until) {
				out = append(out, window{fault.from, until})
			}
		}
	}
	return merge(out, 0)
}

// fewestOutages is how many times without a fault prove something.
const fewestOutages = 5

// anyFault is the name for all faults together, and noFault for none.
const (
	anyFault = "any fault"
	noFault  = "no fault"
)

// faultTimes returns the times when each fault was on, on any target. A fault that was not healed is on until the end.
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
			out[name] = append(out[name], window{since[name], history.Never})
		}
		out[name] = merge(out[name], 0)
	}
	return out
}

// Disturbed returns a function that reports whether, at any time between two times, a fault was on, the machine stood
// still or a master answered late.
func Disturbed(v *history.View) func(from, to int64) bool {
	all := slices.Concat(stalls(v), lasting(v, history.Slow))
	for _, times := range faultTimes(v) {
		all = append(all, times...)
	}
	all = merge(all, 0)
	return func(from, to int64) bool { return covered(window{from, to}, all) > 0 }
}

// Late returns a function that tells for how much of the time between two times a master answered late.
func Late(v *history.View) func(master int, from, to int64) int64 {
	late := make(map[int][]window)
	for i := range v.Events {
		if e := &v.Events[i]; e.Type == history.Slow {
			late[e.Master] = append(late[e.Master], window{e.At, e.At + e.Value})
		}
	}
	for master := range late {
		late[master] = merge(late[master], 0)
	}
	return func(master int, from, to int64) int64 { return covered(window{from, to}, late[master]) }
}
