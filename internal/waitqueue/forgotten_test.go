package waitqueue_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/internal/waitqueue"
)

// TestNoWaiterIsForgotten checks the property that all waiting rests on. Take the first entry in the queue of a key,
// asleep without a time to wake up at. Either the masters have refused it since it fell asleep, so they will notify
// it, or another goroutine is about to wake it.
//
// The test plays the goroutines of one process, and anything may come between their steps. A window may end in the
// middle of a pass or an attempt, by a clock a little ahead of its timers. Locks are passed on, extended and released
// while other goroutines come and leave.
func TestNoWaiterIsForgotten(t *testing.T) {
	passes, late := 0, 0
	for range 20 { // times a hundred: what one hundred finds of a rare defect, the next may miss
		rapid.Check(t, func(rt *rapid.T) { play(rt, &passes, &late) })
	}
	if passes == 0 || late == 0 {
		t.Errorf("%d passes, and the window ended in %d: that shows little", passes, late)
	}
}

// play takes a number of steps. It counts the passes, and the passes that came too late.
func play(t *rapid.T, passes, late *int) {
	p := &process{t: t, q: waitqueue.New(atLeast(2), func(time.Duration, func()) {}), now: time.Second}
	for range rapid.IntRange(50, 150).Draw(t, "steps") {
		var can []string
		for name, step := range steps {
			for range step.often(p) {
				can = append(can, name)
			}
		}
		slices.Sort(can)
		name := rapid.SampledFrom(can).Draw(t, "step")
		p.done = append(p.done, name)
		steps[name].do(p)
		p.look()
	}
	*passes, *late = *passes+p.passes, *late+p.late
}

const modelWindow = 10 * time.Millisecond

// actor is a waiting goroutine.
type actor struct {
	waitqueue.Entry
	patient bool
	awake   bool          // it runs, or is about to
	wakes   time.Duration // when it does by itself; 0: never
	trying  bool
	asked   bool // masters have refused it, and so know of the process
}

// process is one process; its goroutines want one key.
type process struct {
	t        *rapid.T
	q        *waitqueue.Queue
	now      time.Duration
	all      []*actor // that wait, in no order
	holder   *actor
	ends     time.Duration // of the holder's window, if it has one
	extended bool
	taken    *actor          // is being passed the key
	timers   []time.Duration // reminders that are still to come, by their windows' ends
	theirs   bool            // another process has the key
	done     []string
	passes   int
	late     int
}

func (p *process) keys() []string { return []string{"key"} }

func (p *process) only(is func(*actor) bool) (some []*actor) {
	for _, a := range p.all {
		if is(a) {
			some = append(some, a)
		}
	}
	return some
}

func (p *process) one(is func(*actor) bool) *actor {
	some := p.only(is)
	return some[rapid.IntRange(0, len(some)-1).Draw(p.t, "who")]
}

func (p *process) remove(a *actor) {
	p.all = slices.DeleteFunc(p.all, func(other *actor) bool { return a == other })
}

// look wakes the actors that have been woken, and finds forgotten ones.
func (p *process) look() {
	for _, a := range p.all {
		if woken(p.q, &a.Entry) {
			a.awake = true
		}
		if turn, _ := p.q.Yield(&a.Entry, at(p.now)); !turn || a.awake || a.trying || a.asked || a.wakes > 0 ||
			p.taken != nil || len(p.timers) > 0 {
			continue
		}
		p.t.Fatalf("the first in the queue sleeps, no master knows of it, and nothing is going to wake it, after:\n%s",
			strings.Join(p.done, "\n"))
	}
}

// leaves makes a, which has got the key, leave the queue.
func (p *process) leaves(a *actor, followed bool) {
	p.remove(a)
	p.holder, p.extended = a, false
	if !followed {
		p.ends = 0
		p.q.Leave(&a.Entry, at(p.now))
		return
	}
	until := p.ends
	if p.now >= until {
		until = 0
	}
	p.q.LeaveQuietly(&a.Entry, until)
	if until > 0 && a != p.taken {
		p.timers = append(p.timers, until)
	}
}

// released ends the lock on the masters.
func (p *process) released() {
	p.holder = nil
	p.q.HandOver(p.keys())
	if rapid.Bool().Draw(p.t, "another process is notified") {
		p.theirs = true
	} else {
		p.q.Wake(p.keys())
	}
}

type step struct {
	often func(p *process) int // how often it is among the steps to draw from; 0: it can't be done now
	do    func(p *process)
}

func times(n int, can bool) int {
	if can {
		return n
	}
	return 0
}

func tries(a *actor) bool { return a.trying }
func runs(a *actor) bool  { return a.awake && !a.trying }
func rests(a *actor) bool { return !a.trying }

var steps = map[string]step{
	"one comes": {func(p *process) int { return times(2, len(p.all) < 5) }, func(p *process) {
		a := &actor{patient: rapid.IntRange(0, 3).Draw(p.t, "patient") > 0, awake: true}
		p.q.Enter(&a.Entry, waitqueue.Want{
			Keys: p.keys(), Class: waitqueue.Class(rapid.IntRange(0, 5).Draw(p.t, "class") / 5), Patient: a.patient,
			Waiter: a,
		})
		p.all = append(p.all, a)
	}},
	"one runs": {func(p *process) int { return times(2, len(p.only(runs)) > 0) }, func(p *process) {
		a := p.one(runs)
		a.awake, a.wakes = false, 0
		switch turn, d := p.q.Yield(&a.Entry, at(p.now)); {
		case !turn:
			p.q.Status(&a.Entry)
		case d > 0:
			a.wakes = p.now + d
		default:
			a.trying = !p.q.Begin(&a.Entry, p.now).Taken
		}
	}},
	"an attempt succeeds": {func(p *process) int {
		return times(4, p.holder == nil && p.taken == nil && !p.theirs && len(p.only(tries)) > 0)
	}, func(p *process) {
		a := p.one(tries)
		a.trying = false
		p.ends = p.now + modelWindow
		if rapid.IntRange(0, 7).Draw(p.t, "slow") == 0 {
			p.ends = p.now // it has taken as long
		}
		p.leaves(a, rapid.IntRange(0, 3).Draw(p.t, "followed") > 0)
	}},
	"an attempt is refused": {func(p *process) int { return times(2, len(p.only(tries)) > 0) }, func(p *process) {
		a := p.one(tries)
		p.q.End(&a.Entry)
		a.trying, a.asked = false, true
		p.q.Status(&a.Entry)
	}},
	"one gives up": {func(p *process) int { return times(1, len(p.only(rests)) > 0) }, func(p *process) {
		a := p.one(rests)
		if taken, _ := p.q.Taken(&a.Entry); !taken {
			p.q.GiveUp(&a.Entry, at(p.now), nil, 0)
			p.remove(a)
		}
	}},
	"time passes": {func(*process) int { return 1 }, func(p *process) {
		p.now += time.Duration(rapid.IntRange(1, 5).Draw(p.t, "ms")) * time.Millisecond
		for _, a := range p.all {
			if a.wakes > 0 && a.wakes <= p.now {
				a.awake = true
			}
		}
	}},
	"a reminder comes": {func(p *process) int { return times(2, len(p.timers) > 0) }, func(p *process) {
		i := rapid.IntRange(0, len(p.timers)-1).Draw(p.t, "which")
		until := p.timers[i]
		p.now = max(p.now, until-time.Duration(rapid.IntRange(0, 1).Draw(p.t, "early"))) // by the clock it may be
		p.timers = slices.Delete(p.timers, i, i+1)
		p.q.Remind("key", until)
		if p.taken != nil {
			p.late++
		}
	}},
	"the lock is released, and passed on if it may be": {func(p *process) int {
		return times(2, p.holder != nil && p.taken == nil)
	}, func(p *process) {
		if p.ends > 0 && !p.extended && p.now < p.ends {
			waiter, e := p.q.Take("key", p.now, func(any) bool { return rapid.IntRange(0, 3).Draw(p.t, "fits") > 0 })
			if e != nil {
				p.taken = waiter.(*actor)
				p.remove(p.taken)
				p.holder = nil
				p.passes++
				return
			}
		}
		p.released()
	}},
	"the next one finds it over": {func(p *process) int { return times(1, p.taken != nil) }, func(p *process) {
		e := &p.taken.Entry
		p.q.Pass(e)
		p.taken = nil
		p.released()
		p.q.GiveUp(e, at(p.now), nil, 0)
	}},
	"the next one has it": {func(p *process) int { return times(3, p.taken != nil) }, func(p *process) {
		p.q.Pass(&p.taken.Entry)
		p.leaves(p.taken, true)
		p.taken = nil
	}},
	"the lock is extended": {func(p *process) int {
		return times(1, p.holder != nil && p.ends > p.now && !p.extended)
	}, func(p *process) {
		p.extended = true
		p.q.Remind("key", p.ends)
	}},
	"another process releases": {func(p *process) int { return times(2, p.theirs) }, func(p *process) {
		p.theirs = false
		if len(p.only(func(a *actor) bool { return a.asked })) > 0 {
			p.q.Notify("key", 0, 0)
			p.q.Notify("key", 1, 0)
		}
	}},
}
