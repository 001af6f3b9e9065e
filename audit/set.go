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

// judgeSets returns the findings about the masters as a whole. It is pure.
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
			Why:  "It votes once for each entry in the list, so a quorum is no majority of servers.",
			Fix:  "List each server once.",
		})
	}
	return findings
}

// judgeNumber checks how many masters a set has, and on which hosts.
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
		note("There is one "+strings.TrimSuffix(masters, "s")+".",
			"While it is down, no lock can be acquired; if it loses its data, all locks are lost.",
			"Use three or five.")
	case n%2 == 0:
		note(fmt.Sprintf("There are %d %s.", n, masters),
			fmt.Sprintf("Locks survive the loss of %d, as they would with %d masters, but more must agree.",
				n-set.Quorum, n-1),
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
		note("All "+masters+" are on "+first+".", "They fail together.", "Put each on a separate machine.")
	}
	return findings
}

// judgeGenerations finds masters that know an older generation than other masters do. A master is one generation behind
// for a while after it was added, or if it was away when a generation was announced. A master that is two behind has
// missed a whole exchange, and no client with a generation has used it since.
func judgeGenerations(all []facts) []Finding {
	greatest := greatestGeneration(all)
	var findings []Finding
	for i := range all {
		f := &all[i]
		if f.foreign {
			findings = append(findings, Finding{
				Severity: Risk, Master: f.Name, What: "It has something else than a generation under " +
					single.GenerationKey + ".",
				Why: "Processes with a generation get no answer about it; if that is so on a quorum, they get no lock.",
				Fix: "Find out which program writes there, and delete the key; processes with a generation write it " +
					"again.",
			})
		}
		if f.Generation == greatest || !f.told {
			continue
		}
		finding := Finding{
			Severity: Note, Master: f.Name,
			What: fmt.Sprintf("It knows generation %d, and others know %d.", f.Generation, greatest),
			Why:  "A process with an old list of masters does not learn from it that it is out of date.",
			Fix: fmt.Sprintf("Processes with a generation write it when they use the master; redlock members "+
				"-announce %d writes this one. "+
				"If no process of yours has this number, another program has written it: delete %s on the masters "+
				"that have it.",
				greatest, single.GenerationKey),
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

func greatestGeneration(all []facts) (greatest uint64) {
	for i := range all {
		greatest = max(greatest, all[i].Generation)
	}
	return greatest
}

// judgeOwn compares the generation of this configuration with what masters know. One behind is usual while masters are
// exchanged.
func judgeOwn(all []facts, own uint64) []Finding {
	greatest := greatestGeneration(all)
	if own == 0 || greatest <= own {
		return nil
	}
	finding := Finding{
		Severity: Note, What: fmt.Sprintf("This configuration has generation %d, and masters know %d.", own, greatest),
		Why: "The next exchange of masters would stop every process with this configuration.",
		Fix: fmt.Sprintf("Use the list of masters of generation %d, with that number.", greatest),
	}
	if greatest > own+1 {
		finding.Severity = Risk
		finding.Why = "A process that is two or more generations behind takes no lock, and loses those that it holds."
	}
	return []Finding{finding}
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
	var middle time.Duration // with one or two masters, none is more right than this machine
	if len(offsets) > 2 {
		slices.SortFunc(offsets, cmp.Compare[time.Duration])
		middle = offsets[len(offsets)/2]
	}
	var findings []Finding
	if middle.Abs() > maxOffset {
		findings = append(findings, Finding{
			Severity: Note, What: fmt.Sprintf("This machine's clock is %v off from most masters' clocks.",
				middle.Abs().Round(time.Millisecond)),
			Why: "Fencing tokens start from it when a master has lost its counters.", Fix: "Run a time service.",
		})
	}
	for i := range all {
		f := &all[i]
		if off := f.ClockOffset - middle; f.Latency > 0 && off.Abs() > maxOffset+f.Latency {
			findings = append(findings, Finding{
				Severity: Risk, Master: f.Name,
				What: fmt.Sprintf("Its clock is off by %v.", off.Round(time.Millisecond)),
				Why:  "If it is set forward, its locks expire too early; if it is set back, they last too long.",
				Fix:  "Set it while no locks are held, then run a time service that slews the clock.",
			})
		}
	}
	return findings
}
