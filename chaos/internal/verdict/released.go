package verdict

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/network"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/report"
)

// This file is about what releases did on the masters.

// removals infers which releases removed another owner's hold. It looks for a key that a master had for a holder, with
// time to live, and that is gone or another's at the next look. At that time the holder was still within its bound and
// had not released the lock, and no fault was on that makes keys vanish.
func (f *Facts) removals(v *history.View) []history.Event {
	holders := make(map[string]*history.Attempt)
	for a := range v.Holds() {
		if a.Kind == history.Plain || a.Kind == history.Fenced {
			holders[a.Key+"\x00"+a.Owner] = a
		}
	}
	forgetful := forgetfulTimes(v, f.Report.Plan)
	last := make(map[int]report.Sample)
	var out []history.Event
	for _, s := range f.Report.Samples {
		before, ok := last[s.Master]
		if s.Up {
			last[s.Master] = s
		}
		if !ok || !s.Up {
			continue
		}
		for k, owner := range before.Owners {
			a := holders[f.Report.Watched[k]+"\x00"+owner]
			lives := int64(before.TTLs[k]) > s.Until-before.At+int64(time.Millisecond)
			if owner == "" || owner == s.Owners[k] || a == nil || !lives {
				continue
			}
			// A look shows the state at some moment during the look, so the hold has to last through both looks.
			if a.Return > before.At || a.End() < s.Until || forgetful.overlaps(before.At, s.Until) {
				continue
			}
			out = append(out, history.Event{
				At: s.At, Type: history.Removed, Client: history.Everyone, Master: s.Master, Key: f.Report.Watched[k],
				Owner: releaser(v, a, before.At, s.At), Before: owner, After: s.Owners[k],
			})
		}
	}
	return out
}

// releaser names the owner of a release that was in progress then; "" if none is on record.
func releaser(v *history.View, holder *history.Attempt, from, to int64) string {
	for i := range v.Attempts {
		a := &v.Attempts[i]
		if a.Key == holder.Key && a.ID != holder.ID && a.ReleaseCall <= to && a.ReleaseReturn >= from &&
			a.ReleaseCall != history.Never {
			return a.Owner
		}
	}
	return ""
}

// lingering finds holds with a confirmed release that a majority of a set of its masters still had for longer than
// grace after it: the lock is reported free but is not. Only the owner's release counts; waiting for the ttl is no
// release. If holds follow each other with one owner value, as when a lock is handed over inside a process, only the
// last is judged, because the masters can't distinguish them.
func (f *Facts) lingering(v *history.View, grace time.Duration) []oracle.Violation {
	type held struct{ key, owner string }
	last := make(map[held]map[int]int64) // by master: when it was last seen to have it
	for _, s := range f.Report.Samples {
		for k, owner := range s.Owners {
			if !s.Up || owner == "" {
				continue
			}
			h := held{f.Report.Watched[k], owner}
			if last[h] == nil {
				last[h] = make(map[int]int64)
			}
			last[h][s.Master] = s.At
		}
	}
	latest := make(map[held]int64) // when the last hold of the owner was returned
	for a := range v.Holds() {
		latest[held{a.Key, a.Owner}] = max(latest[held{a.Key, a.Owner}], a.Return)
	}
	var out []oracle.Violation
	for a := range v.Holds() {
		if !a.Released || a.Kind != history.Plain && a.Kind != history.Fenced ||
			latest[held{a.Key, a.Owner}] > a.Return {
			continue
		}
		seen := last[held{a.Key, a.Owner}]
		for _, set := range f.SetsOf(a.Owner) {
			have, until := 0, int64(0)
			for _, m := range set {
				if at := seen[m]; at > a.ReleaseReturn+int64(grace) {
					have, until = have+1, max(until, at)
				}
			}
			if have < network.Quorum(len(set)) {
				continue
			}
			out = append(out, oracle.Violation{
				Oracle: oracle.NameReleased, Key: a.Key, At: a.ReleaseReturn, Attempts: []uint64{a.ID},
				Text: fmt.Sprintf("the release of %q by client %d (attempt %d) was confirmed at %v, and %d masters "+
					"had it until %v at least", a.Key, a.Client, a.ID, time.Duration(a.ReleaseReturn), have,
					time.Duration(until)),
			})
			break
		}
	}
	return out
}

// lagging finds releases that left a key behind. A release asks every master in reach, not only a majority. So after
// it was confirmed, no master may have the key for longer than grace. Times with a fault or a stall do not count.
func (f *Facts) lagging(v *history.View, grace time.Duration) []oracle.Violation {
	const settle = int64(time.Second)
	disturbed := oracle.Disturbed(v)
	byOwner := make(map[string]*history.Attempt) // the last hold of each owner and key
	for a := range v.Holds() {
		if f.watches(a) >= 0 && a.Owner != "" {
			byOwner[a.Key+"\x00"+a.Owner] = a
		}
	}
	seen := make(map[*history.Attempt]bool)
	var out []oracle.Violation
	for _, s := range f.Report.Samples {
		for k, owner := range s.Owners {
			a := byOwner[f.Report.Watched[k]+"\x00"+owner]
			if a == nil || seen[a] || !s.Up || !a.Released || s.At <= a.ReleaseReturn+int64(grace) ||
				disturbed(a.Call-settle, s.Until) {
				continue
			}
			seen[a] = true
			out = append(out, oracle.Violation{
				Oracle: oracle.NameReleased, Key: a.Key, At: a.ReleaseReturn, Attempts: []uint64{a.ID},
				Text: fmt.Sprintf("the release of %q by client %d (attempt %d) was confirmed at %v, and master %d, "+
					"which could be reached all the time, had it at %v",
					a.Key, a.Client, a.ID, time.Duration(a.ReleaseReturn), s.Master, time.Duration(s.At)),
			})
		}
	}
	return out
}

// strays finds keys on masters that no client had used for longer than grace. Such a master had not
// joined yet, or its last client was closed, and closing releases all locks there.
func (f *Facts) strays(grace time.Duration) []oracle.Violation {
	type found struct {
		master int
		owner  string
	}
	seen := make(map[found]bool)
	var out []oracle.Violation
	for _, s := range f.Report.Samples {
		for k, owner := range s.Owners {
			one := found{s.Master, owner}
			i := slices.IndexFunc(f.Unused[s.Master], func(x [2]int64) bool {
				return s.At > x[0]+int64(grace) && s.Until < x[1]
			})
			if !s.Up || owner == "" || seen[one] || i < 0 {
				continue
			}
			seen[one] = true
			out = append(out, oracle.Violation{
				Oracle: oracle.NameOrphan, Key: f.Report.Watched[k], At: s.At,
				Text: fmt.Sprintf("master %d has %q for the owner %q at %v, and has been none of any client's "+
					"masters since %v",
					s.Master, f.Report.Watched[k], owner, time.Duration(s.At), time.Duration(f.Unused[s.Master][i][0])),
			})
		}
	}
	return out
}
