package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// This file is about the sets of masters that clients have, which steps of [Reconfigure] exchange:
// docs/operate/membership.md.

// FirstSets are the masters that clients begin with.
func (p *Plan) FirstSets() [][]int { return [][]int{OrAll(p.Members, p.Masters)} }

// Reconfigures tells whether clients are given other masters.
func (p *Plan) Reconfigures() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Fault == Reconfigure })
}

// Generation returns the number of the configuration that a step of [Reconfigure] gives to a
// client: a client begins with 1, and its first step gives it 2.
func (p *Plan) Generation(s Step, client int) int {
	n := 1
	for _, earlier := range p.reconfigurations(client) {
		if p.Steps[earlier].At <= s.At {
			n++
		}
	}
	return n
}

// Since is how much later than the first of its generation a step of [Reconfigure] is to come to a client.
func (p *Plan) Since(s Step, client int) time.Duration {
	first, generation := s.At, p.Generation(s, client)
	for c := range p.Clients {
		if all := p.reconfigurations(c); len(all) > generation-2 {
			first = min(first, p.Steps[all[generation-2]].At)
		}
	}
	return time.Duration(s.At - first)
}

// reconfigurations are the steps that give a client other masters, in the order of their times.
func (p *Plan) reconfigurations(client int) []int {
	var out []int
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Fault == Reconfigure && slices.Contains(OrAll(s.Clients, p.Clients), client) {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(i, j int) int { return cmp.Compare(p.Steps[i].At, p.Steps[j].At) })
	return out
}

// setsInWords names one set of masters, or two.
func setsInWords(sets [][]int) string {
	if len(sets) == 2 {
		return fmt.Sprintf("masters %v and %v jointly", sets[0], sets[1])
	}
	return fmt.Sprintf("masters %v", sets[0])
}

// checkMembers checks who has which masters, and in what order they get others.
func (p *Plan) checkMembers() error {
	if err := p.checkSet("$.members", p.Members); err != nil {
		return err
	}
	profile, err := p.Profile()
	if err != nil {
		return err
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		at := func(field string) string { return fmt.Sprintf("$.steps[%d].%s", i, field) }
		switch {
		case s.Fault != Reconfigure && len(s.Sets) > 0:
			return wrong(at("sets"), "only %s gives clients other masters, and this is %s", Reconfigure, s.Fault)
		case s.Fault != Reconfigure:
			continue
		case len(s.Masters) > 0:
			return wrong(at("masters"), "%s takes sets: [[0, 1, 2]], or the old and the new masters: [[0, 1, 2], [0, "+
				"1, 3]]", Reconfigure)
		case len(s.Sets) != 1 && len(s.Sets) != 2:
			return wrong(at("sets"), "%d sets of masters, want one, or two: the old and the new one", len(s.Sets))
		case profile.Children > 0:
			return wrong(at("fault"), "workload %s has clients that are processes, and those can't be given other "+
				"masters", profile.Name)
		}
		for n, set := range s.Sets {
			path := fmt.Sprintf("%s[%d]", at("sets"), n)
			if len(set) == 0 {
				return wrong(path, "a set without masters")
			}
			if err := p.checkSet(path, set); err != nil {
				return err
			}
		}
		if len(s.Sets) == 2 && sameSet(s.Sets[0], s.Sets[1]) {
			return wrong(at("sets"), "the old and the new masters are the same")
		}
	}
	return p.checkReconfigurations()
}

func (p *Plan) checkSet(path string, set []int) error {
	for n, m := range set {
		switch at := fmt.Sprintf("%s[%d]", path, n); {
		case m < 0 || m >= p.Masters:
			return wrong(at, "no master %d, there are %d", m, p.Masters)
		case slices.Contains(set[:n], m):
			return wrong(at, "master %d is there twice", m)
		}
	}
	return nil
}

// checkReconfigurations checks that no two clients are ever meant to be further apart than old masters and both, or
// both and the new ones. Outside the assumptions they may be.
func (p *Plan) checkReconfigurations() error {
	longest, all := 0, make([][]int, p.Clients)
	for c := range all {
		all[c] = p.reconfigurations(c)
		for n, i := range all[c] {
			s := &p.Steps[i]
			if n > 0 && p.Steps[all[c][n-1]].At == s.At {
				return wrong(fmt.Sprintf("$.steps[%d].at", i),
					"another step gives client %d other masters at the same time", c)
			}
			before := p.FirstSets()
			if n > 0 {
				before = p.Steps[all[c][n-1]].Sets
			}
			if p.Inside && !oneStep(before, s.Sets) {
				return wrong(fmt.Sprintf("$.steps[%d].sets", i),
					"client %d has %s and would have %s at once: a step with both sets comes between a set and the "+
						"next one, or say inside: false",
					c, setsInWords(before), setsInWords(s.Sets))
			}
		}
		if len(all[c]) > len(all[longest]) {
			longest = c
		}
	}
	if !p.Inside {
		return nil
	}
	for c := range all {
		if err := p.checkAbreast(c, all[c], longest, all[longest]); err != nil {
			return err
		}
	}
	return nil
}

// checkAbreast checks that client c gets the same sets as the client with the most steps, and gets
// each set before that client gets the next.
func (p *Plan) checkAbreast(c int, own []int, leader int, all []int) error {
	for n, i := range all {
		var next *Step
		if n+1 < len(all) {
			next = &p.Steps[all[n+1]]
		}
		switch {
		case n >= len(own) && next != nil:
			return wrong(fmt.Sprintf("$.steps[%d].sets", all[n+1]),
				"client %d would have %s while client %d has never got %s",
				leader, setsInWords(next.Sets), c, setsInWords(p.Steps[i].Sets))
		case n >= len(own):
			return nil
		}
		s := &p.Steps[own[n]]
		switch path := fmt.Sprintf("$.steps[%d].", own[n]); {
		case !sameSets(s.Sets, p.Steps[i].Sets):
			return wrong(path+"sets", "client %d would have %s, and client %d then has %s", c, setsInWords(s.Sets),
				leader, setsInWords(p.Steps[i].Sets))
		case next != nil && s.At > next.At:
			return wrong(path+"at", "client %d would have %s only after client %d has %s", c, setsInWords(s.Sets),
				leader, setsInWords(next.Sets))
		case n+1 < len(own) && p.Steps[own[n+1]].At < p.Steps[i].At:
			return wrong(fmt.Sprintf("$.steps[%d].at", own[n+1]), "client %d would have %s before client %d has %s",
				c, setsInWords(p.Steps[own[n+1]].Sets), leader, setsInWords(p.Steps[i].Sets))
		}
	}
	return nil
}

// oneStep reports that one argument is a single set and the other is the same set plus another.
func oneStep(a, b [][]int) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return len(a) == 1 && len(b) == 2 && (sameSet(a[0], b[0]) || sameSet(a[0], b[1]))
}

func sameSets(a, b [][]int) bool { return slices.EqualFunc(a, b, sameSet) }

// sameSet tells that both have the same masters, in whatever order.
func sameSet(a, b []int) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
