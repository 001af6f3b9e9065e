package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/sim"
)

// tooEarly reports whether a client with the new set of masters asked for something while one with the old set held, or
// could still have got, something.
func tooEarly(t *testing.T, s *sim.Schedule) bool {
	t.Helper()
	r, err := sim.Run(s)
	must(t, err)
	begins, ends := history.Never, int64(0)
	died := make(map[int]int64)
	v := history.NewView(r.History)
	for i := range v.Events { // a client that dies says so by losing every majority
		if e := &v.Events[i]; e.Type == history.MajorityLost && e.Client >= 0 {
			died[e.Client] = e.At
		}
	}
	for i := range v.Attempts {
		a := &v.Attempts[i]
		switch s.Clients[a.Client].Sets {
		case sim.NewSet:
			begins = min(begins, a.Call)
		case sim.OldSet:
			switch at, dead := died[a.Client]; {
			case a.Granted():
				ends = max(ends, a.End())
			case a.Return == history.Never && dead:
				ends = max(ends, at)
			default:
				ends = max(ends, a.Return)
			}
		}
	}
	return begins < ends
}

// The profile keeps to the steps: old and new masters are never both in use. The same schedules without the wait
// between the parts, and without the parts, do not.
func TestOldAndNewMastersAreNeverBothInUse(t *testing.T) {
	early := make(map[string]int)
	const n = 100
	for seed := range uint64(n) {
		for name, change := range map[string]func(*sim.Schedule){
			"steps": func(*sim.Schedule) {}, "no wait": func(s *sim.Schedule) { s.Broken.NoWait = true },
			"no steps": func(s *sim.Schedule) { s.Exchange.Together = true },
		} {
			s := sim.Generate(profile("membership"), 1+seed)
			if change(s); tooEarly(t, s) {
				early[name]++
			}
		}
	}
	if early["steps"] > 0 || early["no wait"] < n/10 || early["no steps"] < n/2 {
		t.Errorf("of %d schedules new masters were in use too early in %v", n, early)
	}
}

// Sets are exchanged in every way, and faults fall into both parts.
func TestExchangesOfEveryKindAreDrawn(t *testing.T) {
	drawn := make(map[string]int)
	for seed := range uint64(600) {
		s := sim.Generate(profile("membership"), 1+seed)
		x := s.Exchange
		both := 0
		for _, m := range x.Old {
			if slices.Contains(x.New, m) {
				both++
			}
		}
		drawn[fmt.Sprintf("%d to %d, %d stay", len(x.Old), len(x.New), both)]++
		for _, f := range s.Faults {
			drawn[fmt.Sprintf("%s, second part: %v", f.Kind, f.Second)]++
		}
	}
	wanted := []string{
		"3 to 3, 2 stay", "5 to 5, 4 stay", "3 to 5, 3 stay", "5 to 3, 3 stay", "3 to 3, 0 stay", "5 to 5, 0 stay",
		"1 to 1, 0 stay",
	}
	for _, kind := range []sim.FaultKind{
		sim.Crash, sim.Forget, sim.CutRequests, sim.CutReplies, sim.Freeze, sim.Slow, sim.Pause, sim.Kill,
	} {
		wanted = append(wanted, string(kind)+", second part: false", string(kind)+", second part: true")
	}
	for _, name := range wanted {
		if drawn[name] == 0 {
			t.Errorf("none is drawn of %q: %v", name, drawn)
		}
	}
}

func TestAnExchangeThatMakesNoSenseIsRefused(t *testing.T) {
	session := [][]sim.Session{{{Keys: []int{0}, TTL: time.Second}}}
	for name, tt := range map[string]struct {
		exchange *sim.Exchange
		sets     sim.Sets
		want     string
	}{
		"sets without an exchange": {nil, sim.OldSet, `client 0 has the sets "old", and there is an exchange: false`},
		"no sets": {
			&sim.Exchange{Old: []int{0}, New: []int{1}}, "", `client 0 has the sets "", and there is an exchange: true`,
		},
		"unknown sets":   {&sim.Exchange{Old: []int{0}, New: []int{1}}, "older", `client 0 has the sets "older"`},
		"no old masters": {&sim.Exchange{New: []int{1}}, sim.BothSets, "a set of the masters []"},
		"a master too many": {
			&sim.Exchange{Old: []int{0}, New: []int{3}}, sim.BothSets, "a set of the masters [3] can't be had of 3",
		},
		"the same": {
			&sim.Exchange{Old: []int{0, 1}, New: []int{1, 0}}, sim.BothSets, "the old and the new masters are the same",
		},
	} {
		s := &sim.Schedule{
			Masters: make([]sim.MasterClock, 3), Exchange: tt.exchange,
			Clients: []sim.Client{{Sets: tt.sets, Tasks: session}},
		}
		if _, err := sim.Run(s); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want it to say %q", name, err, tt.want)
		}
	}
}

// A failure of an exchange shrinks to the two that meet, and to the masters that they need.
func TestAFailedExchangeShrinks(t *testing.T) {
	p := profile("old-and-new")
	f := (&sim.Batch{Profile: p, First: 1, N: most, StopAfter: 1, Oracles: []string{oracle.NameOverlap}}).Run(
		t.Context(),
	).Failures[0]
	small := sim.Shrink(t.Context(), sim.Generate(p, f.Seed), []string{oracle.NameOverlap})
	if len(small.Clients) != 2 || len(small.Masters) > 3 || sessions(small) > 3 || len(small.Faults) > 0 {
		t.Errorf("shrunk to %d clients, %d masters, %d sessions and %d faults", len(small.Clients), len(small.Masters),
			sessions(small), len(small.Faults))
	}
}

// An old client that dies has ended, at any of its steps, even if no other event is pending.
func TestTheDeathOfTheLastOldClientBeginsTheSecondPart(t *testing.T) {
	session := sim.Session{Keys: []int{0}, TTL: 100 * time.Millisecond, Hold: 10 * time.Millisecond, Renew: true}
	for step := range 30 {
		s := &sim.Schedule{
			Masters: make([]sim.MasterClock, 2), Exchange: &sim.Exchange{Old: []int{0}, New: []int{1}},
			Net: sim.Net{MinDelay: time.Millisecond, MaxDelay: time.Millisecond},
			Clients: []sim.Client{
				{Sets: sim.OldSet, Tasks: [][]sim.Session{{session}}},
				{Sets: sim.NewSet, Tasks: [][]sim.Session{{session}}},
			},
			Faults: []sim.Fault{{Kind: sim.Kill, Client: 0, Master: sim.All, Step: 1 + step}},
		}
		r, err := sim.Run(s)
		if err != nil {
			t.Fatalf("dead at step %d: %v", 1+step, err)
		}
		if len(r.Violations) > 0 || r.Counts.New < 2 { // the client's session, and the session at the run's end
			t.Errorf("dead at step %d: %v, and new masters were used %d times", 1+step, r.Violations, r.Counts.New)
		}
	}
}
