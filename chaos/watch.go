package chaos

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/network"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

const (
	// mostWatch and leastWatch bound the interval between looks at a master's watched keys: the
	// shorter the holds, the shorter the interval.
	mostWatch  = 100 * time.Millisecond
	leastWatch = 10 * time.Millisecond
	// watchedKeys is of how many keys, and watchedRenewed of how many where holds are renewed: whether one was lost by
	// right is known only if it is known who had its key.
	watchedKeys    = 3
	watchedRenewed = 6
	// slowShare is the part of a lock's patience with a master that a look at a master may take; a longer look is Slow.
	// On a machine with ten programs for each processor, releases without an answer in time met looks of a fifth of the
	// patience and more; most other releases met shorter ones.
	slowShare = 5
)

// NameReleased is the oracle that finds releases which released nothing.
const NameReleased = "released"

// watch asks the masters for the holders of keys, past all network faults.
type watch struct {
	plan     *plan.Plan
	fleet    *masters.Fleet
	recorder *history.Recorder
	keys     []string
	ownerOf  func(raw string) string
	setsOf   func(owner string) [][]int // the masters of a hold
	every    time.Duration
	patience time.Duration         // of the lock, with one master
	hurt     func(master int) bool // by a fault that is on

	mu      sync.Mutex
	samples []report.Sample
}

func (r *run) newWatch() *watch {
	profile := r.profile
	keys, most := profile.KeyNames(), watchedKeys
	if profile.Renew || slices.ContainsFunc(profile.Parts, func(p workload.Part) bool { return p.Renew }) {
		most = watchedRenewed
	}
	return &watch{
		plan: r.plan, fleet: r.fleet, recorder: r.recorder, keys: keys[:min(len(keys), most)],
		ownerOf: r.ownerOf, setsOf: r.setsOf,
		every:    min(mostWatch, max(leastWatch, profile.Hold.Max/4)),
		patience: workload.PatienceOf(r.cfg.Subject, profile.TTL), hurt: r.reach.hurt,
	}
}

func (w *watch) run(ctx context.Context) {
	var group sync.WaitGroup
	for i, m := range w.fleet.Masters {
		group.Go(func() {
			tick := time.NewTicker(w.every)
			defer tick.Stop()
			for {
				w.sample(ctx, i, m)
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
			}
		})
	}
	group.Wait()
}

func (w *watch) sample(ctx context.Context, i int, m masters.Master) {
	bounded, cancel := context.WithTimeout(ctx, mostWatch)
	defer cancel()
	hurt := w.hurt(i)
	s := report.Sample{
		At: w.recorder.Now(), Master: i, Owners: make([]string, len(w.keys)), TTLs: make([]time.Duration, len(w.keys)),
	}
	found, err := m.Look(bounded, w.keys)
	s.Up, s.Until = err == nil, w.recorder.Now()
	if took := s.Until - s.At; took > int64(w.patience/slowShare) && ctx.Err() == nil && !hurt && !w.hurt(i) {
		w.recorder.Append(history.Event{
			At: s.At, Type: history.Slow, Client: history.Everyone, Master: i, Value: took,
			Note: fmt.Sprintf("master %d was asked for its keys", i),
		})
	}
	for _, key := range found {
		for k, name := range w.keys {
			if name == key.Name && len(key.Owners) > 0 {
				s.Owners[k], s.TTLs[k] = w.ownerOf(key.Owners[0]), key.TTL
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.samples = append(w.samples, s)
}

// removals infers which releases removed another owner's hold. It looks for a key that a master had
// for a holder, with time to live, and that is gone or another's at the next look. At that time the
// holder was still within its bound and had not released the lock, and no fault was on that makes
// keys vanish.
func (w *watch) removals(v *history.View) []history.Event {
	holders := make(map[string]*history.Attempt)
	for i := range v.Attempts {
		if a := &v.Attempts[i]; a.Granted() && (a.Kind == history.Plain || a.Kind == history.Fenced) {
			holders[a.Key+"\x00"+a.Owner] = a
		}
	}
	forgetful := forgetfulTimes(v, w.plan)
	last := make(map[int]report.Sample)
	var out []history.Event
	for _, s := range w.samples {
		before, ok := last[s.Master]
		if s.Up {
			last[s.Master] = s
		}
		if !ok || !s.Up {
			continue
		}
		for k, owner := range before.Owners {
			a := holders[w.keys[k]+"\x00"+owner]
			lives := int64(before.TTLs[k]) > s.Until-before.At+int64(time.Millisecond)
			if owner == "" || owner == s.Owners[k] || a == nil || !lives {
				continue
			}
			// A look shows the state at some moment during the look, so the hold has to last
			// through both looks.
			if a.Return > before.At || a.End() < s.Until || forgetful.overlaps(before.At, s.Until) {
				continue
			}
			out = append(out, history.Event{
				At: s.At, Type: history.Removed, Client: history.Everyone, Master: s.Master, Key: w.keys[k],
				Owner: releaser(v, a, before.At, s.At), Before: owner, After: s.Owners[k],
			})
		}
	}
	return out
}

// lingering finds holds with a confirmed release that a majority of a set of its masters still had
// for longer than grace after it: the lock is reported free but is not. Only the owner's release
// counts; waiting for the ttl is no release. If holds follow each other with one owner value, as
// when a lock is handed over inside a process, only the last is judged, because the masters can't
// distinguish them.
func (w *watch) lingering(v *history.View, grace time.Duration) []oracle.Violation {
	type held struct{ key, owner string }
	last := make(map[held]map[int]int64) // by master: when it was last seen to have it
	for _, s := range w.samples {
		for k, owner := range s.Owners {
			if !s.Up || owner == "" {
				continue
			}
			h := held{w.keys[k], owner}
			if last[h] == nil {
				last[h] = make(map[int]int64)
			}
			last[h][s.Master] = s.At
		}
	}
	latest := make(map[held]int64) // when the last hold of the owner was returned
	for i := range v.Attempts {
		if a := &v.Attempts[i]; a.Granted() {
			latest[held{a.Key, a.Owner}] = max(latest[held{a.Key, a.Owner}], a.Return)
		}
	}
	var out []oracle.Violation
	for i := range v.Attempts {
		a := &v.Attempts[i]
		if !a.Granted() || !a.Released || a.Kind != history.Plain && a.Kind != history.Fenced ||
			latest[held{a.Key, a.Owner}] > a.Return {
			continue
		}
		seen := last[held{a.Key, a.Owner}]
		for _, set := range w.setsOf(a.Owner) {
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
				Oracle: NameReleased, Key: a.Key, At: a.ReleaseReturn, Attempts: []uint64{a.ID},
				Text: fmt.Sprintf("the release of %q by client %d (attempt %d) was confirmed at %v, and %d masters "+
					"had it until %v at least",
					a.Key, a.Client, a.ID, time.Duration(a.ReleaseReturn), have, time.Duration(until)),
			})
			break
		}
	}
	return out
}

// strays finds keys on masters that no client had used for longer than grace. Such a master had not
// joined yet, or its last client was closed, and closing releases all locks there.
func (w *watch) strays(unused []bands, grace time.Duration) []oracle.Violation {
	type found struct {
		master int
		owner  string
	}
	seen := make(map[found]bool)
	var out []oracle.Violation
	for _, s := range w.samples {
		for k, owner := range s.Owners {
			f := found{s.Master, owner}
			i := slices.IndexFunc(unused[s.Master], func(x [2]int64) bool {
				return s.At > x[0]+int64(grace) && s.Until < x[1]
			})
			if !s.Up || owner == "" || seen[f] || i < 0 {
				continue
			}
			seen[f] = true
			out = append(out, oracle.Violation{
				Oracle: oracle.NameOrphan, Key: w.keys[k], At: s.At,
				Text: fmt.Sprintf("master %d has %q for the owner %q at %v, and has been none of any client's "+
					"masters since %v",
					s.Master, w.keys[k], owner, time.Duration(s.At), time.Duration(unused[s.Master][i][0])),
			})
		}
	}
	return out
}

// releaser names the owner of a release that was in progress then, or says that none is known.
func releaser(v *history.View, holder *history.Attempt, from, to int64) string {
	for i := range v.Attempts {
		a := &v.Attempts[i]
		if a.Key == holder.Key && a.ID != holder.ID && a.ReleaseCall <= to && a.ReleaseReturn >= from &&
			a.ReleaseCall != history.Never {
			return a.Owner
		}
	}
	return "somebody"
}

// bands are stretches of time.
type bands [][2]int64

func (b bands) overlaps(from, to int64) bool {
	for _, x := range b {
		if x[0] < to && from < x[1] {
			return true
		}
	}
	return false
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
		if f, err := p.FindFault(e.Name); err == nil && f.Forgets {
			out = append(out, [2]int64{e.At - after, e.At + after})
		}
	}
	return out
}
