package sim

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// Shrink looks for a smaller schedule that still breaks one of the promises judged by the named oracles, until no
// single simplification is left or ctx is done. Everything it tries is run; the schedule it returns has failed.
func Shrink(ctx context.Context, s *Schedule, oracles []string) *Schedule {
	best := s.clone()
	for again := true; again && ctx.Err() == nil; {
		again = false
		for _, simpler := range simplifications(best) {
			if ctx.Err() != nil {
				break
			}
			for candidate := best.clone(); simpler(candidate); candidate = best.clone() {
				if !fails(candidate, oracles) {
					break
				}
				best, again = candidate, true
				if ctx.Err() != nil {
					break
				}
			}
		}
	}
	return best
}

// fails runs a schedule and reports whether one of the oracles finds something.
func fails(s *Schedule, oracles []string) bool {
	r, err := Run(s)
	return err == nil && slices.ContainsFunc(r.Violations, func(v oracle.Violation) bool {
		return slices.Contains(oracles, v.Oracle)
	})
}

// clone copies a schedule, by way of its encoding: it is data.
func (s *Schedule) clone() *Schedule {
	encoded, err := json.Marshal(s)
	if err != nil {
		return s // nothing in a Schedule can fail to be encoded
	}
	c := new(Schedule)
	if err := json.Unmarshal(encoded, c); err != nil {
		return s
	}
	return c
}

// simplification changes a schedule to a simpler one, and reports false when there is nothing left for it to do.
type simplification func(*Schedule) bool

// simplifications lists the possible simplifications, largest first.
func simplifications(s *Schedule) []simplification {
	var out []simplification
	for i := range s.Faults {
		out = append(out, func(s *Schedule) bool { return drop(&s.Faults, i) })
	}
	for c := range s.Clients {
		for t := range s.Clients[c].Tasks {
			for i := range s.Clients[c].Tasks[t] {
				out = append(out, func(s *Schedule) bool {
					return c < len(s.Clients) && t < len(s.Clients[c].Tasks) && drop(&s.Clients[c].Tasks[t], i)
				})
			}
		}
	}
	for c := range s.Clients {
		out = append(out, withoutClient(c))
		for i := range s.Clients[c].Crowds {
			out = append(out, func(s *Schedule) bool { return c < len(s.Clients) && drop(&s.Clients[c].Crowds, i) },
				smallerCrowd(c, i))
		}
	}
	out = append(out, fewerMasters, calmNet, oneKey)
	for m := range s.Masters {
		out = append(out, withoutMaster(m))
	}
	out = append(out, netParts()...)
	for c := range s.Clients {
		out = append(out, func(s *Schedule) bool { return c < len(s.Clients) && zero(&s.Clients[c].PPM) },
			func(s *Schedule) bool { return c < len(s.Clients) && zero(&s.Clients[c].Wall) },
			func(s *Schedule) bool { return c < len(s.Clients) && zero(&s.Clients[c].Timeout) })
		for t := range s.Clients[c].Tasks {
			for i := range s.Clients[c].Tasks[t] {
				out = append(out, sessionParts(c, t, i)...)
			}
		}
	}
	for m := range s.Masters {
		out = append(out, func(s *Schedule) bool { return m < len(s.Masters) && zero(&s.Masters[m].PPM) },
			func(s *Schedule) bool { return m < len(s.Masters) && zero(&s.Masters[m].Offset) })
	}
	for i := range s.Faults {
		out = append(out, faultParts(i)...)
	}
	return out
}

// drop removes element i. The next element takes its index, so repeated calls remove a run of
// elements.
func drop[V any](from *[]V, i int) bool {
	if i >= len(*from) {
		return false
	}
	*from = slices.Delete(*from, i, i+1)
	return true
}

func zero[V comparable](v *V) bool {
	var none V
	changed := *v != none
	*v = none
	return changed
}

// rounder makes a duration simpler: whole milliseconds first, then half of it.
func rounder(d *time.Duration) bool {
	for _, unit := range []time.Duration{
		100 * time.Millisecond, 10 * time.Millisecond, time.Millisecond, 100 * time.Microsecond,
	} {
		if r := d.Truncate(unit); r > 0 && r != *d {
			*d = r
			return true
		}
	}
	return false
}

func fewerMasters(s *Schedule) bool {
	n := len(s.Masters)
	if n <= 3 || s.Exchange != nil {
		return false
	}
	s.setMasters(n - 1)
	return true
}

// withoutMaster takes a master out of an exchange.
func withoutMaster(m int) simplification {
	return func(s *Schedule) bool { return s.Exchange != nil && m < len(s.Masters) && s.dropMaster(m) }
}

// withoutClient takes a client out, with its own faults.
func withoutClient(c int) simplification {
	return func(s *Schedule) bool {
		if len(s.Clients) < 2 || !drop(&s.Clients, c) {
			return false
		}
		s.Faults = slices.DeleteFunc(s.Faults, func(f Fault) bool { return f.Client == c })
		for i := range s.Faults {
			if f := &s.Faults[i]; f.Client > c {
				f.Client--
			}
		}
		return true
	}
}

func calmNet(s *Schedule) bool {
	calm := Net{MinDelay: s.Net.MinDelay, MaxDelay: s.Net.MaxDelay}
	changed := s.Net != calm
	s.Net = calm
	return changed
}

// smallerCrowd halves a crowd.
func smallerCrowd(c, i int) simplification {
	return func(s *Schedule) bool {
		if c >= len(s.Clients) || i >= len(s.Clients[c].Crowds) || s.Clients[c].Crowds[i].N < 2 {
			return false
		}
		s.Clients[c].Crowds[i].N /= 2
		return true
	}
}

// oneKey keeps only the first of several keys. Quiet locks keep theirs, because no other session
// may use those keys.
func oneKey(s *Schedule) bool {
	changed := false
	for c := range s.Clients {
		for _, task := range s.Clients[c].Tasks {
			for i := range task {
				if task[i].Quiet {
					return false
				}
				changed = changed || len(task[i].Keys) > 1 || task[i].Keys[0] != 0
				task[i].Keys = []int{0}
			}
		}
	}
	return changed
}

func netParts() []simplification {
	return []simplification{
		func(s *Schedule) bool { return zero(&s.Net.Spike) },
		func(s *Schedule) bool { return zero(&s.Net.LoseRequest) },
		func(s *Schedule) bool { return zero(&s.Net.LoseReply) },
		func(s *Schedule) bool { return zero(&s.Net.Reset) },
		func(s *Schedule) bool { return zero(&s.Net.Repeat) },
		func(s *Schedule) bool { return zero(&s.Net.Stray) },
		func(s *Schedule) bool { return zero(&s.Net.Stagger) },
		func(s *Schedule) bool { return zero(&s.Net.Service) },
		func(s *Schedule) bool {
			changed := s.Net.MaxDelay != s.Net.MinDelay
			s.Net.MaxDelay = s.Net.MinDelay
			return changed
		},
		func(s *Schedule) bool {
			s.Net.MaxDelay = s.Net.MinDelay + (s.Net.MaxDelay-s.Net.MinDelay)/2
			return s.Net.MaxDelay > s.Net.MinDelay
		},
	}
}

// sessionParts simplify one session.
func sessionParts(c, t, i int) []simplification {
	on := func(change func(*Session) bool) simplification {
		return func(s *Schedule) bool {
			return c < len(s.Clients) && t < len(s.Clients[c].Tasks) && i < len(s.Clients[c].Tasks[t]) &&
				change(&s.Clients[c].Tasks[t][i])
		}
	}
	return []simplification{
		on(func(x *Session) bool { return drop(&x.Extends, 0) }),
		on(func(x *Session) bool { return drop(&x.Extends, 1) }),
		on(func(x *Session) bool { return !x.Leave && zero(&x.Renew) }),
		on(func(x *Session) bool { return zero(&x.Wait) }),
		on(func(x *Session) bool { return zero(&x.Idle) }),
		on(func(x *Session) bool { return zero(&x.Leave) }),
		on(func(x *Session) bool { return zero(&x.Second) }),
		on(func(x *Session) bool { return x.Kind != history.Fenced && zero(&x.Kind) }),
		on(func(x *Session) bool { return zero(&x.Grace) }),
		on(func(x *Session) bool { return rounder(&x.Idle) }),
		on(func(x *Session) bool { return rounder(&x.Hold) }),
		on(func(x *Session) bool { return rounder(&x.Wait) }),
		on(func(x *Session) bool { return rounder(&x.TTL) }),
	}
}

// faultParts simplify one fault.
func faultParts(i int) []simplification {
	on := func(change func(*Fault) bool) simplification {
		return func(s *Schedule) bool { return i < len(s.Faults) && change(&s.Faults[i]) }
	}
	return []simplification{
		on(func(f *Fault) bool { return zero(&f.Second) }),
		on(func(f *Fault) bool { return zero(&f.Loading) }),
		on(func(f *Fault) bool { return rounder(&f.At) }),
		on(func(f *Fault) bool { return rounder(&f.For) }),
		on(func(f *Fault) bool { return rounder(&f.Amount) }),
	}
}
