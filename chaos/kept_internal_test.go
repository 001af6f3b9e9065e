package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

func TestALostHoldIsExcusedIfTooFewMastersWithItAreInReach(t *testing.T) {
	const second = int64(time.Second)
	v := history.NewView([]history.Event{
		{At: 0, Type: history.AcquireCall, Attempt: 1, Key: "k", TTL: 10 * second, Renew: true},
		{At: 1, Type: history.AcquireReturn, Attempt: 1, Outcome: history.Acquired, Owner: "me", Until: 10 * second},
		{At: 10 * second, Type: history.DoneClosed, Attempt: 1},
	})
	all := []int{0, 1, 2, 3, 4}
	for name, tt := range map[string]struct {
		key  string
		have []int         // masters that are seen with the key
		away map[int]int64 // masters, and the second when they become unreachable
		late int           // a master that has the key from the sixth second on
		want bool
	}{
		"all have it, two are away":                {"k", all, map[int]int64{0: 1, 1: 1}, -1, false},
		"all have it, three are away":              {"k", all, map[int]int64{0: 1, 1: 1, 2: 1}, -1, true},
		"three have it":                            {"k", all[:3], nil, -1, false},
		"three have it, one of these is away":      {"k", all[:3], map[int]int64{0: 1}, -1, true},
		"three have it, one of the others is away": {"k", all[:3], map[int]int64{4: 1}, -1, false},
		"one of three was away for a moment":       {"k", all[:3], map[int]int64{0: 9}, -1, false},
		"one of three has it late":                 {"k", all[:2], nil, 2, true},
		"nobody looks at its key":                  {"another", nil, nil, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			now := int64(0)
			r := &run{
				injector: &injector{},
				plan:     &plan.Plan{Masters: len(all), Clients: 1},
				reach:    newReach(history.NewRecorder(func() int64 { return now }), 1, len(all)),
			}
			for m, from := range tt.away {
				now = from * second
				r.reach.add(harm{masters: []int{m}, leaves: masters.NoService}, 1)
			}
			r.watch = &watch{keys: []string{tt.key}}
			for at := range int64(10) {
				for _, m := range all {
					s := report.Sample{
						At: at*second + 1, Until: at*second + 2, Master: m, Up: true, Owners: []string{""},
					}
					for _, has := range tt.have {
						if has == m || m == tt.late && at >= 6 {
							s.Owners[0] = "me"
						}
					}
					r.watch.samples = append(r.watch.samples, s)
				}
			}
			found := oracle.Kept(v)
			if len(found) != 1 {
				t.Fatalf("the oracle has found %v", found)
			}
			again := oracle.Kept(history.NewView(append(slices.Clone(v.Events), r.excuses(v)...)))
			if excused := len(again) == 0; excused != tt.want {
				t.Errorf("excused: %t", excused)
			}
		})
	}
}

// Two of five masters are out of reach at the acquisition, and two others later: the two that come back lack the key.
func TestAHoldDoesNotHaveMastersThatItsAcquisitionCouldNotReach(t *testing.T) {
	const second = int64(time.Second)
	for name, tt := range map[string]struct {
		later []int // masters that are away from the second second on
		lost  int64
		want  bool
	}{
		"two others":                 {[]int{2, 3}, 10 * second, true},
		"the same two":               {[]int{0, 1}, 10 * second, false},
		"two others, two ttls later": {nil, 30 * second, false},
		"none":                       {nil, 10 * second, false},
	} {
		t.Run(name, func(t *testing.T) {
			now := int64(0)
			r := &run{plan: &plan.Plan{Masters: 5, Clients: 1}, watch: &watch{}}
			r.reach = newReach(history.NewRecorder(func() int64 { return now }), 1, 5)
			first := harm{masters: []int{0, 1}, leaves: masters.NoService}
			r.reach.add(first, 1)
			now = second
			r.reach.add(first, -1)
			now = 2 * second
			r.reach.add(harm{masters: tt.later, leaves: masters.NoService}, 1)
			a := history.Attempt{
				Call: 0, Return: 1, TTL: 10 * second, Key: "k", Done: tt.lost, Stopped: history.Never,
				ReleaseCall: history.Never,
			}
			if got := r.lostByRight(&a); got != tt.want {
				t.Errorf("lost by right: %t", got)
			}
		})
	}
}

// Holders that write late lose updates of a resource that checks no tokens, under any lock.
func TestLostUpdatesOfLateWritersAreNoDefect(t *testing.T) {
	write := func(id uint64, key string, read, value int64) []history.Event {
		return []history.Event{
			{At: 10 * value, Type: history.AcquireCall, Attempt: id, Key: "k", TTL: 1e9},
			{At: 10*value + 1, Type: history.RegisterRead, Attempt: id, Key: key, Value: read},
			{
				At: 10*value + 2, Type: history.RegisterWrite, Attempt: id, Key: key, Value: value,
				Outcome: history.Acquired,
			},
		}
	}
	for name, tt := range map[string]struct {
		late bool
		key  string
		want report.Verdict
	}{
		"late":                  {true, "r/unchecked", report.Unknown},
		"in time":               {false, "r/unchecked", report.Violation},
		"late, tokens to check": {true, "r/checked", report.Violation},
	} {
		t.Run(name, func(t *testing.T) {
			v := history.NewView(slices.Concat(write(1, tt.key, 0, 1), write(2, tt.key, 0, 2)))
			r := &run{injector: &injector{}, plan: &plan.Plan{}, profile: workload.Profile{Late: tt.late}}
			j, err := Check(append(v.Events, r.excuses(v)...), Limits{}, true)
			if err != nil || j.Verdict != tt.want {
				t.Errorf("%+v, %v", j, err)
			}
		})
	}
}
