package chaos_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/plan"
)

// TestMastersThatRefuseConnectionsHarmNothingIfAMinority has expired certificates and names that do not resolve. On a
// minority of masters every attempt succeeds. On a majority no client gets a lock, and none is held twice; later
// attempts are judged again. All clients dial all the time, hence few clients.
func TestMastersThatRefuseConnectionsHarmNothingIfAMinority(t *testing.T) {
	besides(t)
	for name, tt := range map[string]struct {
		fault   string
		masters []int
		lost    bool
	}{
		"certificates of a minority": {"expired-certificate", []int{0, 3}, false},
		"certificates of a majority": {"expired-certificate", []int{0, 1, 3}, true},
		"names of a minority":        {plan.NoName, []int{0, 3}, false},
		"names of a majority":        {plan.NoName, []int{0, 1, 3}, true},
	} {
		t.Run(name, func(t *testing.T) {
			const from, to = 1500 * time.Millisecond, 4500 * time.Millisecond
			rep := runDear(t, chaos.Config{Backend: "process", Plan: &plan.Plan{
				Scenario: "out", Inside: true, Clients: 3, TLS: tt.fault != plan.NoName,
				Duration: plan.Duration(7 * time.Second),
				Steps: []plan.Step{
					{At: plan.Duration(from), For: plan.Duration(to - from), Fault: tt.fault, Masters: tt.masters},
				},
			}}, func(rep *chaos.Report) bool {
				within, after, _ := acquiredAroundFault(rep)
				return after > 0 && (within > 0 || tt.lost)
			})
			mustPass(t, rep)
			within, after, lost := acquiredAroundFault(rep)
			if lost != tt.lost || (within == 0) != tt.lost || after == 0 || rep.Availability != 1 {
				t.Errorf("a majority was lost: %v; %d acquired during the fault, %d afterwards; availability %g", lost,
					within, after, rep.Availability)
			}
		})
	}
}

// acquiredAroundFault counts the locks that were acquired during the fault and after it, and tells whether a majority
// was lost.
func acquiredAroundFault(rep *chaos.Report) (within, after int, lost bool) {
	const slack = int64(500 * time.Millisecond) // requests in flight are answered by then
	v := history.NewView(rep.History)
	var on, off int64
	for _, e := range v.Events {
		switch e.Type {
		case history.FaultOn:
			on = e.At + slack
		case history.FaultOff:
			off = e.At
		case history.MajorityLost:
			lost = true
		}
	}
	for a := range v.Holds() {
		switch {
		case a.Call > on && a.Return < off-slack:
			within++
		case a.Call > off:
			after++
		}
	}
	return within, after, lost
}
