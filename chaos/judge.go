package chaos

import (
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/verdict"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// judge hands over the facts of the run to be judged.
func (r *run) judge() *Report {
	rep := &Report{
		Seed: r.plan.Seed, Replay: r.cfg.Replay, Subject: r.cfg.Subject.Name(), Backend: r.cfg.Backend,
		Scenario: r.plan.Scenario, Text: r.plan.Text, Inside: r.plan.Inside, Workload: r.profile.Name,
		Masters: r.plan.Masters, Clients: r.plan.Clients, DurationMS: r.lasted.Milliseconds(), Started: r.started,
		Observed: r.injector.Observed, Unavailable: r.injector.Unavailable, UnexpectedErrors: r.unexpected,
		Errors: r.errors, Notes: r.notes, Plan: r.plan, OwnOracles: make(map[string]string),
		GoroutinesLeft: r.leftovers.Goroutines(), Crowded: r.leftovers.Crowded(),
		History: r.recorder.Events(), Samples: r.watch.samples,
		Watched: r.watch.keys, Votes: r.votes.perMaster(), VoteBucket: r.votes.bucket, Ballots: r.votes.ballots,
	}
	if r.cfg.Neighbours {
		rep.Neighbours = new(oracle.Quiet)
	}
	facts := &verdict.Facts{
		Report: rep, Profile: r.profile, Limits: r.limits(), EndedAt: r.recorder.Now(),
		SetsOf: r.setsOf, Away: r.reach.Away, Unused: r.reach.Unused(), Failures: r.injector.Failures,
		Can: r.injector.Can, Stuck: r.stuck, Unseen: r.unseen,
		Found: r.leftovers.Judge(r.recorder.Now(), len(r.profile.KeyNames()), r.acquisitions()),
		Own: func(v *history.View) (found []oracle.Violation) {
			for i := range r.cfg.Oracles {
				found = append(found, r.cfg.Oracles[i].judge(v)...)
			}
			return found
		},
	}
	for _, o := range r.cfg.Oracles {
		rep.OwnOracles[o.Name] = o.Text
		if o.Always {
			facts.Always = append(facts.Always, o.Name)
		}
	}
	verdict.Judge(facts)
	r.addNotes(rep)
	return rep
}

func (r *run) acquisitions() int {
	n := 0
	for _, e := range r.recorder.Events() {
		if e.Type == history.AcquireReturn && e.Outcome == history.Acquired {
			n++
		}
	}
	return n
}

// addNotes tells of the run what nothing is judged by.
func (r *run) addNotes(rep *Report) {
	if rep.Neighbours != nil {
		rep.Notes = append(rep.Notes, r.aboutNeighbours(*rep.Neighbours))
	}
	if n, longest, whose := r.machine.Stalled(); n > 0 {
		all := time.Duration(r.recorder.Now()).Milliseconds()
		rep.Notes = append(rep.Notes,
			fmt.Sprintf("the machine stood still %d times, for %.0f ms of %d in all, once for %v (%s); these times "+
				"do not count", n, rep.StalledMS, all, longest.Round(time.Millisecond), whose))
	}
	rep.Notes = append(rep.Notes, r.leftovers.Notes()...)
	if n := r.network.Replaced(); n > 0 {
		rep.Notes = append(rep.Notes, fmt.Sprintf("%d proxies did not answer and were replaced", n))
	}
}
