package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

const (
	// mostCloseups bounds the number of violations with a close-up, and mostDrawn the votes in each.
	mostCloseups = 24
	mostDrawn    = 800
	// mostHolds is of how many attempts: a violation of two holds has two.
	mostHolds = 4
)

// closeup shows a violation in detail: the attempts in it, the masters that voted for each, and
// each master's entries at the time. Times are microseconds.
type closeup struct {
	// List and Index say which violation: the one at Index of violations or allowed.
	List    string        `json:"list"`
	Index   int           `json:"index"`
	Key     string        `json:"key"`
	From    int64         `json:"from"`
	To      int64         `json:"to"`
	Holds   []closeHold   `json:"holds"`
	Masters []closeMaster `json:"masters"`
	// Told reports whether there are votes to show, Looked whether the run looked at the masters' entries for this key.
	Told   bool `json:"told"`
	Looked bool `json:"looked"`
}

type closeHold struct {
	Client  int    `json:"client"`
	Attempt uint64 `json:"attempt"`
	Call    int64  `json:"call"`
	Return  int64  `json:"return"`
	// End is when it stopped acting, Until its last bound; 0 for an attempt that was not granted.
	End   int64 `json:"end"`
	Until int64 `json:"until"`
	// Text says it in sentences.
	Text string `json:"text"`
}

type closeMaster struct {
	// States are from, to, and who had the key: a client, or one of the states.
	States [][3]int64 `json:"states"`
	// Votes are the number of the hold, start, time, op, vote.
	Votes [][]any `json:"votes"`
	// Cells say for each hold how the master voted for it and which entry a look then found. Faults
	// lists the faults between the first request and the last grant.
	Cells  []string `json:"cells"`
	Faults string   `json:"faults"`
}

// States of a master that has no client's hold.
const (
	stateFree   = -1
	stateOthers = -2
	stateDown   = -3
)

// closeups returns the close-ups: first the first violation of each oracle, then the others.
func closeups(v *history.View, r *Report, faults []faultSpan) []closeup {
	type listed struct {
		list      string
		index, of int // of is how many of its oracle come before it
		violation *oracle.Violation
	}
	var all []listed
	before := make(map[string]int)
	add := func(name string, list []oracle.Violation) {
		for i := range list {
			all = append(all, listed{name, i, before[list[i].Oracle], &list[i]})
			before[list[i].Oracle]++
		}
	}
	add("violations", r.Violations)
	add("allowed", r.Allowed)
	slices.SortStableFunc(all, func(a, b listed) int { return cmp.Compare(a.of, b.of) })
	out := []closeup{}
	for _, x := range all {
		if len(out) == mostCloseups {
			break
		}
		if c, ok := newCloseup(v, r, x.violation, faults); ok {
			c.List, c.Index = x.list, x.index
			out = append(out, c)
		}
	}
	return out
}

func newCloseup(v *history.View, r *Report, x *oracle.Violation, faults []faultSpan) (closeup, bool) {
	var attempts []*history.Attempt
	for _, id := range x.Attempts[:min(mostHolds, len(x.Attempts))] {
		if a := v.Lookup(id); a != nil {
			attempts = append(attempts, a)
		}
	}
	if len(attempts) == 0 {
		return closeup{}, false
	}
	slices.SortStableFunc(attempts, func(a, b *history.Attempt) int { return cmp.Compare(a.Return, b.Return) })
	c := closeup{Key: attempts[0].Key, Masters: make([]closeMaster, r.Masters)}
	b := newBallots(r.Ballots, attempts)
	c.Told = len(r.Ballots) > 0
	c.window(v, attempts, b, x.At)
	for n, a := range attempts {
		c.Holds = append(c.Holds, newCloseHold(v, a, b.granting(n), r.Masters))
	}
	c.states(v, r)
	c.votes(b)
	for m := range c.Masters {
		c.table(r, m, attempts, b, faults)
	}
	return c, true
}

// window is the time that is shown: from the round that granted the first hold to the end of the last, and the
// violation.
func (c *closeup) window(v *history.View, attempts []*history.Attempt, b *ballots, at int64) {
	from, to := at, at
	for n, a := range attempts {
		begin := min(a.Return, v.End)
		for _, vote := range b.granting(n) {
			begin = min(begin, vote.Start)
		}
		from = min(from, begin)
		to = max(to, min(a.Return, v.End))
		if a.Granted() {
			to = max(to, min(a.End(), v.End))
		}
	}
	margin := max((to-from)/12, int64(2*time.Millisecond))
	c.From, c.To = max(0, from-margin)/micro, (to+margin)/micro
}

func newCloseHold(v *history.View, a *history.Attempt, votes []*Ballot, masters int) closeHold {
	h := closeHold{Client: a.Client, Attempt: a.ID, Call: a.Call / micro, Return: min(a.Return, v.End) / micro}
	said := map[workload.Vote][]int{}
	for _, vote := range votes {
		said[vote.Vote] = append(said[vote.Vote], vote.Master)
	}
	text := fmt.Sprintf("Client %d asked at %s", a.Client, clock(a.Call))
	switch {
	case a.Granted():
		h.End, h.Until = min(a.End(), v.End)/micro, a.LastUntil()/micro
		text += " and had the key from " + clock(a.Return)
		text += fmt.Sprintf(" to %s; its bound was %s.", clock(min(a.End(), v.End)), clock(a.LastUntil()))
	case a.Return == history.Never:
		text += " and was not answered."
	default:
		text += fmt.Sprintf("; at %s the answer was %s.", clock(a.Return), a.Outcome)
	}
	if len(votes) > 0 {
		text += fmt.Sprintf(" Its last round began at %s: of %d masters", clock(votes[0].Start), masters)
		for vote := workload.VoteGranted; vote <= workload.VoteUnknown; vote++ {
			if ms := said[vote]; len(ms) > 0 {
				slices.Sort(ms)
				text += fmt.Sprintf(" %s: %s;", vote, strings.Trim(fmt.Sprint(ms), "[]"))
			}
		}
		text = strings.TrimSuffix(text, ";") + "."
	}
	h.Text = text
	return h
}

// states collects the entries that looks found on the masters.
func (c *closeup) states(v *history.View, r *Report) {
	k := slices.Index(r.Watched, c.Key)
	if k < 0 {
		return
	}
	c.Looked = true
	for _, s := range masterStates(v, r, k) {
		if s.to < c.From || s.from > c.To {
			continue
		}
		m := &c.Masters[s.master]
		m.States = append(m.States, [3]int64{max(s.from, c.From), min(s.to, c.To), int64(s.state)})
	}
}

func (c *closeup) votes(b *ballots) {
	n := 0
	for _, vote := range b.all {
		if vote.At/micro < c.From || vote.Start/micro > c.To || n == mostDrawn {
			continue
		}
		n++
		m := &c.Masters[vote.Master]
		m.Votes = append(m.Votes, []any{vote.hold, vote.Start / micro, vote.At / micro, vote.Op, int(vote.Vote)})
	}
}

// table fills in, for one master, its vote for each hold, its entry at the time, and its faults.
func (c *closeup) table(r *Report, m int, attempts []*history.Attempt, b *ballots, faults []faultSpan) {
	master := &c.Masters[m]
	first, last := attempts[0].Return/micro, attempts[0].Return/micro
	for n, a := range attempts {
		var said []string
		for _, vote := range b.granting(n) {
			if vote.Master != m {
				continue
			}
			said = append(said,
				fmt.Sprintf("%s after %s", vote.Vote, time.Duration(vote.At-vote.Start).Round(10*time.Microsecond)))
			first = min(first, vote.Start/micro)
		}
		at := a.Return / micro
		if had := c.seen(r, m, a, attempts); had != "" {
			said = append(said, had)
		}
		last = max(last, at)
		master.Cells = append(master.Cells, strings.Join(said, "; "))
	}
	var on []string
	for _, f := range faults {
		hit := slices.Contains(f.Masters, m) || len(f.Masters) == 0 && f.Target == ""
		if hit && f.From <= last && f.To >= first {
			on = append(on, fmt.Sprintf("%s, %s to %s", f.Name, clock(f.From*micro), clock(f.To*micro)))
		}
	}
	master.Faults = strings.Join(on, "; ")
}

// seen describes a master's entry at the first look after a hold was granted.
func (c *closeup) seen(r *Report, m int, a *history.Attempt, attempts []*history.Attempt) string {
	k := slices.Index(r.Watched, c.Key)
	if k < 0 || !a.Granted() {
		return ""
	}
	for i := range r.Samples {
		s := &r.Samples[i]
		if s.Master != m || s.At < a.Return || k >= len(s.Owners) {
			continue
		}
		if s.At > a.End() {
			return ""
		}
		at := " at " + clock(s.At)
		switch n := slices.IndexFunc(attempts, func(a *history.Attempt) bool { return a.Owner == s.Owners[k] }); {
		case !s.Up:
			return "no answer" + at
		case s.Owners[k] == "":
			return "had nobody" + at
		case n >= 0:
			return fmt.Sprintf("had %c", 'A'+n) + at
		default:
			return "had another" + at
		}
	}
	return ""
}

// clock writes a time of the run.
func clock(ns int64) string { return fmt.Sprintf("%.4f s", float64(ns)/float64(time.Second)) }
