package sim

import (
	"context"
	"reflect"
	"slices"

	"github.com/seed-624411e5/redlock/chaos/internal/smaller"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// Shrink looks for a smaller schedule that still breaks one of the promises judged by the named oracles, until no
// single simplification is left or ctx is done. Everything it tries is run; the schedule it returns has failed.
func Shrink(ctx context.Context, s *Schedule, oracles []string) *Schedule {
	return smaller.Search(ctx, s, (*Schedule).simplifications, func(s *Schedule) bool {
		r, err := Run(s)
		return err == nil && slices.ContainsFunc(r.Violations, func(v oracle.Violation) bool {
			return slices.Contains(oracles, v.Oracle)
		})
	})
}

// simplifications lists changes of s that make it simpler, or leave it as it is, largest first.
func (s *Schedule) simplifications() []func() {
	clientOf := func(f *Fault) *int { return &f.Client }
	all := smaller.EachWithout(nil, &s.Faults)
	for c := range s.Clients {
		for t := range s.Clients[c].Tasks {
			all = smaller.EachWithout(all, &s.Clients[c].Tasks[t])
		}
	}
	for c := range s.Clients {
		all = append(all, func() { smaller.WithoutClient(&s.Clients, &s.Faults, c, clientOf) })
		all = smaller.EachWithout(all, &s.Clients[c].Crowds)
		for i := range s.Clients[c].Crowds {
			crowd := &s.Clients[c].Crowds[i]
			all = append(all, func() { crowd.N = max(1, crowd.N/2) })
		}
	}
	for m := range s.Masters {
		all = append(all, func() { s.dropMaster(m) })
	}
	net := &s.Net
	all = append(all,
		func() { s.Net = Net{MinDelay: net.MinDelay, MaxDelay: net.MaxDelay} }, s.useOneKey,
		func() { net.MaxDelay = net.MinDelay }, func() { net.MaxDelay -= (net.MaxDelay - net.MinDelay) / 2 },
	)
	for c := range s.Clients {
		for _, task := range s.Clients[c].Tasks {
			for i := range task {
				all = smaller.EachWithout(all, &task[i].Extends)
			}
		}
	}
	for _, part := range []any{net, &s.Clients, &s.Masters, &s.Faults} {
		all = smaller.Fields(all, reflect.ValueOf(part).Elem())
	}
	return all
}

// useOneKey keeps only the first of several keys. Quiet locks keep theirs, because no other session may use those keys.
func (s *Schedule) useOneKey() {
	quiet := func(x Session) bool { return x.Quiet }
	for _, c := range s.Clients {
		if slices.ContainsFunc(c.Tasks, func(task []Session) bool { return slices.ContainsFunc(task, quiet) }) {
			return
		}
	}
	for _, c := range s.Clients {
		for _, task := range c.Tasks {
			for i := range task {
				task[i].Keys = []int{0}
			}
		}
	}
}
