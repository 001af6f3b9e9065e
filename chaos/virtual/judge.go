package virtual

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/verdict"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// orphanGrace is how long keys may outlive their holds. Without faults they must be removed soon. After faults they may
// live for their ttl: not every lock asks a master again.
func (w *world) orphanGrace() time.Duration {
	if len(w.plan.Faults) == 0 {
		return stray / 2
	}
	return w.plan.ttl() + stray/2
}

// byShare are the oracles that judge by shares of many operations, for machines that may be slow. A run has few
// operations, and its time is exact. So each client must get a key in the end, what fails in a run without faults is a
// violation, and so is each late call.
var byShare = []string{
	oracle.NameAvailability, oracle.NameOutage, oracle.NameRecovery, oracle.NameOperations, oracle.NameContext,
}

// judge asks the oracles.
func (w *world) judge() (*Result, error) {
	res := &Result{History: slices.Concat(w.events, w.majorities()), Counts: w.counts, trace: w.trace}
	slices.SortStableFunc(res.History, func(a, b history.Event) int { return cmp.Compare(a.At, b.At) })
	limits := oracle.Limits{
		Orphan: w.orphanGrace(), Done: time.Millisecond, Liveness: w.plan.ttl() + stray, Pace: w.plan.ttl() + stray,
	}
	j, err := verdict.Check(res.History, limits, w.plan.Inside())
	if err != nil {
		return nil, err
	}
	skip := func(v oracle.Violation) bool { return v.Unknown || slices.Contains(byShare, v.Oracle) }
	v := history.NewView(res.History)
	res.Violations = slices.Concat(slices.DeleteFunc(j.Violations, skip), w.failed(v), w.late(v))
	res.Allowed = slices.DeleteFunc(j.Allowed, skip)
	if w.stuck {
		res.Violations = append(res.Violations, oracle.Violation{
			Oracle: oracle.NameContext, At: w.latest,
			Text: "ten days after the run began, a worker still waits for the lock, though the contexts of its calls " +
				"have ended",
		})
	}
	if w.endless > max(fewEndless, w.counts.Acquired/2) {
		res.Violations = append(res.Violations, oracle.Violation{
			Oracle: oracle.NameKeyspace, At: w.latest,
			Text: fmt.Sprintf("after %d acquisitions a master has %d keys that never expire", w.counts.Acquired,
				w.endless),
		})
	}
	if oracle.Contested(v) {
		res.Counts.Contended = 1
	}
	return res, nil
}

// fewEndless is how many keys without a ttl a lock may have on a master, whatever it does: names, settings.
const fewEndless = 3

// late finds the first acquisition that goes on after its caller's context has ended.
func (w *world) late(v *history.View) (out []oracle.Violation) {
	for i := range v.Attempts {
		a := &v.Attempts[i]
		end := a.Call + a.Patience
		if over := v.Asks(a) - end; a.Patience > 0 && over > a.TTL/20+int64(stray/12) {
			return []oracle.Violation{{
				Oracle: oracle.NameContext, Key: a.Key, At: end, Attempts: []uint64{a.ID}, Events: []int{a.CallEvent},
				Text: fmt.Sprintf("client %d (attempt %d) asked for %q, its context ended at %v, and the call went on "+
					"for %v", a.Client, a.ID, a.Key, time.Duration(end), time.Duration(over)),
			}}
		}
	}
	return nil
}

// settles is how long after a fault a client may still be short of masters: its connections have to be made again,
// and requests that were held back have to arrive.
const settles = 500 * time.Millisecond

// majorities are the events about the times when clients could not reach a majority.
func (w *world) majorities() []history.Event {
	var out []history.Event
	for n := range w.plan.Clients {
		for _, kind := range []struct{ lost, back history.Type }{
			{history.MajorityLost, history.MajorityBack}, {history.KeepLost, history.KeepBack},
		} {
			for _, x := range w.without(n, kind.lost == history.KeepLost) {
				out = append(out, history.Event{At: x[0], Type: kind.lost, Client: n},
					history.Event{At: x[1], Type: kind.back, Client: n})
			}
		}
	}
	return slices.DeleteFunc(out, func(e history.Event) bool { return e.At > w.latest })
}

// without returns when a client could not reach a majority of masters or, for keep, a majority that extends held locks.
func (w *world) without(client int, keep bool) (out [][2]int64) {
	settles := settles
	if keep { // a master that was away at the acquisition gets the key with a renewal, and can extend it after that
		settles += w.plan.ttl()
	}
	var moments []int64
	for i := range w.plan.Faults {
		if f := &w.plan.Faults[i]; len(f.Masters) > 0 {
			moments = append(moments, int64(f.At), int64(f.ends()+settles))
		}
	}
	slices.Sort(moments)
	for i, from := range moments {
		if i+1 == len(moments) || w.reaches(client, from, keep, settles) > len(w.masters)/2 {
			continue
		}
		if n := len(out); n > 0 && out[n-1][1] == from {
			out[n-1][1] = moments[i+1]
		} else {
			out = append(out, [2]int64{from, moments[i+1]})
		}
	}
	return out
}

// reaches counts the masters that a client can use at that time. A full master extends locks that it has: all, if there
// are no other faults.
func (w *world) reaches(client int, t int64, keep bool, settles time.Duration) int {
	full := keep && !slices.ContainsFunc(w.plan.Faults, func(f Fault) bool {
		return f.Kind != Full && len(f.Masters) > 0
	})
	n := 0
	for m := range w.masters {
		away := slices.ContainsFunc(w.plan.Faults, func(f Fault) bool {
			return int64(f.At) <= t && t < int64(f.ends()+settles) && f.on(client, m) &&
				(f.Kind != Full || !full)
		})
		if !away {
			n++
		}
	}
	return n
}
