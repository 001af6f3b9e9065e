package chaos_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/internal/patient"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// membership is a run with exchanges of masters. Its holds are to be renewed, so their ttl is short.
func membership(subject workload.Subject) chaos.Config {
	return chaos.Config{
		Backend: "process", Subject: subject, Scenario: "membership", Seed: 2, TTL: 3 * time.Second,
		Duration: 8 * time.Second,
	}
}

func TestMastersAreExchangedWhileLocksAreHeldAndWanted(t *testing.T) {
	rep := run(t, membership(chaos.Redlock()), acquired(20))
	mustPass(t, rep)
	if rep.Acquisitions < 20 || rep.Overlaps+rep.Orphans+rep.TokenViolations+rep.UnexpectedErrors != 0 ||
		rep.Availability != 1 {
		t.Error(summary(rep))
	}
	// A run on a busy machine lasts longer, and has more exchanges.
	if n, exchange := rep.Faults[plan.Reconfigure], 2*rep.Clients; n < 2*exchange || n%exchange != 0 {
		t.Errorf("%d clients were given other masters %d times, want two exchanges of two steps", rep.Clients, n)
	}
	for _, v := range rep.Votes { // two joined in the first exchange
		if v.Granted == 0 {
			t.Errorf("master %d has granted nothing", v.Master)
		}
	}
	begins := rep.Plan.FirstSets()[0]
	for _, b := range rep.Ballots[:min(20, len(rep.Ballots))] {
		if !slices.Contains(begins, b.Master) {
			t.Errorf("the first votes are of master %d, and clients begin with %v", b.Master, begins)
		}
	}
}

// TestClientsThatGoFromOldToNewMastersAtOnceAreCaught is the control: the same run with clients that leave out the step
// with both.
func TestClientsThatGoFromOldToNewMastersAtOnceAreCaught(t *testing.T) {
	hasty, err := chaos.FindSubject("redlock:no-joint-step")
	must(t, err)
	catch(t, membership(hasty), patient.By(oracle.NameOverlap))
}

// TestAnUnsafePlanUsesOldAndNewMastersAtOnce: the change does not wait for clients with the old masters.
func TestAnUnsafePlanUsesOldAndNewMastersAtOnce(t *testing.T) {
	p := &plan.Plan{
		Scenario: "at-once", Text: "Half of the clients have other masters.", Workload: "hot-key", Clients: 4,
		Members: []int{0, 1, 2}, Hold: plan.Duration(20 * time.Millisecond), Duration: plan.Duration(3 * time.Second),
		Steps: []plan.Step{
			{At: plan.Duration(500 * time.Millisecond), Fault: plan.Reconfigure, Clients: []int{0, 1}, Sets: [][]int{
				{3, 4},
			}},
		},
	}
	show(t, chaos.Config{Plan: p}, func(rep *chaos.Report) bool { return rep.Overlaps > 0 && len(rep.Allowed) > 0 })
}

// TestARunUsesOnlyTheMembersOfItsPlan: clients use only these masters, and only these count for a majority. While two
// others are down, nearly all the time, attempts are judged.
func TestARunUsesOnlyTheMembersOfItsPlan(t *testing.T) {
	p := &plan.Plan{
		Scenario: "three-of-five", Inside: true, Workload: "hot-key", Members: []int{4, 0, 2},
		Duration: plan.Duration(2 * time.Second),
		Steps: []plan.Step{
			{
				At: plan.Duration(20 * time.Millisecond), For: plan.Duration(1900 * time.Millisecond), Fault: "down",
				Masters: []int{1, 3},
			},
		},
	}
	rep := run(t, chaos.Config{Plan: p}) // of which at least a tenth was judged
	mustPass(t, rep)
	for _, v := range rep.Votes {
		if asked := v.Granted > 0; asked != slices.Contains(p.Members, v.Master) {
			t.Errorf("votes %+v, and the masters are %v", v, p.Members)
		}
	}
	if 10*rep.Service.Attempts < rep.Service.Total {
		t.Errorf("%+v: no client had lost a majority", rep.Service)
	}
	if !strings.Contains(rep.Plan.Steps[0].String(), "masters [1 3]") {
		t.Errorf("%v", rep.Plan.Steps)
	}
}

func TestAReportSaysThatOtherMastersThanAskedForWereUsed(t *testing.T) {
	t.Parallel()
	for asked, want := range map[int]bool{0: false, 3: false, 7: true} {
		t.Run(strconv.Itoa(asked), func(t *testing.T) {
			rep := run(t, chaos.Config{
				Backend: "embedded", Masters: asked,
				Plan: &plan.Plan{
					Scenario: "ours", Inside: true, Masters: 3, Clients: 1,
					Duration: plan.Duration(200 * time.Millisecond),
				},
			})
			said := slices.Contains(rep.Notes, "there are 3 masters, by the plan, and 7 were asked for")
			if said != want {
				t.Errorf("asked for %d: the notes are %q", asked, rep.Notes)
			}
		})
	}
}
