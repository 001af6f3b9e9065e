package sim

import (
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// exchanges are the usual ones, by how many masters the old set has, the new one, and both.
var exchanges = []struct{ old, new, both int }{{3, 3, 2}, {5, 5, 4}, {3, 5, 3}, {5, 3, 3}, {3, 3, 0}, {5, 5, 0}}

// exchange draws the two sets. The masters of the old one come first.
func (a *generator) exchange() *Exchange {
	x := pick(a, "exchange", exchanges)
	if a.one(3, "any exchange") {
		x.old, x.new = a.number("old", 1, 5), a.number("new", 1, 5)
		if x.both = a.number("both", 0, min(x.old, x.new)); x.both == max(x.old, x.new) {
			x.both-- // or the sets would be the same
		}
	}
	e := &Exchange{Together: a.together, Forgotten: a.forgotten}
	for i := range x.old {
		e.Old = append(e.Old, i)
	}
	for i := range x.new {
		e.New = append(e.New, x.old-x.both+i)
	}
	return e
}

// masters is how many there are.
func (x *Exchange) masters() int { return max(len(x.Old), x.New[len(x.New)-1]+1) }

// exchanging draws the clients of an exchange: one or two of each kind.
func (a *generator) exchanging(s *Schedule, keys int) {
	a.hurried = a.hurried || a.family == history.Fenced && a.one(2, "hurried")
	for _, sets := range [...]Sets{OldSet, BothSets, NewSet} {
		for range 1 + a.number("another", 0, 2)/2 {
			c := a.client(keys)
			c.Sets = sets
			if a.forgotten { // one answer about the generation would wake all tasks that wait for it at one instant
				c.Tasks = c.Tasks[:1]
			}
			for i := range c.Tasks {
				if sets == OldSet && a.forgotten {
					c.Tasks[i] = append(c.Tasks[i], a.lasting(keys)...)
				}
				if sets == BothSets { // it works in both parts
					if a.forgotten {
						c.Tasks[i] = append(c.Tasks[i],
							Session{Idle: a.upTo("before it announces", a.ttl), Keys: []int{0}, Announce: true})
					}
					later := a.sessions(keys)
					later[0].Second = true
					c.Tasks[i] = append(c.Tasks[i], later...)
				}
				if sets == NewSet && a.one(2, "at once") { // when holds of old clients end
					c.Tasks[i][0].Idle /= 16
				}
			}
			c.queueUp()
			s.Clients = append(s.Clients, c)
		}
	}
}

// keepTold makes a master that has accepted a generation keep it, as the library assumes. It also
// moves faults into the wait between the two parts.
func (a *generator) keepTold(f *Fault) {
	if f.Kind == Forget {
		f.Kind = Crash
	}
	if f.Step == 0 && !f.Second && a.one(2, "while it is waited") {
		f.At = a.upTo("at", stopsAfter+2*a.ttl)
	}
}

// lasting draws the sessions of a forgotten client until after the moment when it is believed to have stopped.
func (a *generator) lasting(keys int) []Session {
	sessions := make([]Session, a.number("more sessions", 2, 5))
	for i := range sessions {
		s := a.session(keys)
		s.Idle = a.upTo("idle for long", stopsAfter/2)
		if s.Renew && a.one(3, "holds for long") {
			s.Hold, s.TTL = a.upTo("for long", stopsAfter), max(s.TTL, 400*time.Millisecond)
		}
		sessions[i] = s
	}
	return sessions
}

// comings draws special cases of exchanges: a master that is down all the time leaves; a master that is empty and
// guarded joins; a client with both sets can't reach any leaving master, or any joining one.
func (a *generator) comings(s *Schedule) {
	// the first and the last
	leave, join := [2]int{0, s.Exchange.New[0] - 1}, [2]int{len(s.Exchange.Old), len(s.Masters) - 1}
	if leave[0] <= leave[1] && a.one(4, "one is dead") {
		s.Faults = append(s.Faults,
			Fault{Kind: Crash, For: 12 * a.ttl, Client: All, Master: a.number("dead", leave[0], leave[1])})
	}
	if join[0] <= join[1] && a.one(4, "one is guarded") {
		s.Faults = append(s.Faults,
			Fault{Kind: Forget, For: time.Microsecond, Client: All, Master: a.number("empty", join[0], join[1])})
	}
	for _, masters := range [...][2]int{leave, join} {
		if !a.one(4, "out of reach") {
			continue
		}
		cut := Fault{
			Kind: pick(a, "cut", []FaultKind{CutRequests, CutReplies}), At: a.upTo("at", a.span), For: a.ttl/2 +
				a.upTo("for", 3*a.ttl),
			Second: a.one(2, "in the second part"),
		}
		for cut.Client = a.number("out of whose", 0, len(s.Clients)-1); s.Clients[cut.Client].Sets != BothSets; {
			cut.Client = (cut.Client + 1) % len(s.Clients)
		}
		for cut.Master = masters[0]; cut.Master <= masters[1]; cut.Master++ {
			s.Faults = append(s.Faults, cut)
		}
	}
}
