package cli

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/single"
)

// fleetOf returns masters in these sets. No request reaches them.
func fleetOf(t *testing.T, n int, sets ...masterSet) *fleet {
	t.Helper()
	f := &fleet{sets: sets}
	for i := range n {
		m, err := single.Dial(fmt.Sprintf("redis://127.0.0.1:%d", i+1), single.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f.all = append(f.all, m)
	}
	t.Cleanup(f.close)
	return f
}

// reply is an error that a server answers with.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func plain(owner string, ttl time.Duration) *single.Call {
	return &single.Call{Reply: single.Reply{Outcome: single.Granted, Holder: owner, TTL: ttl, Token: 1}}
}

func shared(holds string) *single.Call {
	return &single.Call{Reply: single.Reply{Outcome: single.Granted, Holder: "web/1", TTL: time.Second, Holds: &holds}}
}

func TestTheMastersAnswersAboutAKeyAreJudgedByQuorum(t *testing.T) {
	one := fleetOf(t, 3, masterSet{at: []int{0, 1, 2}})
	two := fleetOf(t, 5, masterSet{"old", []int{0, 1, 2}}, masterSet{"new", []int{0, 3, 4}})
	free := &single.Call{Reply: single.Reply{Outcome: single.Refused}}
	down := &single.Call{Err: errors.New("no answer")}
	foreign := &single.Call{Err: reply("WRONGTYPE Operation against a key")}
	const s = time.Second
	const a, b = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
	for name, c := range map[string]struct {
		fleet   *fleet
		said    []*single.Call
		verdict string
		holds   int
		ttl     time.Duration
	}{
		"held": {
			one, []*single.Call{plain("x", 3*s), plain("x", s), plain("x", 2*s)}, "held", 1, 2 * s,
		},
		"held by a bare majority": {one, []*single.Call{plain("x", 3*s), free, plain("x", s)}, "held", 1, s},
		"a leftover":              {one, []*single.Call{plain("x", s), free, free}, "leftover", 0, s},
		"of different owners": {
			one, []*single.Call{plain("x", s), plain("y", s), free}, "leftover", 0, s,
		},
		"one does not answer":  {one, []*single.Call{plain("x", s), free, down}, "unknown", 0, s},
		"one was not asked":    {one, []*single.Call{plain("x", s), free, {Err: errNotAsked}}, "unknown", 0, s},
		"something else there": {one, []*single.Call{plain("x", s), free, foreign}, "leftover", 0, s},
		"readers": {
			one, []*single.Call{shared(a + b), shared(b + a), shared(a)}, "held", 2, s,
		},
		"a reader and what is left of one": {one, []*single.Call{shared(a + b), free, shared(a)}, "held", 1, s},
		"what is left of readers":          {one, []*single.Call{shared(a), shared(b), free}, "leftover", 0, s},
		"no lock":                          {one, []*single.Call{plain("x", -1), plain("{}", s), free}, "", 0, 0},
		"held by both sets": {
			two, []*single.Call{plain("x", s), plain("x", s), free, plain("x", s), free}, "held", 1, s,
		},
		"held by the old set": {
			two, []*single.Call{free, plain("x", s), plain("x", s), free, free}, "held", 1, s,
		},
		"a majority of all, of neither set": {
			two, []*single.Call{free, plain("x", s), free, plain("x", s), free}, "leftover", 0, s,
		},
		"unknown in the new set": {two, []*single.Call{free, free, free, plain("x", s), down}, "unknown", 0, s},
	} {
		lock, some := judge(c.fleet, "key", func(i int) *single.Call { return c.said[i] })
		switch {
		case some != (c.verdict != ""):
			t.Errorf("%s: a lock: %v", name, some)
		case some && (lock.Verdict != c.verdict || lock.Holds != c.holds || lock.ttl != c.ttl):
			t.Errorf("%s: %s, %d holds, for %v; want %s, %d, %v", name, lock.Verdict, lock.Holds, lock.ttl, c.verdict,
				c.holds, c.ttl)
		}
	}
}

// A key of a quorum can't be hidden on the masters that were not scanned.
func TestAListIsCompleteIfTheOthersAreNoMajority(t *testing.T) {
	two := fleetOf(t, 5, masterSet{"old", []int{0, 1, 2}}, masterSet{"new", []int{0, 3, 4}})
	for _, c := range []struct {
		done []int
		want bool
	}{
		{[]int{0, 1, 2, 3, 4}, true},
		{[]int{0, 1, 3}, true},
		{[]int{1, 2, 3, 4}, true},
		{[]int{0, 1}, false},
		{[]int{0, 1, 2}, false},
		{nil, false},
	} {
		l := &listing{fleet: two, Masters: make([]listedMaster, 5)}
		for i := range l.Masters {
			l.Masters[i].Done = slices.Contains(c.done, i)
		}
		if got := l.sawAll(); got != c.want {
			t.Errorf("%v: %v", c.done, got)
		}
	}
}

func TestAWaitNamesTheHolderThatDecidesItsEnd(t *testing.T) {
	const s = time.Second
	held := func(who string, ttl time.Duration) redlock.Holder {
		return redlock.Holder{Held: true, Identity: who, Holds: 1, TTL: ttl}
	}
	for name, c := range map[string]struct {
		permits int
		found   []redlock.Holder
		want    obstacle
	}{
		"a lock": {0, []redlock.Holder{held("a", s)}, obstacle{"a", "0", s, ""}},
		"of several keys the one for longest": {
			0, []redlock.Holder{held("a", s), {}, held("c", 3*s), held("d", 2*s)}, obstacle{"c", "2", 3 * s, ""},
		},
		"for ever is longest": {
			0, []redlock.Holder{held("a", -1), held("b", s)}, obstacle{"a", "0", -1, ""},
		},
		"of permits the next": {
			3, []redlock.Holder{held("a", 3*s), held("b", s), held("c", 2*s)}, obstacle{"b", "1", s, ""},
		},
		"of permits none that is for ever": {
			2, []redlock.Holder{held("a", -1), held("b", s)}, obstacle{"b", "1", s, ""},
		},
		"readers": {
			0, []redlock.Holder{{Held: true, Identity: "a", Holds: 3, TTL: s}}, obstacle{"3 holders", "0", s, ""},
		},
		"nobody": {0, []redlock.Holder{{}}, obstacle{}},
	} {
		w := &wait{taker: &taker{lockFlags: lockFlags{permits: c.permits}}}
		if got := w.choose([]string{"0", "1", "2", "3"}, c.found); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// If no process was seen to get the lock, the job may run nowhere. That is not the status of -E, which means that the
// job runs elsewhere.
func TestHazard103ASplitVoteHasItsOwnStatus(t *testing.T) {
	for want, err := range map[int]error{
		7:               &redlock.QuorumError{Op: "acquire", Key: "report", Reason: redlock.ErrHeld},
		statusContended: &redlock.QuorumError{Op: "acquire", Key: "report", Reason: redlock.ErrContended},
		statusNoQuorum:  &redlock.QuorumError{Op: "acquire", Key: "report", Reason: redlock.ErrNoQuorum},
	} {
		for _, quiet := range []bool{false, true} {
			taker := &taker{lockFlags: lockFlags{conflictStatus: 7, quiet: quiet}}
			err := taker.conflict(fmt.Errorf("more: %w", err))
			if got := asStatus(err).status; got != want {
				t.Errorf("quiet %t: %v ends with %d, want %d", quiet, err, got, want)
			}
		}
	}
}
