package virtual

import (
	"context"
	"reflect"
	"slices"

	"github.com/seed-624411e5/redlock/chaos/internal/smaller"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// tries is how often Shrink runs a schedule before it takes it for harmless.
const tries = 3

// Shrink looks for a smaller schedule that still breaks one of the promises judged by the named oracles, until no
// single simplification is left or ctx is done. Everything it tries is run; the schedule it returns has failed, or is
// s.
func Shrink(ctx context.Context, subject workload.Subject, s *Schedule, oracles []string) *Schedule {
	return smaller.Search(ctx, s, (*Schedule).simplifications, func(s *Schedule) bool {
		for range tries {
			if r, err := Run(subject, s); err == nil && r.breaks(oracles) {
				return true
			}
		}
		return false
	})
}

// breaks reports whether one of the named oracles has found something.
func (r *Result) breaks(oracles []string) bool {
	return slices.ContainsFunc(r.Oracles(), func(name string) bool { return slices.Contains(oracles, name) })
}

// Oracles returns the names of the oracles that have found violations.
func (r *Result) Oracles() []string { return oracle.NamesOf(r.Violations) }

// simplifications lists changes that make s simpler or leave it unchanged, largest first. Masters stay: a lock
// may be for a certain number.
func (s *Schedule) simplifications() []func() {
	clientOf := func(f *Fault) *int { return &f.Client }
	all := smaller.EachWithout(nil, &s.Faults)
	for c := range s.Clients {
		all = append(all, func() { smaller.WithoutClient(&s.Clients, &s.Faults, c, clientOf) })
		all = smaller.EachWithout(all, &s.Clients[c].Workers)
		for w := range s.Clients[c].Workers {
			all = smaller.EachWithout(all, &s.Clients[c].Workers[w])
		}
	}
	all = append(all, s.useOneKey, func() { s.MaxDelay = s.MinDelay })
	for i := range s.Faults {
		if len(s.Faults[i].Masters) > 1 {
			all = smaller.EachWithout(all, &s.Faults[i].Masters)
		}
	}
	for _, part := range []any{&s.Clients, &s.Masters, &s.Faults} {
		all = smaller.Fields(all, reflect.ValueOf(part).Elem())
	}
	return all
}

// useOneKey has all sessions use the first key.
func (s *Schedule) useOneKey() {
	for c := range s.Clients {
		for _, sessions := range s.Clients[c].Workers {
			for i := range sessions {
				sessions[i].Key = 0
			}
		}
	}
}
