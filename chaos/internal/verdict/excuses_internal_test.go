package verdict

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

func TestALostHoldIsExcusedIfTooFewMastersWithItAreInReach(t *testing.T) {
	const second = int64(time.Second)
	events := []history.Event{
		{At: 0, Type: history.FaultOn, Name: "silence"},
		{At: 0, Type: history.AcquireCall, Attempt: 1, Key: "k", TTL: 10 * second, Renew: true},
		{At: 1, Type: history.AcquireReturn, Attempt: 1, Outcome: history.Acquired, Owner: "me", Until: 10 * second},
		{At: 10 * second, Type: history.DoneClosed, Attempt: 1},
	}
	late := func(seconds map[int]int64) (slow []history.Event) {
		for master, n := range seconds {
			slow = append(slow, history.Event{At: second, Type: history.Slow, Master: master, Value: n * second})
		}
		return slow
	}
	all := []int{0, 1, 2, 3, 4}
	for name, tt := range map[string]struct {
		key  string
		have []int         // masters that are seen with the key
		away map[int]int64 // masters, and the second when they become unreachable
		late int           // a master that has the key from the sixth second on
		slow map[int]int64 // masters that answer late, and for how many seconds from the second one on
		want bool
	}{
		"all have it, two are away":                {"k", all, map[int]int64{0: 1, 1: 1}, -1, nil, false},
		"all have it, three are away":              {"k", all, map[int]int64{0: 1, 1: 1, 2: 1}, -1, nil, true},
		"three have it":                            {"k", all[:3], nil, -1, nil, false},
		"three have it, one of these is away":      {"k", all[:3], map[int]int64{0: 1}, -1, nil, true},
		"three have it, one of the others is away": {"k", all[:3], map[int]int64{4: 1}, -1, nil, false},
		"one of three was away for a moment":       {"k", all[:3], map[int]int64{0: 9}, -1, nil, false},
		"one of three has it late":                 {"k", all[:2], nil, 2, nil, true},
		"nobody looks at its key":                  {"another", nil, nil, -1, nil, false},
		"all have it, three answer late":           {"k", all, nil, -1, map[int]int64{0: 6, 1: 6, 2: 6}, true},
		"all have it, two answer late":             {"k", all, nil, -1, map[int]int64{0: 6, 1: 6}, false},
		"three answer late, for a moment":          {"k", all, nil, -1, map[int]int64{0: 1, 1: 1, 2: 1}, false},
		"one of three answers late":                {"k", all[:3], nil, -1, map[int]int64{0: 6}, true},
		"one is away, and it answered late":        {"k", all, map[int]int64{0: 1}, -1, map[int]int64{0: 6}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Facts{
				Report: &report.Report{Plan: &plan.Plan{}, Watched: []string{tt.key}},
				SetsOf: func(string) [][]int { return [][]int{all} },
				Away: func(_, master int, from, to int64) int64 {
					if since, away := tt.away[master]; away {
						return max(0, to-max(from, since*second))
					}
					return 0
				},
			}
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
					f.Report.Samples = append(f.Report.Samples, s)
				}
			}
			v := history.NewView(append(late(tt.slow), events...))
			found := oracle.Kept(v)
			if len(found) != 1 {
				t.Fatalf("the oracle has found %v", found)
			}
			again := oracle.Kept(history.NewView(append(slices.Clone(v.Events), f.excuses(v)...)))
			if excused := len(again) == 0; excused != tt.want {
				t.Errorf("excused: %t", excused)
			}
			if alone := history.NewView(events[1:]); len(f.excuses(alone)) > 0 {
				t.Error("excused without a fault")
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
			f := &Facts{
				Report: &report.Report{},
				SetsOf: func(string) [][]int { return [][]int{{0, 1, 2, 3, 4}} },
				Away: func(_, master int, from, to int64) (sum int64) {
					if master < 2 { // until the first second
						sum = max(0, min(second, to)-from)
					}
					if slices.Contains(tt.later, master) {
						sum += max(0, to-max(2*second, from))
					}
					return sum
				},
			}
			a := history.Attempt{
				Call: 0, Return: 1, TTL: 10 * second, Key: "k", Done: tt.lost, Stopped: history.Never,
				ReleaseCall: history.Never,
			}
			if got := f.lostByRight(&a, oracle.Late(&history.View{})); got != tt.want {
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
			f := &Facts{Report: &report.Report{Plan: &plan.Plan{}}, Profile: workload.Profile{Late: tt.late}}
			j, err := Check(append(v.Events, f.excuses(v)...), oracle.Limits{}, true)
			if err != nil || j.Verdict != tt.want {
				t.Errorf("%+v, %v", j, err)
			}
		})
	}
}
