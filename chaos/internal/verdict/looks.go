package verdict

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/network"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
)

// A hold is on a majority of masters for as long as it lasts. So looks at a majority of masters in that time see its
// owner at least once. An owner that is never seen is not the value that the lock stores. The oracles that rely on
// owners (did a release remove the key, which hold was removed) then know nothing.

// strangers finds holds with an owner that was on none of the masters, although the run looked at a
// majority of masters during the hold.
func (f *Facts) strangers(v *history.View) []oracle.Violation {
	looks, forgetful := f.byMaster(), forgetfulTimes(v, f.Report.Plan)
	var out []oracle.Violation
	for a := range v.Holds() {
		if k := f.watches(a); k >= 0 && a.Owner != "" && !forgetful.overlaps(a.Return, a.End()) {
			for _, set := range f.SetsOf(a.Owner) {
				looked, seen := looks.during(a, k, set, a.Owner)
				if looked < network.Quorum(len(set)) || seen > 0 {
					continue
				}
				out = append(out, oracle.Violation{
					Oracle: oracle.NameOwner, Key: a.Key, At: a.Return, Attempts: []uint64{a.ID},
					Events: []int{a.CallEvent},
					Text: fmt.Sprintf("client %d (attempt %d) held %q as owner %q, and none of the %d masters that "+
						"were looked at meanwhile had that owner", a.Client, a.ID, a.Key, a.Owner, looked),
				})
				break
			}
		}
	}
	return out
}

// tooLong finds the first key of a hold that lives for much longer than the requested ttl. If the client dies, the lock
// stays taken for that time. After a change of a master's clock the times to live prove nothing.
func (f *Facts) tooLong(v *history.View) []oracle.Violation {
	clocks := func(name string) bool { return strings.HasPrefix(name, "clock-") }
	if slices.ContainsFunc(f.Report.Plan.FaultNames(), clocks) {
		return nil
	}
	asked := make(map[string]*history.Attempt)
	for a := range v.Holds() {
		if f.watches(a) >= 0 && a.Owner != "" && a.TTL > 0 {
			asked[a.Key+"\x00"+a.Owner] = a
		}
	}
	for _, s := range f.Report.Samples {
		for k, owner := range s.Owners {
			a := asked[f.Report.Watched[k]+"\x00"+owner]
			if !s.Up || a == nil || s.TTLs[k] >= 0 && s.TTLs[k] <= 2*time.Duration(a.TTL)+time.Second {
				continue
			}
			return []oracle.Violation{{
				Oracle: oracle.NameKeyspace, Key: a.Key, At: s.At, Attempts: []uint64{a.ID},
				Text: fmt.Sprintf("master %d has %q for client %d (attempt %d), which asked for %v, and keeps it for "+
					"%v (below 0: for ever) at %v", s.Master, a.Key, a.Client, a.ID, time.Duration(a.TTL), s.TTLs[k],
					time.Duration(s.At)),
			}}
		}
	}
	return nil
}

// blind returns a reason if most masters answered no look of the run.
func (f *Facts) blind() []string {
	looked, seen := make(map[int]bool), f.byMaster()
	for _, s := range f.Report.Samples {
		looked[s.Master] = true
	}
	if n := len(looked) - len(seen); n > len(looked)/2 {
		return []string{fmt.Sprintf("no look at %d of %d masters was answered: nobody knows which keys they had", n,
			len(looked))}
	}
	return nil
}

// name fills in the owners of holds that were reported without one, as far as a majority of masters was seen to have
// one and the same value all the time.
func (f *Facts) name(events []history.Event) {
	looks, v := f.byMaster(), history.NewView(events)
	for a := range v.Holds() {
		k := f.watches(a)
		if k < 0 || a.Owner != "" {
			continue
		}
		for _, set := range f.SetsOf("") {
			for _, value := range looks.values(a, k, set) {
				if _, seen := looks.during(a, k, set, value); seen >= network.Quorum(len(set)) {
					events[a.ReturnEvent].Owner = value
				}
			}
		}
	}
}

// watches returns the index of the watched key that a hold has, or -1. If a key has several holds
// at once, a look shows only one, so these are left out.
func (f *Facts) watches(a *history.Attempt) int {
	if a.Kind != history.Plain && a.Kind != history.Fenced {
		return -1
	}
	return slices.Index(f.Report.Watched, a.Key)
}

// glances are the samples of each master, in the order of their times.
type glances map[int][]report.Sample

func (f *Facts) byMaster() glances {
	out := make(glances)
	for _, s := range f.Report.Samples {
		if s.Up {
			out[s.Master] = append(out[s.Master], s)
		}
	}
	return out
}

// in returns the looks at a master that began and ended while a hold lasted.
func (l glances) in(a *history.Attempt, master int) []report.Sample {
	all := l[master]
	from := sort.Search(len(all), func(i int) bool { return all[i].At >= a.Return })
	to := from
	for to < len(all) && all[to].Until <= a.End() {
		to++
	}
	return all[from:to]
}

// during counts the masters of a set that the run looked at while a hold lasted, and how many had the owner.
func (l glances) during(a *history.Attempt, key int, set []int, owner string) (looked, seen int) {
	for _, m := range set {
		found := l.in(a, m)
		if len(found) > 0 {
			looked++
		}
		if slices.ContainsFunc(found, func(s report.Sample) bool { return s.Owners[key] == owner }) {
			seen++
		}
	}
	return looked, seen
}

// values are the owners that a set of masters was seen with while a hold lasted.
func (l glances) values(a *history.Attempt, key int, set []int) []string {
	var out []string
	for _, m := range set {
		for _, s := range l.in(a, m) {
			if owner := s.Owners[key]; owner != "" && !slices.Contains(out, owner) {
				out = append(out, owner)
			}
		}
	}
	return out
}

// bands are stretches of time.
type bands [][2]int64

func (b bands) overlaps(from, to int64) bool {
	return slices.ContainsFunc(b, func(x [2]int64) bool { return x[0] < to && from < x[1] })
}

// forgetfulTimes are when some fault that makes masters lose keys was on, or had been on shortly before.
func forgetfulTimes(v *history.View, p *plan.Plan) bands {
	const after = int64(500 * time.Millisecond)
	var out bands
	for i := range v.Events {
		e := &v.Events[i]
		if e.Type != history.FaultOn && e.Type != history.FaultOff {
			continue
		}
		if fault, err := p.FindFault(e.Name); err == nil && fault.Forgets {
			out = append(out, [2]int64{e.At - after, e.At + after})
		}
	}
	return out
}
