package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/plan"
)

const exchange = `name: one-moves
inside: true
workload: hot-key
masters: 5
clients: 2
duration: 12s
members: [0, 1, 2]
steps:
  - at: 1s
    fault: reconfigure
    clients: [1]
    sets: [[0, 1, 2], [0, 1, 3]]
  - {at: 2s, fault: reconfigure, clients: [0], sets: [[0, 1, 2], [0, 1, 3]]}
  - {at: 3s, fault: reconfigure, sets: [[3, 1, 0]]}
`

func TestAPlanGivesClientsOtherMasters(t *testing.T) {
	p, err := plan.Parse([]byte(exchange))
	must(t, err)
	if !p.Reconfigures() || fmt.Sprint(p.FirstSets()) != "[[0 1 2]]" {
		t.Errorf("begins with %v", p.FirstSets())
	}
	for i, want := range []struct{ client, generation, since int }{{1, 2, 0}, {0, 2, 1}, {0, 3, 0}} {
		s := p.Steps[i]
		if g, since := p.Generation(s, want.client), p.Since(s, want.client); g != want.generation ||
			since != time.Duration(want.since)*time.Second {
			t.Errorf("%v gives generation %d to client %d, %v after the first", s, g, want.client, since)
		}
	}
	if s := p.Steps[0].String(); !strings.Contains(s, "masters [0 1 2] and [0 1 3] jointly") {
		t.Errorf("%q", s)
	}
	for _, back := range []string{"sets: [[2, 1, 0]]", "sets: [[0, 1, 2]]"} { // to the old masters again
		if _, err := plan.Parse([]byte(strings.Replace(exchange, "sets: [[3, 1, 0]]", back, 1))); err != nil {
			t.Error(err)
		}
	}
}

func TestBadSetsOfMastersAreErrorsThatSayWhat(t *testing.T) {
	first, last := "    sets: [[0, 1, 2], [0, 1, 3]]", "sets: [[3, 1, 0]]"
	refused(t, exchange, map[string]mistake{
		"no such master at the beginning": {
			"members: [0, 1, 2]", "members: [0, 1, 5]", "line 7", "no master 5, there are 5",
		},
		"twice at the beginning": {
			"members: [0, 1, 2]", "members: [0, 1, 0]", "line 7", "master 0 is there twice",
		},
		"no such master": {first, "    sets: [[0, 1, 2], [0, 1, 7]]", "line 12", "no master 7"},
		"a negative one": {first, "    sets: [[0, 1, 2], [-1]]", "line 12", "no master -1"},
		"twice":          {first, "    sets: [[0, 1, 2], [3, 3]]", "line 12", "master 3 is there twice"},
		"an empty set":   {first, "    sets: [[0, 1, 2], []]", "line 12", "without masters"},
		"no sets":        {first, "", "line", "0 sets of masters"},
		"three sets":     {first, "    sets: [[0], [1], [2]]", "line 12", "3 sets of masters"},
		"one set that is not in a list": {
			first, "    sets: [0, 1, 3]", "line 12: sets: want a list of lists of masters: [[0, 1, 2]], or", `(at "0")`,
		},
		"a master's name": {
			first, "    sets: [[0, 1, b]]", "line 12: sets: want a list of lists", `(at "b")`,
		},
		"no list at all": {last, "sets: 3", "line 14: sets: want a list of lists", `(at "3")`},
		"one master at the beginning": {
			"members: [0, 1, 2]", "members: 0", "line 7: members: want a list of masters: [0, 1, 2]", `(at "0")`,
		},
		"the same set": {first, "    sets: [[0, 1, 2], [2, 1, 0]]", "line 12", "the same"},
		"masters instead": {
			"    clients: [1]", "    clients: [1]\n    masters: [2]", "line 12", "takes sets",
		},
		"of another fault":           {"    fault: reconfigure", "    fault: down", "line 12", "only reconfigure"},
		"clients that are processes": {"workload: hot-key", "workload: children", "line 10", "processes"},
		"old to new at once": {
			first, "    sets: [[0, 1, 3]]", "line 12", "client 1 has masters [0 1 2] and would have masters [0 1 3] " +
				"at once",
		},
		"joint with other masters":     {first, "    sets: [[1, 2, 4], [0, 1, 3]]", "line 12", "at once"},
		"new ones that were not joint": {last, "sets: [[0, 1, 4]]", "line 14", "at once"},
		"two exchanges at a time":      {last, "sets: [[0, 1, 3], [2, 3, 4]]", "line 14", "at once"},
		"different ones": {
			"at: 2s, fault: reconfigure, clients: [0], sets: [[0, 1, 2], [0, 1, 3]]", "at: 2s, fault: reconfigure, " +
				"clients: [0], sets: [[0, 1, 2], [3]]", "line 14", "at once",
		},
		"a client that is forgotten": {
			"  - {at: 2s, fault: reconfigure, clients: [0], sets: [[0, 1, 2], [0, 1, 3]]}\n  - {at: 3s, ",
			"  - {at: 3s, clients: [1], ", "line 13", "client 0 has never got masters [0 1 2] and [0 1 3] jointly",
		},
		"a client that is late": {
			"{at: 3s, fault: reconfigure, ", "{at: 1500ms, clients: [1], fault: reconfigure, ", "line",
			"client 0 would have masters [0 1 2] and [0 1 3] jointly only after client 1 has masters [3 1 0]",
		},
		"two at the same time": {"at: 3s", "at: 2s", "line 14", "at the same time"},
	})
}

func TestOutsideTheAssumptionsMastersMayBeExchangedAtOnce(t *testing.T) {
	src := strings.Replace(exchange, "    sets: [[0, 1, 2], [0, 1, 3]]", "    sets: [[3, 4]]", 1)
	if _, err := plan.Parse([]byte(strings.Replace(src, "inside: true", "inside: false", 1))); err != nil {
		t.Error(err)
	}
	if _, err := plan.Parse([]byte(src)); err == nil {
		t.Error("inside they may not")
	}
}

// TestDrawnExchangesLeaveEachSetItsMajority draws plans with many seeds and lengths. Each plan has
// an exchange. The first exchange goes to masters that have little in common with the old ones. No
// fault takes a majority from any set, even together with a master that is down all the time.
func TestDrawnExchangesLeaveEachSetItsMajority(t *testing.T) {
	sc, err := plan.FindScenario("membership")
	must(t, err)
	dead, sizes := 0, make(map[int]bool)
	for seed := range uint64(300) {
		for _, size := range []plan.Size{
			{Duration: time.Second}, {Duration: 12 * time.Second}, {Masters: 7, Duration: 30 * time.Second},
		} {
			p := draw(t, sc, seed, size)
			sets, far := p.FirstSets(), []int(nil)
			for _, s := range p.Steps {
				if sets = append(sets, s.Sets...); len(s.Sets) == 1 && far == nil {
					far = s.Sets[0]
				}
			}
			if len(without(far, p.Members)) != min(3, p.Masters-3) {
				t.Fatalf("seed %d: %v take the place of %v", seed, far, p.Members)
			}
			for _, set := range sets {
				sizes[len(set)] = true
			}
			for i, s := range p.Steps {
				hit := slices.Clone(s.Masters)
				for j, other := range p.Steps {
					if j != i && other.Fault == "kill" && other.At <= s.At+s.For && s.At <= other.At+other.For {
						hit = append(hit, other.Masters...)
						dead++
					}
				}
				for _, set := range sets {
					if left := without(set, hit); len(hit) > 0 && s.Fault != "ring" && 2*len(left) <= len(set) {
						t.Fatalf("seed %d: %v, and of %v only %v are left", seed, s, set, left)
					}
				}
			}
		}
	}
	if dead == 0 || !sizes[3] || !sizes[4] || !sizes[5] {
		t.Errorf("%d faults while a master was down all along, sets of %v", dead, sizes)
	}
}

// without returns the elements of a that are not in b.
func without(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(n int) bool { return slices.Contains(b, n) })
}
