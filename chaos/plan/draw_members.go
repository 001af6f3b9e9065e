package plan

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/network"
)

const (
	// fewestToExchange is how many masters a scenario with exchanges has at least: three, and two that are not among
	// them.
	fewestToExchange = 5
	// perExchange is about how long one exchange takes, if there is time for more than one.
	perExchange = 4 * time.Second
	// settle is the time between two faults, so that all masters renew their holds. Without it, a minority that missed
	// a hold could be followed by another minority, and both together are a majority.
	settle = 900 * ms
)

// exchange draws exchanges of masters one after another, in equal parts of the plan's time. Of each, clients get the
// old and the new masters one after another, and the new ones alone one after another. A run may take longer: no client
// gets the new ones alone before the last hold from the old ones alone has ended. Of every other exchange a master that
// leaves may be dead.
func exchange(r *rand.Rand, p *Plan) {
	n := max(1, int(time.Duration(p.Duration)/perExchange))
	part := (time.Duration(p.Duration) * 9 / 10 / time.Duration(n)).Truncate(ms)
	old := some(r, p.Masters, 3)
	p.Members = old
	for i := range n {
		at := time.Duration(i) * part
		next := nextSet(r, p.Masters, old, i == 0)
		p.roll(r, at+part/10, at+part*4/10, [][]int{old, next})
		p.roll(r, at+part*5/10, at+part*9/10, [][]int{next})
		leaving := slices.DeleteFunc(slices.Clone(old), func(m int) bool { return slices.Contains(next, m) })
		if len(leaving) > 0 && part > 2*time.Second && i%2 == 0 && r.IntN(2) == 0 {
			p.Steps = append(p.Steps,
				Step{At: Duration(at), For: Duration(part - settle), Fault: "kill", Masters: leaving[:1]})
		}
		old = next
	}
}

// roll gives clients other masters, in any order, somewhere between two times.
func (p *Plan) roll(r *rand.Rand, from, to time.Duration, sets [][]int) {
	length := between(r, (to-from)/3, to-from)
	for n, c := range r.Perm(p.Clients) {
		at := from + length*time.Duration(n)/time.Duration(p.Clients)
		p.Steps = append(p.Steps, Step{At: Duration(at.Round(ms)), Fault: Reconfigure, Clients: []int{c}, Sets: sets})
	}
}

// nextSet draws the next set of masters: masters join or leave, or some are replaced, from one up to the number of
// masters outside the set. If far, it replaces as many as it can. Then it soon shows if clients of both sets run at the
// same time: if only one master joins or leaves, any majorities of both sets may share a master.
func nextSet(r *rand.Rand, masters int, old []int, far bool) []int {
	var others []int
	for m := range masters {
		if !slices.Contains(old, m) {
			others = append(others, m)
		}
	}
	most := min(len(others), len(old))
	type change struct{ leave, join int }
	kinds := []change{{most, most}, {0, 2}, {1, 1}, {0, 1}, {1, 0}, {2, 0}}
	if far {
		kinds = kinds[:1]
	}
	can := slices.DeleteFunc(kinds, func(c change) bool {
		return c == change{} || c.join > len(others) || len(old)-c.leave+c.join < 3
	})
	c := can[r.IntN(len(can))]
	r.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	next := some(r, len(old), len(old)-c.leave)
	for i := range next {
		next[i] = old[next[i]]
	}
	next = append(next, others[:c.join]...)
	slices.Sort(next)
	return next
}

// minorityOfEach chooses masters that are a minority of every set that clients ever have, together with other faulty
// masters then.
func minorityOfEach(r *rand.Rand, p *Plan, s *Step) {
	sets := p.FirstSets()
	var hit []int
	for i := range p.Steps {
		other := &p.Steps[i]
		sets = append(sets, other.Sets...)
		if other.Fault == "kill" && s.At < other.At+other.For+Duration(settle) &&
			other.At < s.At+s.For+Duration(settle) {
			hit = append(hit, other.Masters...)
		}
	}
	already, most := len(hit), len(hit)+1+r.IntN(2)
	for _, m := range r.Perm(p.Masters) {
		if len(hit) < most && !slices.Contains(hit, m) && isMinority(append(slices.Clip(hit), m), sets) {
			hit = append(hit, m)
		}
	}
	if s.Masters = hit[already:]; len(s.Masters) == 0 {
		s.Masters = hit // it is dead already, so nothing more comes of it
	}
	slices.Sort(s.Masters)
}

// isMinority reports whether each set still has a majority without these masters.
func isMinority(hit []int, sets [][]int) bool {
	return !slices.ContainsFunc(sets, func(set []int) bool {
		left := 0
		for _, m := range set {
			if !slices.Contains(hit, m) {
				left++
			}
		}
		return left < network.Quorum(len(set))
	})
}
