package oracle

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// Liveness finds stretches longer than bound in which clients that could reach a majority asked for a key that nobody
// held, and nobody got it. It needs MajorityLost and MajorityBack events if there were such times.
//
// Attempts no further apart than gap count as asking all the time, so that clients that try once, sleep and try
// again are judged too. The bound must cover what failed attempts leave behind, a ttl at most.
func Liveness(v *history.View, bound, gap time.Duration) []Violation {
	var out []Violation
	reach := newReach(v)
	v.ByKey(func(key string, attempts []int) {
		var asked []window
		for _, i := range attempts {
			a := &v.Attempts[i]
			asked = append(asked, intersect([]window{{a.Call, min(a.Return, v.End)}}, reach.of(a.Client))...)
		}
		for _, w := range subtract(merge(asked, int64(gap)), busy(v, attempts)) {
			if w.to-w.from > int64(bound) {
				out = append(out, starved(v, key, attempts, w, bound))
			}
		}
	})
	return out
}

func starved(v *history.View, key string, attempts []int, w window, bound time.Duration) Violation {
	violation := Violation{
		Oracle: NameLiveness, Key: key, At: w.from,
		Text: fmt.Sprintf("nobody got %q from %s to %s (%s, bound %s) although a majority was reachable, nobody held it and "+
			"somebody asked for it", key, at(w.from), at(w.to), took(w.to-w.from), bound),
	}
	for _, i := range attempts {
		a := &v.Attempts[i]
		if a.Call < w.to && a.Return > w.from && len(violation.Attempts) < 8 {
			violation.Attempts = append(violation.Attempts, a.ID)
			violation.Events = append(violation.Events, a.CallEvent)
		}
	}
	return violation
}

// Service is how the attempts fared that could reach a majority all the time they took.
type Service struct {
	// Attempts that are counted: Acquired + Refused + Failed.
	Attempts int `json:"attempts"`
	Acquired int `json:"acquired"`
	// Refused were told that somebody has the key, were cancelled by their caller, or waited in vain while others held
	// the key for most of the time.
	Refused int `json:"refused"`
	// Failed got an error, no quorum or a used-up validity, or waited in vain for a key that was mostly free.
	Failed int `json:"failed"`
	// FailedAttempts are the numbers of those that failed, the first hundred of them.
	FailedAttempts []uint64 `json:"failed_attempts,omitempty"`
	// Ratio is Acquired / (Acquired + Failed), 1 when there were neither.
	Ratio float64 `json:"ratio"`
}

// Serve counts how attempts fared. An attempt counts if its client could reach a majority from settle before its call
// to its return.
func Serve(v *history.View, settle time.Duration) Service {
	var s Service
	reach := newReach(v)
	v.ByKey(func(_ string, attempts []int) {
		taken := busy(v, attempts)
		for _, i := range attempts {
			a := &v.Attempts[i]
			if a.Return == history.Never || !inside(a, reach.of(a.Client), int64(settle)) {
				continue
			}
			s.count(a, taken)
		}
	})
	s.Ratio = 1
	if n := s.Acquired + s.Failed; n > 0 {
		s.Ratio = float64(s.Acquired) / float64(n)
	}
	return s
}

func inside(a *history.Attempt, ws []window, settle int64) bool {
	return slices.ContainsFunc(ws, func(w window) bool {
		return (w.from == 0 || w.from+settle <= a.Call) && a.Return < w.to
	})
}

func (s *Service) count(a *history.Attempt, taken []window) {
	s.Attempts++
	switch {
	case a.Granted():
		s.Acquired++
	case a.Outcome == history.Held, a.Outcome == history.Cancelled && !waitedInVain(a, taken):
		s.Refused++
	default:
		s.Failed++
		if len(s.FailedAttempts) < 100 {
			s.FailedAttempts = append(s.FailedAttempts, a.ID)
		}
	}
}

// waitedInVain tells whether a waited for all the time it had although the key was free for half of it or more.
func waitedInVain(a *history.Attempt, taken []window) bool {
	waited := a.Return - a.Call
	return a.Wait > 0 && waited >= a.Wait && covered(window{a.Call, a.Return}, taken) < waited/2
}

// Availability finds that fewer than atLeast of the attempts with a majority in reach succeeded.
func Availability(v *history.View, settle time.Duration, atLeast float64) []Violation {
	s := Serve(v, settle)
	if s.Ratio >= atLeast {
		return nil
	}
	first := v.Lookup(s.FailedAttempts[0])
	return []Violation{{
		Oracle: NameAvailability, Key: first.Key, At: first.Return, Attempts: s.FailedAttempts,
		Events: []int{first.CallEvent, first.ReturnEvent},
		Text: fmt.Sprintf("%d of %d attempts failed although a majority was reachable (availability %.3f %%, at least %.3f %% "+
			"wanted); the first is %s on %q at %s: %s %s", s.Failed, s.Acquired+s.Failed, 100*s.Ratio, 100*atLeast,
			holder(first), first.Key, at(first.Call), first.Outcome, first.Note),
	}}
}

// Recoveries returns, for each time a majority came back to somebody and for the Healed event, how long it took until
// every key that somebody asked for was acquired again. Time in which nobody asked, or somebody held the key, does not
// count. A key nobody acquired before the history ends, or before a majority is lost again, is left out: Liveness judges that.
func Recoveries(v *history.View) []time.Duration {
	var out []time.Duration
	for i := range v.Events {
		e := &v.Events[i]
		if e.Type != history.MajorityBack && e.Type != history.Healed {
			continue
		}
		worst := int64(-1)
		until := lostAgain(v.Events[i:])
		v.ByKey(func(_ string, attempts []int) {
			if d, ok := recovery(v, attempts, e.At, until); ok {
				worst = max(worst, d)
			}
		})
		if worst >= 0 {
			out = append(out, time.Duration(worst))
		}
	}
	return out
}

func lostAgain(events []history.Event) int64 {
	for i := range events {
		if events[i].Type == history.MajorityLost {
			return events[i].At
		}
	}
	return history.Never
}

func recovery(v *history.View, attempts []int, healed, until int64) (int64, bool) {
	granted, asked := history.Never, history.Never
	for _, i := range attempts {
		a := &v.Attempts[i]
		if a.Return < healed {
			continue
		}
		asked = min(asked, max(healed, a.Call))
		if a.Granted() {
			granted = min(granted, a.Return)
		}
	}
	if granted >= until {
		return 0, false
	}
	w := window{asked, granted}
	return granted - asked - covered(w, busy(v, attempts)), true
}

// Recovery finds that some recovery took longer than bound.
func Recovery(v *history.View, bound time.Duration) []Violation {
	var out []Violation
	for _, d := range Recoveries(v) {
		if d > bound {
			out = append(out, Violation{
				Oracle: NameRecovery, At: lastHealed(v.Events),
				Text: fmt.Sprintf("it took %s after a majority came back until every key was acquired again; the bound is %s",
					d.Round(time.Microsecond), bound),
			})
		}
	}
	return out
}

// LongestOutage is the longest stretch, in nanoseconds, in which somebody asked for a key that nobody held and nobody
// got it, whether a majority was reachable or not.
func LongestOutage(v *history.View) int64 {
	longest := int64(0)
	v.ByKey(func(_ string, attempts []int) {
		var asked []window
		for _, i := range attempts {
			asked = append(asked, window{v.Attempts[i].Call, min(v.Attempts[i].Return, v.End)})
		}
		for _, w := range subtract(merge(asked, int64(50*time.Millisecond)), busy(v, attempts)) {
			longest = max(longest, w.to-w.from)
		}
	})
	return longest
}
