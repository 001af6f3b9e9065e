package audit

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// judgeSets says what is wrong with the masters together. It is pure.
func judgeSets(all []facts, sets []Set) []Finding {
	findings := judgeIdentity(all)
	for _, set := range sets {
		var members []facts
		for i := range all {
			if set.Members&(1<<i) != 0 {
				members = append(members, all[i])
			}
		}
		findings = append(findings, judgeNumber(members, set)...)
	}
	findings = append(findings, judgeGenerations(all)...)
	return append(findings, judgeClocks(all)...)
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

// judgeNumber looks at how many masters a set has, and where.
func judgeNumber(all []facts, set Set) []Finding {
	var findings []Finding
	note := func(what, why, fix string) {
		findings = append(findings, Finding{Severity: Note, What: what, Why: why, Fix: fix})
	}
	masters := "masters"
	if set.Name != "" {
		masters = set.Name + " masters"
	}
	n := len(all)
	switch {
	case n == 1:
		note("There is one "+strings.TrimSuffix(masters, "s")+".", "When it is down, no lock can be had; when it loses its data, all are lost.", "Use three or five.")
	case n%2 == 0:
		note(fmt.Sprintf("There are %d %s.", n, masters),
			fmt.Sprintf("They can do without %d, no more than %d could, and more of them have to agree.", n-set.Quorum, n-1),
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
		note("All "+masters+" are on "+first+".", "They fail together.", "Put each on a machine of its own.")
	}
	return findings
}

// judgeGenerations finds masters that know less of the configurations in use than others do. One that has just been added, or was away
// when a generation was announced, is behind for a while; one that is two behind has missed a whole exchange, and nobody with a
// generation has used it since.
func judgeGenerations(all []facts) []Finding {
	var greatest uint64
	for i := range all {
		greatest = max(greatest, all[i].Generation)
	}
	var findings []Finding
	for i := range all {
		f := &all[i]
		if f.foreign {
			findings = append(findings, Finding{
				Severity: Risk, Master: f.Name, What: "It has something else than a generation under " + single.GenerationKey + ".",
				Why: "It answers no process that has a generation about it; if a quorum does not, none of them gets a lock.",
				Fix: "Find out who writes there, and delete the key; processes that have a generation tell it theirs.",
			})
		}
		if f.Generation == greatest || !f.told {
			continue
		}
		finding := Finding{
			Severity: Note, Master: f.Name,
			What: fmt.Sprintf("It knows generation %d, and others know %d.", f.Generation, greatest),
			Why:  "A process with an old list of masters does not learn from it that it is out of date.",
			Fix: fmt.Sprintf("Processes that have a generation tell it theirs as they use it; redlock members -announce %d tells it this one. "+
				"If nobody has announced that, somebody else has written it: delete %s where it is.", greatest, single.GenerationKey),
		}
		switch {
		case f.Generation == 0:
			finding.What = fmt.Sprintf("It knows no generation, and others know %d.", greatest)
		case f.Generation+1 < greatest:
			finding.Severity = Risk
		}
		findings = append(findings, finding)
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
