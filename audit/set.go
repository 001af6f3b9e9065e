package audit

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// judgeSet says what is wrong with the masters together. It is pure.
func judgeSet(all []facts, quorum int) []Finding {
	return slices.Concat(judgeIdentity(all), judgeNumber(all, quorum), judgeClocks(all))
}

// judgeIdentity finds servers that are listed more than once.
func judgeIdentity(all []facts) []Finding {
	var findings []Finding
	byRun := make(map[string][]string)
	for i := range all {
		if id := all[i].RunID; id != "" {
			byRun[id] = append(byRun[id], all[i].Name)
		}
	}
	for i := range all {
		names := byRun[all[i].RunID]
		if len(names) < 2 || names[0] != all[i].Name {
			continue
		}
		findings = append(findings, Finding{
			Severity: Unsafe, Master: strings.Join(names, ", "),
			What: "They are one server (run_id " + all[i].RunID + ").",
			Why:  "It votes as often as it is listed, so that a quorum is no majority of servers.", Fix: "List each server once.",
		})
	}
	return findings
}

// judgeNumber looks at how many masters there are, and where.
func judgeNumber(all []facts, quorum int) []Finding {
	var findings []Finding
	note := func(what, why, fix string) {
		findings = append(findings, Finding{Severity: Note, What: what, Why: why, Fix: fix})
	}
	n := len(all)
	switch {
	case n == 1:
		note("There is one master.", "When it is down, no lock can be had; when it loses its data, all are lost.", "Use three or five.")
	case n%2 == 0:
		note(fmt.Sprintf("There are %d masters.", n),
			fmt.Sprintf("They can do without %d, no more than %d could, and more of them have to agree.", n-quorum, n-1),
			"Use an odd number.")
	}
	host := func(name string) string {
		h, _, err := net.SplitHostPort(name)
		if err != nil {
			return name
		}
		return h
	}
	first := host(all[0].Name)
	if n > 1 && !slices.ContainsFunc(all, func(f facts) bool { return host(f.Name) != first }) {
		note("All masters are on "+first+".", "They fail together.", "Put each on a machine of its own.")
	}
	return findings
}

// judgeClocks finds wall clocks that are off: a master's against the majority, or ours.
func judgeClocks(all []facts) []Finding {
	var offsets []time.Duration
	for i := range all {
		if all[i].Latency > 0 {
			offsets = append(offsets, all[i].ClockOffset)
		}
	}
	if len(offsets) == 0 {
		return nil
	}
	var middle time.Duration // of few masters none is more right than this machine
	if len(offsets) > 2 {
		slices.SortFunc(offsets, cmp.Compare[time.Duration])
		middle = offsets[len(offsets)/2]
	}
	var findings []Finding
	if middle.Abs() > maxOffset {
		findings = append(findings, Finding{
			Severity: Note, What: fmt.Sprintf("This machine's clock is %v off from that of most masters.", middle.Abs().Round(time.Millisecond)),
			Why: "Fencing tokens start from it when a master has lost its counters.", Fix: "Run a time service.",
		})
	}
	for i := range all {
		f := &all[i]
		if off := f.ClockOffset - middle; f.Latency > 0 && off.Abs() > maxOffset+f.Latency {
			findings = append(findings, Finding{
				Severity: Risk, Master: f.Name,
				What: fmt.Sprintf("Its clock is off by %v.", off.Round(time.Millisecond)),
				Why:  "Whoever sets it forward expires its locks too early; whoever sets it back keeps them for too long.",
				Fix:  "Set it while no locks are held, then run a time service that slews.",
			})
		}
	}
	return findings
}
