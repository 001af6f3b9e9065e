package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/report"
)

// always has the oracles of promises that need no assumption on time or memory. The others are
// judged only in scenarios that stay within the assumptions.
var always = []string{
	oracle.NameTokenOrder, oracle.NameTokens, oracle.NameContinuity, oracle.NameDoneAfterBound,
	oracle.NameFaults, oracle.NameValidity, NameKeyspace,
}

// ofReach has the oracles that rely on knowing which masters a client can reach.
var ofReach = []string{
	oracle.NameAvailability, oracle.NameLiveness, oracle.NameRecovery, oracle.NameOutage, oracle.NameOperations,
	oracle.NameService, oracle.NamePace, oracle.NameKept, oracle.NameVictims, NameReleased,
}

// doubted marks findings that prove nothing as unknown. After a fault that went wrong, or on a machine that stood still
// for most of the time, nobody knows which masters a client could reach.
func doubted(found []oracle.Violation, v *history.View, l Limits) []oracle.Violation {
	doubt := float64(oracle.Stalled(v)) > l.Stalled*float64(v.End) ||
		slices.ContainsFunc(v.Events, func(e history.Event) bool {
			return e.Type == history.Excused && e.Attempt == 0 && e.Key == ""
		})
	for i := range found {
		if doubt && slices.Contains(ofReach, found[i].Oracle) {
			found[i].Unknown = true
		}
	}
	return found
}

// Oracles lists the names of all oracles.
func Oracles() []string {
	return []string{
		oracle.NameOverlap, oracle.NameTokenOrder, oracle.NameTokens, oracle.NameContinuity, oracle.NameForeignRelease,
		oracle.NameDoneAfterBound,
		oracle.NameOrphan, oracle.NameRegister, oracle.NameAvailability, oracle.NameLiveness, oracle.NameRecovery,
		oracle.NameReentry,
		oracle.NameKept, oracle.NameOutage, oracle.NameOperations, oracle.NameContext, oracle.NameService,
		oracle.NamePace,
		oracle.NameVictims, oracle.NameValidity, oracle.NameFaults, NameLeak, NameGrowth, NameReleased, NameOwner,
		NameKeyspace,
	}
}

// judge runs all oracles over the recorded history.
func (r *run) judge() *Report {
	events := slices.Clone(r.recorder.Events())
	// Children's events arrive late; every oracle wants them in order.
	slices.SortStableFunc(events, func(a, b history.Event) int { return cmp.Compare(a.At, b.At) })
	r.watch.name(events)
	v := history.NewView(events)
	v = history.NewView(slices.Concat(events, r.watch.removals(v), r.excuses(v)))
	rep := r.describe(v)
	for _, violation := range doubted(r.oracles(v, rep), v, r.limits()) {
		own := slices.ContainsFunc(r.cfg.Oracles, func(o Oracle) bool { return o.Always && o.Name == violation.Oracle })
		if own || promised(violation, v, r.plan.Inside) {
			rep.Violations = append(rep.Violations, violation)
		} else {
			rep.Allowed = append(rep.Allowed, violation)
		}
	}
	r.conclude(rep)
	return rep
}

func (r *run) oracles(v *history.View, rep *Report) []oracle.Violation {
	l := r.limits()
	found := append(ofHistory(v, l), r.watch.strangers(v)...)
	found = append(found, r.watch.strays(r.reach.unused(), min(l.Orphan, r.profile.TTL/4))...)
	rep.GoroutinesLeft = r.left
	for _, x := range found {
		switch x.Oracle {
		case oracle.NameOverlap:
			rep.Overlaps++
		case oracle.NameOrphan:
			rep.Orphans++
		case oracle.NameTokenOrder:
			rep.TokenViolations++
		case oracle.NameRegister:
			if strings.HasSuffix(x.Key, "/unchecked") && !x.Unknown {
				rep.LostUpdates++
			}
		}
	}
	for i := range r.cfg.Oracles {
		found = append(found, r.cfg.Oracles[i].judge(v)...)
	}
	return slices.Concat(found, oracle.PlannedFaults(v, r.plannedFaults()), r.leaks(),
		r.watch.lingering(v, min(l.Orphan, r.profile.TTL/4)), r.watch.lagging(v, min(l.Orphan, r.profile.TTL/4)),
		leftGoroutines(r.grown, granted(v)), r.rounds.judge(),
		litter(r.keysBefore, r.keysAfter, len(r.profile.KeyNames()), granted(v)))
}

func granted(v *history.View) int {
	n := 0
	for i := range v.Attempts {
		if v.Attempts[i].Granted() {
			n++
		}
	}
	return n
}

// plannedFaults are those that could be done here.
func (r *run) plannedFaults() []string {
	return slices.DeleteFunc(r.plan.FaultNames(), func(name string) bool { return r.injector.unavailable[name] != "" })
}

// promised reports whether a violation breaks a promise of a scenario, which stays inside the assumptions or does not.
func promised(x oracle.Violation, v *history.View, inside bool) bool {
	switch {
	case x.Oracle == oracle.NameRegister && strings.HasSuffix(x.Key, "/checked"), slices.Contains(always, x.Oracle):
		return true
	case x.Oracle == oracle.NameRegister:
		return inside && !slices.ContainsFunc(v.Events, func(e history.Event) bool {
			return e.Type == history.Excused && e.Key == x.Key
		})
	default:
		return inside
	}
}

// describe fills in the fields that need no judgement.
func (r *run) describe(v *history.View) *Report {
	service := oracle.Serve(v, r.limits().Settle)
	rep := &Report{
		Seed: r.plan.Seed, Replay: r.cfg.Replay, Subject: r.cfg.Subject.Name(), Backend: r.cfg.Backend,
		Scenario: r.plan.Scenario, Text: r.plan.Text, Inside: r.plan.Inside, Workload: r.profile.Name,
		Masters: r.plan.Masters, Clients: r.plan.Clients, DurationMS: r.lasted.Milliseconds(), Started: r.started,
		Availability: service.Ratio, Service: service, Faults: oracle.FaultsFired(v), Observed: r.injector.observed,
		Unavailable: r.injector.unavailable, UnexpectedErrors: r.unexpected, Errors: r.errors, Notes: r.notes,
		Plan:       r.plan,
		OwnOracles: r.ownOracles(), Violations: []oracle.Violation{}, History: v.Events, Samples: r.watch.samples,
		Watched: r.watch.keys,
		Votes:   r.votes.perMaster(), VoteBucket: r.votes.bucket, Ballots: r.votes.ballots,
	}
	for _, d := range oracle.Recoveries(v) {
		rep.RecoveryMSMax = max(rep.RecoveryMSMax, milliseconds(int64(d)))
	}
	r.count(rep, v)
	if r.cfg.Neighbours {
		q, _ := oracle.Victims(v, r.limits().Victim, r.limits().Settle, lateVictims)
		rep.Neighbours = &q
		rep.Notes = append(rep.Notes, r.aboutNeighbours(q))
	}
	rep.Operated, _ = oracle.Operations(v, r.limits().Settle, 0)
	if !slices.ContainsFunc(v.Attempts, func(a history.Attempt) bool { return a.Kind == history.Fenced }) {
		rep.Notes = append(rep.Notes, "no fencing tokens were asked for")
	}
	rep.StalledMS = milliseconds(oracle.Stalled(v))
	if n, longest, whose := r.machine.Stalled(); n > 0 {
		rep.Notes = append(rep.Notes,
			fmt.Sprintf("the machine stood still %d times, for %.0f ms of %.0f in all, once for %v (%s); these times "+
				"do not count",
				n, rep.StalledMS, milliseconds(v.End), longest.Round(time.Millisecond), whose))
	}
	rep.Notes = append(rep.Notes, r.rounds.notes()...)
	rep.Crowded = r.rounds != nil && r.rounds.crowded
	if n := r.network.Replaced(); n > 0 {
		rep.Notes = append(rep.Notes, fmt.Sprintf("%d proxies did not answer and were replaced", n))
	}
	return rep
}

func (r *run) ownOracles() map[string]string {
	own := make(map[string]string)
	for i := range r.cfg.Oracles {
		own[r.cfg.Oracles[i].Name] = r.cfg.Oracles[i].Text
	}
	return own
}

func (r *run) count(rep *Report, v *history.View) {
	var waits []float64
	for i := range v.Events {
		switch e := &v.Events[i]; e.Type {
		case history.AcquireReturn, history.ExtendReturn, history.ReleaseReturn:
			rep.Operations++
		case history.RegisterWrite:
			if e.Outcome == history.Held {
				rep.StaleWrites++
			}
		}
	}
	for i := range v.Attempts {
		if a := &v.Attempts[i]; a.Granted() && !a.Quiet {
			rep.Acquisitions++
			waits = append(waits, milliseconds(a.Return-a.Call))
		}
	}
	rep.OutageMSMax = milliseconds(oracle.LongestOutage(v))
	if slices.Sort(waits); len(waits) > 0 {
		rep.Latency = report.Latency{P50: waits[len(waits)/2], P99: waits[len(waits)*99/100], Max: waits[len(waits)-1]}
	}
}

func milliseconds(ns int64) float64 { return float64(ns/1000) / 1000 }

// vacuous says why a run that found nothing has shown nothing.
func (r *run) vacuous(rep *Report) []string {
	var out []string
	about := r.plan.About()
	if len(about) > 0 && !slices.ContainsFunc(about, func(name string) bool { return rep.Faults[name] > 0 }) {
		why := "a longer run may have one"
		for _, name := range about {
			if f, err := r.plan.FindFault(name); err == nil && r.injector.can(f) != nil {
				why = fmt.Sprintf("%s is not available: %v", name, r.injector.can(f))
			}
		}
		out = append(out,
			fmt.Sprintf("none of the faults came on that %s is about (%s): %s", r.plan.Scenario,
				strings.Join(about, ", "), why))
	}
	return append(out, tooLittle(rep.Acquisitions, r.enough())...)
}

// enough is how much has to happen in a run.
func (r *run) enough() int {
	turns := r.profile.Keys * int(time.Duration(r.plan.Duration)/(2*max(r.profile.Hold.Max, time.Millisecond)))
	return orElse(r.limits().Enough, min(max(turns, 5), 10))
}

// tooLittle says that less happened than enough. Of too few judged attempts the oracle of availability tells, where it
// is promised.
func tooLittle(acquisitions, enough int) []string {
	if acquisitions >= enough {
		return nil
	}
	return []string{
		fmt.Sprintf("too little happened: %d acquisitions, and at least %d are wanted", acquisitions, enough),
	}
}

// conclude draws the verdict.
func (r *run) conclude(rep *Report) {
	rep.Verdict = report.Pass
	unknown := func(format string, args ...any) {
		rep.Reasons = append(rep.Reasons, fmt.Sprintf(format, args...))
		if rep.Verdict == report.Pass {
			rep.Verdict = report.Unknown
		}
	}
	counts := make(map[string]int)
	undecided := func(v oracle.Violation) bool { return v.Unknown || v.Oracle == oracle.NameFaults }
	for _, v := range rep.Violations {
		if counts[v.Oracle]++; counts[v.Oracle] <= 3 && !undecided(v) { // the list has them all
			rep.Verdict = report.Violation
			rep.Reasons = append(rep.Reasons, v.String())
		}
	}
	for _, s := range r.stuck {
		rep.Verdict = report.Violation
		rep.Reasons = append(rep.Reasons, s)
	}
	for _, why := range r.vacuous(rep) {
		unknown("%s", why)
	}
	for _, v := range rep.Violations {
		if undecided(v) {
			unknown("%s", v)
		}
	}
	for _, f := range r.injector.failures {
		unknown("a fault went wrong: %s", f)
	}
	all := rep.StalledMS / milliseconds(max(1, r.recorder.Now()))
	rep.Starved = all > r.limits().Stalled/2
	if all > r.limits().Stalled {
		unknown("the machine stood still for %.0f %% of the time, and at most %.0f %% are to be: too little was seen",
			100*all, 100*r.limits().Stalled)
	}
	for _, name := range slices.Sorted(maps.Keys(r.injector.unavailable)) {
		rep.Notes = append(rep.Notes, fmt.Sprintf("fault %s is not available: %s", name, r.injector.unavailable[name]))
	}
}
