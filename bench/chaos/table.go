package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/seed-624411e5/redlock/bench/internal/cli"
	"github.com/seed-624411e5/redlock/bench/internal/report"
	"github.com/seed-624411e5/redlock/chaos/plan"
)

// missing marks a figure without a measurement, so that it never looks like a zero.
const missing = "–"

// write prints a scenario: its faults, their targets, and a line for each subject.
func (s section) write(w io.Writer) error {
	where := "inside what a lock assumes: nothing may be found"
	if !s.scenario.Inside {
		where = "outside what a lock assumes: overlaps are allowed"
	}
	fmt.Fprintf(w, "\n%s: %s\n  %s; %s\n", s.scenario.Name, s.scenario.Text, where, s.faults())
	for _, line := range s.unavailable() {
		fmt.Fprintf(w, "  not done here: %s\n", line)
	}
	if slices.ContainsFunc(s.results, func(r result) bool { return r.Subject == "naive" }) {
		fmt.Fprintf(w, "  naive is SET NX PX on master 0 alone%s\n", s.reachFirst())
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	titles := []string{"subject", "acquired", "overlaps", "orphans"}
	if s.hasRegister() {
		titles = append(titles, "lost updates")
	}
	titles = append(titles, "errors", "longest outage", "standstill", "availability", "p50", "p99", "  found")
	fmt.Fprintln(t, strings.Join(titles, "\t"))
	for _, subject := range s.subjects {
		if r, found := s.merged(subject.Name()); found {
			fmt.Fprintln(t, strings.Join(s.cells(r, len(titles)), "\t"))
		}
	}
	err := t.Flush()
	for _, line := range s.notes() {
		fmt.Fprintf(w, "  %s\n", line)
	}
	return err
}

// notes lists the runs' notes about themselves, each with its subjects. One note is that the machine stood still during
// the run.
func (s section) notes() []string {
	var order []string
	who := make(map[string][]string)
	for _, r := range s.results {
		for _, note := range r.Notes {
			if strings.HasPrefix(note, "fault ") {
				continue // said above the table
			}
			if who[note] == nil {
				order = append(order, note)
			}
			if !slices.Contains(who[note], r.Subject) {
				who[note] = append(who[note], r.Subject)
			}
		}
	}
	for i, note := range order {
		order[i] = strings.Join(who[note], ", ") + ": " + note
	}
	return order
}

// hasRegister reports whether holders write a register that ignores tokens, so that updates can be lost.
func (s section) hasRegister() bool {
	profile, err := s.plans[0].Profile()
	return err == nil && profile.Register
}

func (s section) cells(r result, n int) []string {
	if r.Refused != "" {
		cells := slices.Repeat([]string{missing}, n)
		cells[0], cells[n-1] = r.Subject, "  "+r.Refused
		return cells
	}
	cells := []string{r.Subject, fmt.Sprint(r.Acquisitions), fmt.Sprint(r.Overlaps), fmt.Sprint(r.Orphans)}
	if s.hasRegister() {
		cells = append(cells, fmt.Sprint(r.LostUpdates))
	}
	availability := missing
	if n := r.Service.Acquired + r.Service.Failed; n > 0 {
		availability = fmt.Sprintf("%.4g %%", 100*float64(r.Service.Acquired)/float64(n))
	}
	return append(cells, fmt.Sprint(r.UnexpectedErrors), millis(r.OutageMSMax), millis(r.StandstillMSMax), availability,
		millis(r.P50MS), millis(r.P99MS), "  "+found(r))
}

// millis writes a time; for no time it writes missing.
func millis(ms float64) string {
	if ms == 0 {
		return missing
	}
	return report.Duration(1000 * ms)
}

// found lists the oracles' violations; those that the scenario allows are in brackets. If the run shows nothing, it
// returns the reason.
func found(r result) string {
	var out []string
	if len(r.Broken) == 0 {
		out = append(out, r.Reasons...)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Broken)) {
		out = append(out, fmt.Sprintf("%d %s", r.Broken[name], name))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Allowed)) {
		out = append(out, fmt.Sprintf("(%d %s)", r.Allowed[name], name))
	}
	return cmp.Or(strings.Join(out, ", "), "nothing")
}

// faults sums up the plans: their seeds, and the number of faults of each kind.
func (s section) faults() string {
	counts := make(map[string]int)
	var seeds []string
	for _, p := range s.plans {
		seeds = append(seeds, fmt.Sprint(p.Seed))
		for _, step := range p.Steps {
			counts[step.Fault]++
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%d %s", counts[name], name))
	}
	return fmt.Sprintf("seed %s: %s", strings.Join(seeds, ", "), cmp.Or(strings.Join(out, ", "), "no faults"))
}

// reachFirst says how many of the faults can hit the first master, or a client's connection to it.
func (s section) reachFirst() string {
	reach, all := 0, 0
	for _, p := range s.plans {
		for _, step := range p.Steps {
			all++
			f, err := plan.FindFault(step.Fault)
			if err == nil && f.Where != plan.OnClient && (len(step.Masters) == 0 || slices.Contains(step.Masters, 0)) {
				reach++
			}
		}
	}
	if all == 0 {
		return ""
	}
	return fmt.Sprintf(", which %d of these %d faults can reach", reach, all)
}

// writeJSON does nothing without a path.
func writeJSON(path string, facts []string, sections []section) error {
	all := struct {
		Machine []string `json:"machine"`
		Results []result `json:"results"`
	}{Machine: facts, Results: []result{}}
	for _, s := range sections {
		all.Results = append(all.Results, s.results...)
	}
	return cli.WriteJSON(path, all)
}
