package oracle

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// Quiet is how the quiet attempts of a history fared.
type Quiet struct {
	// Holds and Free are how many renewed holds and how many acquisitions of free keys were judged. Of these, Lost
	// holds were lost, and Late acquisitions failed or took too long.
	Holds int `json:"holds"`
	Lost  int `json:"lost"`
	Free  int `json:"free"`
	Late  int `json:"late"`
	// Excused attempts met a time without a majority of masters, or a time when the machine stood still.
	Excused int `json:"excused"`
	// P50, P99 and Max are the durations of the judged acquisitions, in nanoseconds.
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

// Victims finds quiet attempts ([history.Attempt.Quiet]) that were harmed while their client could reach a majority of
// masters. No other client wants their keys, so the load on other keys did the harm. A renewed hold must not be lost,
// and a free key must be acquired within bound. The share allowed of acquisitions may take longer, and, if faults came
// on, the share allowed of holds may be lost; more only if chance explains it. A majority in reach need not be the one
// that has the hold.
//
// Three kinds of time do not count: time without a majority in reach, settle after that, and time when the machine
// stood still or masters answered late. An acquisition that met such a time is excused unless the rest took longer than
// bound. A lost hold is excused where [Kept] excuses it. If there are quiet attempts but none can be judged, Victims
// reports a violation marked Unknown.
func Victims(v *history.View, bound, settle time.Duration, allowed float64) (Quiet, []Violation) {
	j := &victims{
		bound: int64(bound), settle: int64(settle), reach: newReach(v), keeping: newKeeping(v),
		apart: make(map[int][]window),
	}
	quiet := false
	for i := range v.Attempts {
		if a := &v.Attempts[i]; a.Quiet {
			quiet = true
			j.acquisition(v, a)
			j.hold(v, a)
		}
	}
	q := &j.Quiet
	if quiet && q.Holds+q.Free == 0 {
		j.found = append(j.found,
			Violation{Oracle: NameVictims, At: v.End, Unknown: true, Text: "no quiet attempt could be judged"})
	}
	if beyondChance(q.Late, q.Free, allowed) {
		j.found = append(j.found, j.late...)
	}
	if len(FaultsFired(v)) == 0 || beyondChance(q.Lost, q.Holds, allowed) {
		j.found = append(j.found, j.lost...)
	}
	if slices.Sort(j.took); len(j.took) > 0 {
		q.P50, q.P99, q.Max = j.took[len(j.took)/2], j.took[len(j.took)*99/100], j.took[len(j.took)-1]
	}
	return *q, j.found
}

// victims is one judgement while it lasts.
type victims struct {
	Quiet
	bound   int64
	settle  int64
	reach   *reach
	keeping *keeping
	apart   map[int][]window // by client: the times that do not count
	took    []int64
	found   []Violation
	late    []Violation // acquisitions
	lost    []Violation // holds
}

// uncounted are the times that do not count for a client.
func (j *victims) uncounted(client int) []window {
	ws, known := j.apart[client]
	if !known {
		ws = subtract([]window{{0, history.Never / 2}}, j.reach.of(client))
		for i := range ws {
			ws[i].to += j.settle
		}
		ws = merge(slices.Concat(ws, slowed(j.reach.v, j.settle)), 0)
		j.apart[client] = ws
	}
	return ws
}

// acquisition judges how an attempt ended. One that its caller, or the end of the run, cut short within the bound
// proves nothing.
func (j *victims) acquisition(v *history.View, a *history.Attempt) {
	asked := window{a.Call, v.Asks(a)}
	apart := covered(asked, j.uncounted(a.Client))
	took := asked.to - asked.from - apart
	cut := a.Outcome == history.Pending || a.Outcome == history.Cancelled
	switch {
	case cut && took <= j.bound:
		return
	case apart > 0 && took <= j.bound:
		j.Excused++
		return
	}
	j.Free++
	j.took = append(j.took, took)
	if a.Granted() && took <= j.bound {
		return
	}
	j.Late++
	j.late = append(j.late, Violation{
		Oracle: NameVictims, Key: a.Key, At: asked.to, Attempts: []uint64{a.ID}, Events: []int{a.CallEvent},
		Text: fmt.Sprintf("%s asked for %q at %s, which no other client wants, and had after %s: %s (bound %s) %s",
			holder(a), a.Key, at(a.Call), time.Duration(took).Round(time.Microsecond), a.Outcome,
			time.Duration(j.bound), a.Note),
	})
}

// hold judges how a renewed hold ended. One that was released within its first ttl proves nothing.
func (j *victims) hold(v *history.View, a *history.Attempt) {
	if !a.Granted() || !a.Renew {
		return
	}
	switch {
	case !Lost(a) && min(a.ReleaseCall, v.End)-a.Return < a.TTL:
	case !Lost(a):
		j.Holds++
	case j.keeping.excuses(a):
		j.Excused++
	default:
		j.Holds++
		j.Lost++
		j.lost = append(j.lost, j.keeping.violation(NameVictims, a))
	}
}
