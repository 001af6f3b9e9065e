package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// Crowd is many goroutines of a client that all go through the same session. Its load may harm the
// client's other locks.
type Crowd struct {
	// N is the number of goroutines. They begin one after the other, Gap apart. All that still wait
	// at the end stop waiting at once.
	N   int           `json:"n"`
	Gap time.Duration `json:"gap,omitempty" shrink:"-"`
	// Apart gives each goroutine a key that no other wants.
	Apart bool `json:"apart,omitempty" shrink:"-"`
	// Times is how often each goes through it; 0: once.
	Times   int `json:"times,omitempty"`
	Session     // of the first; a reentrant hold's Job, and Keys that are Apart, count on from its
}

// sessions returns the sessions of the i-th goroutine of the crowd.
func (c *Crowd) sessions(i int) []Session {
	s := c.Session
	s.Idle += time.Duration(i) * c.Gap
	if s.Wait > 0 {
		s.Wait = max(time.Millisecond, s.Wait-time.Duration(i)*c.Gap)
	}
	if s.Job += i; c.Apart {
		s.Keys = []int{s.Keys[0] + i}
	}
	all := slices.Repeat([]Session{s}, max(1, c.Times))
	for n := range all[1:] {
		all[n+1].Idle = c.Gap
	}
	return all
}

// The keys of a schedule with victims: each of these has its own.
const (
	quietHolds = 3
	quietFree  = 2
	quietKeys  = quietHolds + quietFree
)

// neighbouring draws the victims, the crowds, and the state of the network or of the masters. All
// waiters wait for one key: with several keys, one event could wake several waiters at one instant.
func (a *generator) neighbouring(s *Schedule) {
	const apart = 30 * time.Millisecond // a Locker that has had no reply yet sends one batch at a time
	span := 3 * time.Second
	if a.one(8, "long") { // as the longest of the holds takes
		span = 11 * time.Second
	}
	c := Client{PPM: a.rate("client ppm", a.clientPPM)}
	for i, ttl := range [quietHolds]time.Duration{300 * time.Millisecond, time.Second, 10 * time.Second} {
		c.Tasks = append(c.Tasks, []Session{{
			Idle: time.Duration(i)*apart + a.upTo("idle", apart/2), Keys: []int{i}, TTL: ttl, Renew: true, Hold: span,
			Quiet: true,
		}})
	}
	for i := range quietFree {
		task := []Session{{
			Idle: quietHolds * apart, Keys: []int{quietHolds + i}, TTL: time.Second, Hold: time.Millisecond,
			Quiet: true,
		}}
		for at := time.Duration(0); at < span; at += 75 * time.Millisecond {
			task = append(task, Session{
				Idle: 50*time.Millisecond + a.upTo("idle", 50*time.Millisecond), Keys: []int{quietHolds + i},
				Hold: time.Millisecond, Quiet: true,
				TTL: pick(a, "free ttl", []time.Duration{300 * time.Millisecond, time.Second, 10 * time.Second}),
			})
		}
		c.Tasks = append(c.Tasks, task)
	}
	held := Session{Keys: []int{quietKeys}, TTL: 5 * time.Second, Renew: true, Hold: span + time.Second}
	s.Net = Net{MinDelay: 20*time.Microsecond + a.upTo("min delay", 300*time.Microsecond)}
	s.Net.MaxDelay = s.Net.MinDelay + a.upTo("delay spread", 200*time.Microsecond)
	switch a.number("world", 0, 2) {
	case 0: // the round trip is longer than the crowd's timeout, and half of the victims'
		for _, task := range c.Tasks {
			for i := range task {
				task[i].TTL = max(task[i].TTL, 600*time.Millisecond)
			}
		}
		s.Net.MinDelay += 5 * time.Millisecond
		s.Net.MaxDelay = s.Net.MinDelay + a.upTo("delay spread", 700*time.Microsecond)
		c.Crowds = append(c.Crowds, Crowd{
			N: a.number("short", 3, 30), Gap: 2*time.Millisecond + a.upTo("gap", 10*time.Millisecond), Apart: true,
			Times: 60, Session: Session{Idle: 4 * apart, Keys: []int{quietKeys + 2}, TTL: 200 * time.Millisecond},
		})
	case 1: // each command takes a master its time
		s.Net.Service = 200*time.Microsecond + a.upTo("service", 300*time.Microsecond)
		c.Crowds = append(c.Crowds, a.crowd(20, 250, quietKeys))
		if a.one(2, "several") {
			c.Crowds[0].Keys, c.Crowds[0].Kind = []int{quietKeys, quietKeys + 1}, history.Plain
		} else {
			c.Crowds[0].Kind = history.Reentrant
		}
	default: // a blip loses packets, which are sent again
		s.Faults = append(s.Faults, Fault{
			Kind: Blip, Client: All, Master: All, At: span/8 + a.upTo("at", span/2), For: 5 * time.Millisecond,
			Amount: 250*time.Millisecond + a.upTo("amount", 450*time.Millisecond),
		})
		busy := Crowd{N: a.number("busy", 1, 4), Gap: time.Millisecond, Apart: true, Times: 300, Session: Session{
			Keys: []int{quietKeys + 2}, TTL: 30 * time.Second, Hold: time.Millisecond,
		}}
		c.Crowds = append(c.Crowds, busy)
	}
	for range a.number("more crowds", 0, 2) {
		c.Crowds = append(c.Crowds, a.crowd(1, 10, quietKeys))
	}
	other := Client{PPM: a.rate("client ppm", a.clientPPM), Tasks: [][]Session{{held}}}
	if a.one(3, "readers") { // they take turns, so that one always has the key
		held.Kind, held.Renew = history.Shared, false
		held.TTL, held.Hold, held.Wait = time.Second, 400*time.Millisecond, span
		other.Tasks = nil
		other.Crowds = []Crowd{{N: 2, Gap: 200 * time.Millisecond, Times: 8, Session: held}}
	}
	s.Clients = append(s.Clients, c, other)
}

// crowd draws a crowd that waits for a key that another client holds.
func (a *generator) crowd(least, most, key int) Crowd {
	c := Crowd{N: a.number("crowd", least, most), Gap: a.upTo("gap", 2*time.Millisecond), Session: Session{
		Idle: 120 * time.Millisecond, Keys: []int{key},
		TTL:  pick(a, "crowd ttl", []time.Duration{500 * time.Millisecond, 2 * time.Second, 30 * time.Second}),
		Hold: time.Millisecond, Wait: time.Second + a.upTo("crowd wait", time.Second),
	}}
	c.Kind = pick(a, "crowd kind",
		[]history.Kind{history.Plain, history.Fenced, history.Exclusive, history.Shared, history.Reentrant})
	if a.one(3, "seldom") {
		c.Every = time.Second + a.upTo("every", 9*time.Second)
	}
	return c
}

// victimBound is how long an acquisition of a free key may take: some round trips, the commands of others, and a slow
// master's answer.
func (s *Schedule) victimBound() time.Duration {
	bound := 50*time.Millisecond + 10*s.Net.MaxDelay + 100*s.Net.Service
	if slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Kind == Slow }) {
		bound += s.minTimeout()
	}
	return bound
}

// victims asks the oracle, if there are any in the schedule. A release that a blip has lost keeps its
// key until the janitor repeats it.
func (w *world) victims(v *history.View) []oracle.Violation {
	bound := w.plan.victimBound()
	q, found := oracle.Victims(v, bound, sweepInterval+bound, 0)
	w.counts.QuietHolds += q.Holds
	w.counts.QuietFree += q.Free
	for i := range w.plan.Clients {
		for _, c := range w.plan.Clients[i].Crowds {
			w.counts.Crowded += c.N
		}
	}
	return found
}

// unjudged returns an error if the oracle could not judge the victims of a run. Such a run shows nothing.
func unjudged(all []oracle.Violation) error {
	for _, v := range all {
		if v.Unknown {
			return fmt.Errorf("sim: %v", v)
		}
	}
	return nil
}
