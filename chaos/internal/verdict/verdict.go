package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Facts are the observations of a run. Judge needs nothing else.
type Facts struct {
	// Report has all that needs no judgement, with the history and the looks at masters. Judge fills in the rest. If it
	// has Neighbours, Judge counts how they fared.
	Report  *report.Report
	Profile workload.Profile
	Limits  oracle.Limits // without zeros
	// EndedAt is when the run ended, in nanoseconds.
	EndedAt int64

	// SetsOf are the sets of masters of a hold.
	SetsOf func(owner string) [][]int
	// Away is for how much of a time a client could not ask a master.
	Away func(client, master int, from, to int64) int64
	// Unused are, by master, the times when no client used it.
	Unused [][][2]int64

	// Failures are faults that went wrong. Can returns why a fault is not available.
	Failures []string
	Can      func(plan.Fault) error
	// Unseen names the masters that did not answer the last look.
	Unseen []string
	// Stuck names workers and clients that did not end in time.
	Stuck []string
	// Found are findings in the harness's process and in the keyspace of the masters.
	Found []oracle.Violation
	// Own has the caller's oracles judge. What those in Always find is a violation in all scenarios.
	Own    func(*history.View) []oracle.Violation
	Always []string
}

// always has the oracles of promises that need no assumption on time or memory. The others are
// judged only in scenarios that stay within the assumptions.
var always = []string{
	oracle.NameTokenOrder, oracle.NameTokens, oracle.NameContinuity, oracle.NameDoneAfterBound,
	oracle.NameFaults, oracle.NameValidity, oracle.NameKeyspace,
}

// ofReach has the oracles that rely on knowing which masters a client can reach, and that it gets processor time.
var ofReach = []string{
	oracle.NameAvailability, oracle.NameLiveness, oracle.NameRecovery, oracle.NameOutage, oracle.NameOperations,
	oracle.NameService, oracle.NamePace, oracle.NameKept, oracle.NameVictims, oracle.NameReleased,
	oracle.NameOrphan, oracle.NameReentry, oracle.NameSharing,
}

// starved reports that a machine that stood still for this share of a run may have made a correct lock late.
func starved(share float64, l oracle.Limits) bool { return share > l.Stalled/2 }

// doubted marks findings that prove nothing as unknown. After a fault that went wrong, the masters in a client's reach
// are unknown. On a machine that often stood still, even a correct lock may be late.
func doubted(found []oracle.Violation, v *history.View, l oracle.Limits) []oracle.Violation {
	doubt := starved(float64(oracle.Stalled(v))/float64(max(1, v.End)), l) ||
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

// Judge runs all oracles over the recorded history and completes the report.
func Judge(f *Facts) {
	rep := f.Report
	events := slices.Clone(rep.History)
	// Children's events arrive late; every oracle wants them in order.
	slices.SortStableFunc(events, func(a, b history.Event) int { return cmp.Compare(a.At, b.At) })
	f.name(events)
	v := history.NewView(events)
	v = history.NewView(slices.Concat(events, f.removals(v), f.excuses(v)))
	rep.History = v.Events
	f.describe(v)
	rep.Violations = []oracle.Violation{}
	for _, violation := range doubted(f.findings(v), v, f.Limits) {
		if slices.Contains(f.Always, violation.Oracle) || promised(violation, v, rep.Inside) {
			rep.Violations = append(rep.Violations, violation)
		} else {
			rep.Allowed = append(rep.Allowed, violation)
		}
	}
	f.conclude(v)
}

func (f *Facts) findings(v *history.View) []oracle.Violation {
	// grace is for how long a key may outlive a release, and the use of its master.
	l, grace := f.Limits, min(f.Limits.Orphan, f.Profile.TTL/4)
	found := slices.Concat(ofHistory(v, l), f.strangers(v), f.tooLong(v), f.strays(grace))
	for _, x := range found {
		switch x.Oracle {
		case oracle.NameOverlap:
			f.Report.Overlaps++
		case oracle.NameOrphan:
			f.Report.Orphans++
		case oracle.NameTokenOrder:
			f.Report.TokenViolations++
		case oracle.NameRegister:
			if strings.HasSuffix(x.Key, "/unchecked") && !x.Unknown {
				f.Report.LostUpdates++
			}
		}
	}
	return slices.Concat(found, f.Own(v), oracle.PlannedFaults(v, f.plannedFaults()), f.Found, f.lingering(v, grace),
		f.lagging(v, grace))
}

func granted(v *history.View) int {
	n := 0
	for range v.Holds() {
		n++
	}
	return n
}

// plannedFaults are those that could be done here.
func (f *Facts) plannedFaults() []string {
	return slices.DeleteFunc(f.Report.Plan.FaultNames(), func(name string) bool {
		return f.Report.Unavailable[name] != ""
	})
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

// describe fills in the numbers of the history.
func (f *Facts) describe(v *history.View) {
	rep, l := f.Report, f.Limits
	rep.Service = oracle.Serve(v, l.Settle)
	rep.Availability, rep.Faults = rep.Service.Ratio, oracle.FaultsFired(v)
	rep.Operated, _ = oracle.Operations(v, l.Settle, 0)
	rep.StalledMS = milliseconds(oracle.Stalled(v))
	rep.OutageMSMax = milliseconds(oracle.LongestOutage(v))
	for _, d := range oracle.Recoveries(v) {
		rep.RecoveryMSMax = max(rep.RecoveryMSMax, milliseconds(int64(d)))
	}
	if rep.Neighbours != nil {
		*rep.Neighbours, _ = oracle.Victims(v, l.Victim, l.Settle, lateVictims)
	}
	if !slices.ContainsFunc(v.Attempts, func(a history.Attempt) bool { return a.Kind == history.Fenced }) {
		rep.Notes = append(rep.Notes, "no fencing tokens were asked for")
	}
	count(rep, v)
}

func count(rep *report.Report, v *history.View) {
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
	for a := range v.Holds() {
		if !a.Quiet {
			rep.Acquisitions++
			waits = append(waits, milliseconds(a.Return-a.Call))
		}
	}
	if slices.Sort(waits); len(waits) > 0 {
		rep.Latency = report.Latency{P50: waits[len(waits)/2], P99: waits[len(waits)*99/100], Max: waits[len(waits)-1]}
	}
}

func milliseconds(ns int64) float64 { return float64(ns/1000) / 1000 }

// vacuous says why a run that found nothing has shown nothing.
func (f *Facts) vacuous(v *history.View) []string {
	var out []string
	rep, about := f.Report, f.Report.Plan.About()
	if len(about) > 0 && !slices.ContainsFunc(about, func(name string) bool { return rep.Faults[name] > 0 }) {
		why := "a longer run may have one"
		for _, name := range about {
			if fault, err := rep.Plan.FindFault(name); err == nil && f.Can(fault) != nil {
				why = fmt.Sprintf("%s is not available: %v", name, f.Can(fault))
			}
		}
		out = append(out,
			fmt.Sprintf("none of the faults came on that %s is about (%s): %s", rep.Scenario,
				strings.Join(about, ", "), why))
	}
	return append(out, tooLittle(v, rep.Acquisitions, f.Limits, f.enough())...)
}

// enough is how much has to happen in a run.
func (f *Facts) enough() int {
	turns := f.Profile.Keys * int(time.Duration(f.Report.Plan.Duration)/(2*max(f.Profile.Hold.Max, time.Millisecond)))
	return min(max(turns, 5), 10)
}

// tooLittle says that less happened than enough. Of too few judged attempts the oracle of availability tells, where it
// is promised. A limit of the caller's takes the place of both.
func tooLittle(v *history.View, acquisitions int, l oracle.Limits, enough int) []string {
	if enough = cmp.Or(l.Enough, enough); acquisitions < enough {
		return []string{
			fmt.Sprintf("too little happened: %d acquisitions, and at least %d are wanted", acquisitions, enough),
		}
	}
	if l.Enough == 0 && !oracle.Contested(v) {
		return []string{"too little happened: nobody asked for a key while another worker had it"}
	}
	return nil
}

// conclude draws the verdict.
func (f *Facts) conclude(v *history.View) {
	rep := f.Report
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
	for _, s := range f.Stuck {
		rep.Verdict = report.Violation
		rep.Reasons = append(rep.Reasons, s)
	}
	for _, why := range slices.Concat(f.vacuous(v), f.blind(), f.Unseen) {
		unknown("%s", why)
	}
	for _, v := range rep.Violations {
		if undecided(v) {
			unknown("%s", v)
		}
	}
	for _, failure := range f.Failures {
		unknown("a fault went wrong: %s", failure)
	}
	all := rep.StalledMS / milliseconds(max(1, f.EndedAt))
	rep.Starved = starved(all, f.Limits)
	if all > f.Limits.Stalled {
		unknown("the machine stood still for %.0f %% of the time, and at most %.0f %% are to be: too little was seen",
			100*all, 100*f.Limits.Stalled)
	}
	for _, name := range slices.Sorted(maps.Keys(rep.Unavailable)) {
		rep.Notes = append(rep.Notes, fmt.Sprintf("fault %s is not available: %s", name, rep.Unavailable[name]))
	}
}
