package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// Liveness finds times longer than bound when clients that could reach a majority asked for a free key but did not get
// it. Time when the machine stood still, or a master answered too late for a lock ([history.Slow]), does not count.
// Liveness needs MajorityLost and MajorityBack events if there were such times.
//
// A client that asks for several keys at once, all or none, asks for each key only while the others
// are free, too. So one of its clients has to get a key that is free and wanted.
//
// Attempts no further apart than gap count as asking all the time, so that clients that try once, sleep and try
// again are judged too. The bound must cover what failed attempts leave behind, a ttl at most.
func Liveness(v *history.View, bound, gap time.Duration) []Violation {
	var out []Violation
	stuck := stuck(v)
	eachWanted(v, gap, func(key string, attempts []*history.Attempt, _, free []window) {
		for _, w := range free {
			if w.to-w.from-covered(w, stuck) > int64(bound) {
				out = append(out, starved(key, attempts, w, bound))
			}
		}
	})
	return out
}

// eachWanted calls visit for every key. asked has the times when a client that could reach a majority asked for the
// key; free has the part of these times when the key was free. Attempts no further apart than gap count as one.
func eachWanted(v *history.View, gap time.Duration,
	visit func(key string, attempts []*history.Attempt, asked, free []window),
) {
	reach, busy, paused := newReach(v), newTaken(v), pauses(v)
	for key, attempts := range v.ByKey() {
		var asked []window
		for _, a := range attempts {
			asks := intersect([]window{{a.Call, v.Asks(a)}}, reach.of(a.Client))
			asks = subtract(asks, paused[a.Client])
			for _, other := range busy.locks[a.Lock] {
				if other != key {
					asks = subtract(asks, busy.keys[other])
				}
			}
			asked = append(asked, asks...)
		}
		asked = merge(asked, int64(gap))
		visit(key, attempts, asked, subtract(asked, busy.keys[key]))
	}
}

func starved(key string, attempts []*history.Attempt, w window, bound time.Duration) Violation {
	violation := Violation{
		Oracle: NameLiveness, Key: key, At: w.from,
		Text: fmt.Sprintf("nobody got %q from %s to %s (%s, bound %s) although a majority was reachable, nobody held "+
			"it and somebody asked for it", key, at(w.from), at(w.to), took(w.to-w.from), bound),
	}
	for _, a := range attempts {
		if a.Call < w.to && a.Return > w.from && len(violation.Attempts) < 8 {
			violation.Attempts = append(violation.Attempts, a.ID)
			violation.Events = append(violation.Events, a.CallEvent)
		}
	}
	return violation
}

// Service is how the attempts fared that could reach a majority all the time they took, on a machine that stood still
// for a tenth of it at most.
type Service struct {
	// Total is how many attempts ended, whether they are counted or not.
	Total int `json:"total"`
	// Reached counts the attempts with a majority in reach.
	Reached int `json:"reached"`
	// Attempts that are counted: Acquired + Refused + Failed.
	Attempts int `json:"attempts"`
	Acquired int `json:"acquired"`
	// Refused attempts had a good reason to fail. Another client had the key, wanted it, or had
	// just had it. The caller cancelled the attempt. Others held the key for most of the wait. Or a
	// single attempt got no quorum because others had or wanted the key.
	Refused int `json:"refused"`
	// Failed attempts had no good reason to fail. They got an error, no quorum or a used-up validity; or waited without
	// success for a key that was mostly free; or got the answer that the key is held although it was free.
	Failed int `json:"failed"`
	// FailedAttempts has the numbers of the first hundred failed attempts.
	FailedAttempts []uint64 `json:"failed_attempts,omitempty"`
	// Ratio is Acquired / (Acquired + Failed), 1 when there were neither.
	Ratio float64 `json:"ratio"`
}

// Serve counts how attempts ended. An attempt counts if its client could reach a majority from settle before its call
// to its return, and the machine gave it time throughout. A stall also excuses attempts for as long again after its
// end, up to settle. Requests have timed out in the stall, and a library does not ask a silent master again at once. If
// such times made up at most a tenth of the attempt, it counts in any case. A wait of seconds nearly always meets a
// stall, and does not fail because of it. A failed wait counts even with more such time, if for half of the wait the
// key was free and there was no stall. Masters that answered the harness late ([history.Slow]), and a stop of the
// client's process, excuse attempts that failed, as a stall does.
func Serve(v *history.View, settle time.Duration) Service {
	var s Service
	reach := newReach(v)
	busy, felt := newTaken(v), echoes(stalls(v), int64(settle))
	late, paused := echoes(lasting(v, history.Slow), int64(settle)), pauses(v)
	for _, attempts := range v.ByKey() {
		for _, a := range attempts {
			if a.Return == history.Never {
				continue
			}
			s.Total++
			if !inside(a, reach.of(a.Client), int64(settle)) {
				continue
			}
			s.Reached++
			taken := func() []window { return busy.forAny(a) }
			excuses := felt
			if !a.Granted() {
				excuses = merge(slices.Concat(felt, late, echoes(paused[a.Client], int64(settle))), 0)
			}
			if excused(a, excuses, taken) {
				continue
			}
			s.count(a, taken, func() bool { return contended(attempts, a) })
		}
	}
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

// excused reports whether the effects of stalls may explain how a ended: see Serve.
func excused(a *history.Attempt, felt []window, taken func() []window) bool {
	if 10*covered(window{a.Call, a.Return}, felt) <= a.Return-a.Call {
		return false
	}
	return a.Granted() || !waitedInVain(a, func() []window { return merge(slices.Concat(taken(), felt), 0) })
}

func (s *Service) count(a *history.Attempt, taken func() []window, contended func() bool) {
	s.Attempts++
	switch {
	case a.Granted():
		s.Acquired++
	case a.Outcome == history.Cancelled && !waitedInVain(a, taken),
		(a.Outcome == history.NoQuorum || a.Outcome == history.Held) && a.Wait == 0 && contended(),
		// A client that is ready to wait must not be refused while the key is free, even if others want the key.
		a.Outcome == history.Held && a.Wait > 0 && 2*covered(window{a.Call, a.Return}, taken()) >= a.Return-a.Call:
		s.Refused++
	default:
		s.Failed++
		if len(s.FailedAttempts) < 100 {
			s.FailedAttempts = append(s.FailedAttempts, a.ID)
		}
	}
}

// afterwards is how long the leftovers of an attempt or a release may block others.
const afterwards = int64(250 * time.Millisecond)

// contended reports whether another client had the key during a's call or shortly before, or asked for it. The votes of
// the reachable masters may then have been split. If no client gets the key for long, Liveness finds that.
func contended(attempts []*history.Attempt, a *history.Attempt) bool {
	return slices.ContainsFunc(attempts, func(b *history.Attempt) bool {
		end := b.Return
		if b.Granted() {
			end = b.LastUntil()
		}
		if b.Released {
			end = b.ReleaseReturn
		}
		if end < history.Never-afterwards {
			end += afterwards
		}
		return b.ID != a.ID && (b.Lock == 0 || b.Lock != a.Lock) && b.Call < a.Return && a.Call < end
	})
}

// waitedInVain tells whether a waited for all the time it had although the key was free for half of it or more.
func waitedInVain(a *history.Attempt, taken func() []window) bool {
	waited := a.Return - a.Call
	return a.Wait > 0 && waited >= a.Wait && covered(window{a.Call, a.Return}, taken()) < waited/2
}

// Enough tells whether so many attempts were judged that their ratio means something: a hundred, or a share of those
// with a majority in reach. Without a majority attempts fail at once, and thousands of these say nothing about the
// others.
func (s *Service) Enough(share float64) bool {
	return s.Attempts >= 100 || float64(s.Attempts) >= share*float64(cmp.Or(s.Reached, s.Total))
}

// Availability finds that fewer than atLeast of the attempts with a majority in reach succeeded. If it could judge
// fewer than a hundred, and less than the share judged of those, it finds that it does not know: a violation marked
// Unknown.
func Availability(v *history.View, settle time.Duration, atLeast, judged float64) []Violation {
	s := Serve(v, settle)
	if s.Ratio >= atLeast {
		if s.Enough(judged) {
			return nil
		}
		return []Violation{{
			Oracle: NameAvailability, At: v.End, Unknown: true,
			Text: fmt.Sprintf("judged %d of %d attempts, and 100 are wanted or %.0f %% of the %d with a majority in "+
				"reach: in the others the machine stood still, or masters answered late", s.Attempts, s.Total,
				100*judged, s.Reached),
		}}
	}
	first := v.Lookup(s.FailedAttempts[0])
	return []Violation{{
		Oracle: NameAvailability, Key: first.Key, At: first.Return, Attempts: s.FailedAttempts,
		Events: []int{first.CallEvent, first.ReturnEvent},
		Text: fmt.Sprintf("%d of %d attempts failed although a majority was reachable (availability %.3f %%, at "+
			"least %.3f %% wanted, judged %d of %d attempts); the first is %s on %q at %s: %s %s", s.Failed,
			s.Acquired+s.Failed, 100*s.Ratio, 100*atLeast, s.Attempts, s.Total, holder(first), first.Key,
			at(first.Call), first.Outcome, first.Note),
	}}
}

// Recoveries returns a duration for each return of a majority to a client, and for the Healed event: the time until
// every wanted key was acquired again. Three kinds of time do not count: time without attempts, time while the key was
// held, and time when the machine stood still. If a key was not acquired before the history ends, or before a majority
// is lost again, it is left out: Liveness judges that.
func Recoveries(v *history.View) []time.Duration {
	var out []time.Duration
	for i := range v.Events {
		e := &v.Events[i]
		if e.Type != history.MajorityBack && e.Type != history.Healed {
			continue
		}
		worst := int64(-1)
		until := lostAgain(v.Events[i:])
		for _, attempts := range v.ByKey() {
			if d, ok := recovery(v, attempts, e.At, until); ok {
				worst = max(worst, d)
			}
		}
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

func recovery(v *history.View, attempts []*history.Attempt, healed, until int64) (int64, bool) {
	granted, asked := history.Never, history.Never
	for _, a := range attempts {
		if v.Asks(a) < healed {
			continue
		}
		if a.Lock == 0 { // what wants several keys at once may wait for another of them
			asked = min(asked, max(healed, a.Call))
		}
		if a.Granted() {
			granted = min(granted, a.Return)
		}
	}
	if granted >= until || asked >= granted {
		return 0, false
	}
	w := []window{{asked, granted}}
	return length(subtract(subtract(w, busy(attempts)), stuck(v))), true
}

// Recovery finds that some recovery took longer than bound.
func Recovery(v *history.View, bound time.Duration) []Violation {
	var out []Violation
	for _, d := range Recoveries(v) {
		if d > bound {
			out = append(out, Violation{
				Oracle: NameRecovery, At: lastHealed(v.Events),
				Text: fmt.Sprintf("it took %s after a majority came back until every key was acquired again; the "+
					"bound is %s", d.Round(time.Microsecond), bound),
			})
		}
	}
	return out
}

// LongestOutage is the longest time, in nanoseconds, that a free key stayed free although a client
// asked for it, with or without a reachable majority.
func LongestOutage(v *history.View) int64 {
	longest := int64(0)
	for _, attempts := range v.ByKey() {
		var asked []window
		for _, a := range attempts {
			if a.Lock == 0 {
				asked = append(asked, window{a.Call, v.Asks(a)})
			}
		}
		for _, w := range subtract(merge(asked, int64(50*time.Millisecond)), busy(attempts)) {
			longest = max(longest, w.to-w.from)
		}
	}
	return longest
}
