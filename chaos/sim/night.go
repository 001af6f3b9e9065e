package sim

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// nightReport is the output of -night: which profile ran which seeds, the counts of each, and how
// often each interleaving of docs/evidence/interleavings.md happened.
type nightReport struct {
	Verdict   string    `json:"verdict"`
	FirstSeed uint64    `json:"first_seed"` // of each profile
	Schedules int       `json:"schedules"`
	Events    int       `json:"events"`
	Seconds   float64   `json:"seconds"`
	Profiles  []*report `json:"profiles"`

	Rows map[string]int `json:"rows"` // how often the interleavings of the page happened
}

// share is a profile's share of a night, according to the cost of one schedule.
func (p *Profile) share() int {
	switch {
	case !p.Promised:
		return 0
	case p.long || p.crowds:
		return 1
	case p.lagging:
		return 4
	case p.exchanges:
		return 8
	default:
		return 16
	}
}

// nights returns the batches of one night: n schedules in all, from every profile that the library promises to survive.
func nights(o *options) (batches []*Batch) {
	all, left := 0, o.schedules
	for _, p := range Profiles() {
		all += p.share()
	}
	for _, p := range Profiles() {
		if n := max(1, o.schedules*p.share()/all); p.share() > 0 && left > 0 {
			n = min(n, left)
			left -= n
			batches = append(batches, &Batch{Profile: p, First: o.seed, N: n, Workers: o.workers, StopAfter: 1})
		}
	}
	batches[0].N += left // what rounding has left
	return batches
}

// night runs every profile that the library promises to survive. It fails if an oracle finds a
// violation, or if an interleaving never happened.
func night(ctx context.Context, o *options, stdout, stderr io.Writer) int {
	n := &nightReport{Verdict: "pass", FirstSeed: o.seed}
	status := exitPass
	var all Counts
	for _, b := range nights(o) {
		of := *o
		of.profile, of.report = b.Profile.Name, ""
		out, r := of.run(ctx, b, stderr)
		fmt.Fprintf(stdout, "%s: %d schedules from seed %d: %.0f a second, %.0f events each\n", b.Profile.Name,
			out.Done, b.First, r.Rate, float64(out.Steps)/float64(max(1, out.Done)))
		if len(out.Failures) > 0 {
			r.Verdict = "violation"
			status = max(status, explain(ctx, &of, b, &out.Failures[0], r, stdout))
			n.Verdict = r.Verdict
		}
		all.Add(out.Counts)
		n.Profiles = append(n.Profiles, r)
		n.Schedules, n.Events, n.Seconds = n.Schedules+out.Done, n.Events+out.Steps, n.Seconds+r.Seconds
	}
	fmt.Fprint(stdout, all.table())
	if ctx.Err() != nil && status == exitPass {
		n.Verdict, status = "interrupted", exitUnknown
	}
	n.Rows = all.rows()
	if unseen := all.Unseen(); len(unseen) > 0 {
		fmt.Fprintf(stdout, "never seen: %s\n", strings.Join(unseen, ", "))
		if status == exitPass {
			n.Verdict, status = "unseen", exitUnknown
		}
	}
	fmt.Fprintf(stdout, "%d schedules, verdict: %s\n", n.Schedules, n.Verdict)
	status = o.save(n, status, stderr)
	if o.same == "" {
		return status
	}
	same, err := compareNights(o.same, o.report, stdout)
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "redlock-chaos sim: %v\n", err)
		return max(status, exitUnknown)
	case !same:
		return max(status, exitViolation)
	}
	return status
}
