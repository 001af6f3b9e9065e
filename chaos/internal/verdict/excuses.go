package verdict

import (
	"slices"
	"strings"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/network"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
)

// The set of masters that a client reaches does not tell whether a hold can be extended. A master lacks the hold's key
// if another client had the key there at the time of the acquisition, or if the master stood still until the ttl was
// over. A key that an extension sets there does not count at once. So a renewed hold may be lost without a defect if
// the client could reach too few masters with the key. Without a fault nothing but the lock removes its keys.

// excuses are the findings that would be no defects of the lock.
func (f *Facts) excuses(v *history.View) (events []history.Event) {
	for _, failure := range f.Failures {
		events = append(events, history.Event{
			At: v.End, Type: history.Excused, Client: history.Everyone, Note: "a fault went wrong: " + failure,
		})
	}
	disturbed, late := oracle.Disturbed(v), oracle.Late(v)
	for a := range v.Holds() {
		_, end := oracle.LastTTL(a)
		if a.Renew && oracle.Lost(a) && disturbed(a.Call, end) && f.lostByRight(a, late) {
			events = append(events, history.Event{
				At: v.End, Type: history.Excused, Client: a.Client, Attempt: a.ID,
				Note: "lost by right: too few masters that had the key were in reach and answered in time",
			})
		}
	}
	if !f.Profile.Late && !slices.Contains(f.Report.Plan.FaultNames(), plan.ClientPause) {
		return events
	}
	// A holder that is paused between its last check of the bound and its write loses updates under any lock. The
	// checked register prevents this.
	keys := make(map[string]bool)
	for i := range v.Events {
		e := &v.Events[i]
		if e.Type == history.RegisterWrite && strings.HasSuffix(e.Key, "/unchecked") && !keys[e.Key] {
			keys[e.Key] = true
			events = append(events, history.Event{
				At: v.End, Type: history.Excused, Client: history.Everyone, Key: e.Key,
				Note: "updates of a resource that checks no tokens may be lost while holders stand still",
			})
		}
	}
	return events
}

// lostByRight reports that a lost hold could not be extended: too few masters had its key, were in reach and answered
// in time.
func (f *Facts) lostByRight(a *history.Attempt, late func(master int, from, to int64) int64) bool {
	from, to := oracle.LastTTL(a)
	for _, set := range f.SetsOf(a.Owner) {
		able := 0
		for _, m := range set {
			if f.Away(a.Client, m, from, to)+late(m, from, to) <= (to-from)/5 && f.had(m, a, from, to) {
				able++
			}
		}
		if able < network.Quorum(len(set)) {
			return true
		}
	}
	return false
}

// had reports that a master had the key of a hold. A master out of reach at the acquisition gets the key with the
// first extension that reaches it. So a hold of a key that nobody watches, and that was lost in its second ttl, did not
// have such a master.
func (f *Facts) had(master int, a *history.Attempt, from, to int64) bool {
	if slices.Contains(f.Report.Watched, a.Key) {
		return f.seen(master, a.Key, a.Owner, from, to)
	}
	return to-a.Return >= 2*a.TTL || f.Away(a.Client, master, a.Call, a.Return) == 0
}

// seen reports that a master was seen to have the key for the owner nearly all the time.
func (f *Facts) seen(master int, key, owner string, from, to int64) bool {
	k, looks, has := slices.Index(f.Report.Watched, key), 0, 0
	for i := range f.Report.Samples {
		s := &f.Report.Samples[i]
		if s.Master != master || !s.Up || s.At < from || s.Until > to {
			continue
		}
		looks++
		if s.Owners[k] == owner {
			has++
		}
	}
	return has > 0 && 5*has >= 4*looks
}
