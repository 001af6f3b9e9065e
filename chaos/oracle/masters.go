package oracle

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// ForeignRelease finds releases that removed another owner's hold. It needs Removed events.
func ForeignRelease(v *history.View) []Violation {
	var out []Violation
	for i := range v.Events {
		e := &v.Events[i]
		if e.Type != history.Removed || e.Before == "" || e.Before == e.Owner || e.After == e.Before {
			continue
		}
		then := "no client had it"
		if e.After != "" {
			then = "owner " + short(e.After) + " had it"
		}
		by := "owner " + short(e.Owner)
		if e.Owner == "" {
			by = "somebody whose release is not on record"
		}
		out = append(out, Violation{
			Oracle: NameForeignRelease, Key: e.Key, At: e.At, Events: []int{i},
			Text: fmt.Sprintf("on master %d a release by %s removed the hold of owner %s on %q at %s; then %s",
				e.Master, by, short(e.Before), e.Key, at(e.At), then),
		})
	}
	return out
}

// Orphans finds keys that were on a master although no client held them any more and the time to
// remove them was over. It needs KeyFound events, and a Healed event if there were faults.
//
// A key is excused until grace after the Healed event, and until grace after the end of the attempt or hold that left
// it. If the attempt or the release never returned (its client was killed, for example), no client removes the key, and
// it is excused for its last requested ttl plus grace. Time when the machine stood still, or a master answered too late
// for a lock ([history.Slow]), does not count. A key without expiry is never excused. A key of an owner without
// attempts is not excused either, unless an attempt with unknown owner may have left it.
func Orphans(v *history.View, grace time.Duration) []Violation {
	var out []Violation
	healed, stuck := lastHealed(v.Events), stuck(v)
	known := make(map[string]int, len(v.Attempts))
	unnamed := int64(0)
	for i := range v.Attempts {
		a := &v.Attempts[i]
		if a.Owner == "" {
			unnamed = max(unnamed, left(a))
			continue
		}
		if j, ok := known[a.Owner+"\x00"+a.Key]; !ok || left(&v.Attempts[j]) < left(a) {
			known[a.Owner+"\x00"+a.Key] = i
		}
	}
	for i := range v.Events {
		e := &v.Events[i]
		if e.Type != history.KeyFound {
			continue
		}
		deadline, whose := unnamed, (*history.Attempt)(nil)
		if j, ok := known[e.Owner+"\x00"+e.Key]; ok {
			whose = &v.Attempts[j]
			deadline = left(whose)
		}
		deadline = max(deadline, healed) + int64(grace)
		if e.At-covered(window{deadline - int64(grace), e.At}, stuck) <= deadline && e.Value >= 0 {
			continue
		}
		out = append(out, orphan(e, i, whose, deadline))
	}
	return out
}

// left returns when the key of an attempt should be gone, if its masters can be reached.
func left(a *history.Attempt) int64 {
	if a.Return == history.Never {
		return a.Call + a.TTL
	}
	if !a.Granted() {
		return a.Return
	}
	if a.ReleaseReturn != history.Never {
		return a.ReleaseReturn
	}
	asked, ttl := a.Call, a.TTL
	for i := range a.Extensions {
		if x := &a.Extensions[i]; x.Return == history.Never || x.OK {
			asked, ttl = x.Call, max(ttl, x.TTL)
		}
	}
	if a.ReleaseCall == history.Never && a.Stopped == history.Never && a.Done != history.Never {
		return max(a.Done, a.LastUntil())
	}
	return max(asked+ttl, a.LastUntil())
}

func lastHealed(events []history.Event) int64 {
	for _, e := range slices.Backward(events) {
		if e.Type == history.Healed {
			return e.At
		}
	}
	return 0
}

func orphan(e *history.Event, i int, a *history.Attempt, deadline int64) Violation {
	v := Violation{Oracle: NameOrphan, Key: e.Key, At: e.At, Events: []int{i}}
	lives := "lives another " + took(e.Value)
	if e.Value < 0 {
		lives = "never expires"
	}
	whose := "no hold on record (perhaps of an attempt that failed)"
	if a != nil {
		whose = holder(a)
		v.Attempts = []uint64{a.ID}
	}
	v.Text = fmt.Sprintf("master %d still has %q for owner %s of %s at %s, which %s; it should have been gone by %s",
		e.Master, e.Key, short(e.Owner), whose, at(e.At), lives, at(deadline))
	return v
}

// PlannedFaults finds faults of a plan that never began. A run without its faults has shown nothing.
func PlannedFaults(v *history.View, planned []string) []Violation {
	fired := FaultsFired(v)
	var out []Violation
	for _, name := range planned {
		if fired[name] == 0 {
			out = append(out, Violation{
				Oracle: NameFaults, At: v.End, Text: fmt.Sprintf("fault %q was planned and never fired", name),
			})
		}
	}
	return out
}

// FaultsFired counts how often each fault came on.
func FaultsFired(v *history.View) map[string]int {
	fired := make(map[string]int)
	for i := range v.Events {
		if v.Events[i].Type == history.FaultOn {
			fired[v.Events[i].Name]++
		}
	}
	return fired
}
