package plan

import (
	"math/rand/v2"
	"slices"
	"time"
)

// apart is how long after a fault of a master or client is over another one may come onto it: healing takes a moment.
const apart = Duration(500 * time.Millisecond)

// Conflicts lists the pairs of steps on the same master, or on the same client, that overlap or follow each other too
// closely. The later step may not take effect, or may end before it should; a client that has been killed can't take
// any order. Drawn plans have none. Faults of the network may overlap as they like.
func (p *Plan) Conflicts() (out [][2]Step) {
	for j := range p.Steps {
		for i := range j {
			if p.collide(&p.Steps[i], &p.Steps[j]) {
				out = append(out, [2]Step{p.Steps[i], p.Steps[j]})
			}
		}
	}
	return out
}

func (p *Plan) collide(a, b *Step) bool {
	if a.At >= b.At+b.For+apart || b.At >= a.At+a.For+apart {
		return false
	}
	f, err := p.FindFault(a.Fault)
	if err != nil {
		return false
	}
	g, err := p.FindFault(b.Fault)
	if err != nil || f.Where != g.Where {
		return false
	}
	switch f.Where {
	case OnMaster:
		return meet(f.Hit(*a, p.Masters), g.Hit(*b, p.Masters))
	case OnClient:
		if (a.Fault == Reconfigure) != (b.Fault == Reconfigure) {
			return false // a client gets other masters whatever else is done to it
		}
		// Which of the clients that are processes is hit is drawn when it happens.
		return a.Fault != b.Fault || meet(OrAll(a.Clients, p.Clients), OrAll(b.Clients, p.Clients))
	default:
		return false
	}
}

func meet(a, b []int) bool {
	return slices.ContainsFunc(a, func(n int) bool { return slices.Contains(b, n) })
}

// fit makes a step from a template without a conflict with existing steps: on another target, or,
// if all targets are taken, later. It fails if there is no time left before end.
func (p *Plan) fit(r *rand.Rand, d template, at, length, end time.Duration) (Step, bool) {
	for ; at+length < end; at += 50 * ms {
		for range 4 {
			s := Step{At: Duration(at), For: Duration(length), Fault: d.fault}
			d.fill(r, p, &s)
			if !slices.ContainsFunc(p.Steps, func(other Step) bool { return p.collide(&other, &s) }) {
				return s, true
			}
		}
	}
	return Step{}, false
}
