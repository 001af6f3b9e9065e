package contend_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/contend"
	"github.com/seed-624411e5/redlock/internal/waitqueue"
)

const (
	ms  = time.Millisecond
	now = time.Hour // at which each attempt of the tests has failed
)

// most draws the longest duration.
func most(d time.Duration) time.Duration { return d }

// planned is a waiter's progress after its n-th attempt has failed so.
func planned(o *contend.Policy, p contend.Progress, a contend.After) *contend.Progress {
	a.Now = now
	p.Attempts = max(1, p.Attempts)
	p.Plan(o, &a, most)
	return &p
}

var (
	held  = contend.Refusal{Held: true}
	first = contend.After{Refusal: held, Turn: true, Counts: true}
)

// at is what a waiter sees so long after its attempt.
func at(d time.Duration, s waitqueue.Status) contend.View {
	return contend.View{Now: now + d, Status: s}
}

// The rules of Next in their order. Each row breaks the rules before its own, and those behind it would say something
// else.
func TestTheFirstRuleThatFitsDecides(t *testing.T) {
	type status = waitqueue.Status
	none, turn, company := status{}, status{Turn: true}, status{Turn: true, Company: true}
	because := func(why waitqueue.Reason) status { return status{Turn: true, Why: why} }
	withOutage := func(v contend.View, left time.Duration) contend.View { v.OutageLeft = left; return v }
	every := contend.Policy{Every: time.Minute, MaxAttempts: 9}
	outage := contend.Policy{Every: time.Minute, MaxAttempts: 9, MaxOutage: time.Second}
	near, far, claims := contend.Progress{}, contend.Progress{Unreached: true}, contend.Progress{Claims: true}
	unheld, subscribed, outOfTurn := first, first, first
	unheld.Refusal, subscribed.Subscribed, outOfTurn.Turn = contend.Refusal{}, true, false
	try, counts := contend.Step{Do: contend.Try}, contend.Step{Do: contend.Try, Counts: true}
	back, giveUp := contend.Step{Do: contend.Try, Counts: true, StepBack: true}, contend.Step{Do: contend.GiveUp}
	until := func(d time.Duration) contend.Step { return contend.Step{Until: now + d} }
	for name, test := range map[string]struct {
		policy contend.Policy
		before contend.Progress
		after  contend.After
		view   contend.View
		want   contend.Step
	}{
		"passed a lock, though an attempt is due": {
			every, far, first, at(time.Hour, status{Taken: true, Turn: true, Why: waitqueue.Free}),
			contend.Step{Do: contend.TakeOver},
		},
		"enters again, out of turn": {
			every, far, first, at(ms, status{Why: waitqueue.Enters | waitqueue.Free}),
			contend.Step{Do: contend.Try, Enters: true},
		},
		"first of its queue":            {every, far, first, at(ms, because(waitqueue.First|waitqueue.Missed)), counts},
		"free":                          {every, far, first, at(ms, because(waitqueue.Free)), counts},
		"free, out of turn":             {every, far, first, at(ms, status{Why: waitqueue.Free}), until(time.Minute)},
		"missed":                        {every, far, first, at(ms, because(waitqueue.Missed)), try},
		"enters, in turn":               {every, far, first, at(ms, because(waitqueue.Enters)), try},
		"due":                           {every, near, first, at(time.Minute, turn), counts},
		"due, and unreached before":     {every, far, first, at(time.Minute, turn), back},
		"due out of turn":               {every, far, first, at(time.Minute, none), back},
		"not yet due":                   {every, far, first, at(2*ms, turn), until(time.Minute)},
		"soon, for company":             {every, near, first, at(2*ms, company), try},
		"not yet soon":                  {every, near, first, at(ms, company), until(2 * ms)},
		"soon, out of turn":             {every, near, first, at(2*ms, status{Company: true}), until(time.Minute)},
		"refresh of a position":         {every, near, subscribed, at(27*time.Second, turn), try},
		"refresh of a claim":            {every, claims, first, at(1125*ms, turn), try},
		"refresh, out of turn":          {every, claims, first, at(1125*ms, none), until(time.Minute)},
		"outage over":                   {outage, far, unheld, at(2*ms, turn), giveUp},
		"outage of others over":         {outage, far, first, at(2*ms, turn), try},
		"outage of others, out of turn": {outage, far, first, at(2*ms, none), giveUp},
		"outage not over": {
			outage, far, first, withOutage(at(2*ms, turn), time.Second), until(1002 * ms),
		},
		"until it is woken": {contend.Policy{}, far, outOfTurn, at(time.Minute, none), contend.Step{}},
		"woken by an outage's end": {
			contend.Policy{MaxOutage: time.Second},
			far, outOfTurn, withOutage(at(0, none), time.Second),
			until(time.Second),
		},
	} {
		p := planned(&test.policy, test.before, test.after)
		if got := p.Next(&test.policy, &test.view); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// Contenders that split the votes in step are notified in step. So the third split in a row puts the next attempt off,
// until a round ends otherwise.
func TestAfterThreeSplitRoundsANotificationDoesNotEndThePause(t *testing.T) {
	for _, o := range []contend.Policy{{}, {MaxAttempts: 99}} {
		var p contend.Progress
		split := contend.After{Refusal: contend.Refusal{Split: true, Masters: 4, Granted: 2}, Turn: true, Counts: true}
		free := at(ms/2, waitqueue.Status{Turn: true, Why: waitqueue.Free})
		round := func(a contend.After) contend.Step {
			a.Now = now
			p.Attempts++
			p.Plan(&o, &a, most)
			return p.Next(&o, &free)
		}
		try := contend.Step{Do: contend.Try, Counts: true}
		for n, want := range []contend.Step{try, try, {Until: now + ms}, {Until: now + 2*ms}} {
			if got := round(split); got != want {
				t.Errorf("%+v: after %d split rounds: %+v, want %+v", o, n+1, got, want)
			}
		}
		if got := p.Next(&o, &contend.View{Now: now + 2*ms, Status: waitqueue.Status{Turn: true}}); got != try {
			t.Errorf("%+v: when the pause is over: %+v", o, got)
		}
		for _, other := range []contend.After{first, split} {
			if got := round(other); got != try {
				t.Errorf("%+v: after a round that was refused: %+v", o, got)
			}
		}
	}
}

// due is when the waiter that has been planned so tries again, alone and in turn.
func due(o *contend.Policy, p contend.Progress, a contend.After) time.Duration {
	return planned(o, p, a).Next(o, &contend.View{Now: now, Status: waitqueue.Status{Turn: true}}).Until - now
}

func TestWhenTheNextAttemptIsDue(t *testing.T) {
	backsOff, every := contend.Policy{}, contend.Policy{Every: time.Minute}
	mends := contend.Policy{Every: time.Minute, MendTime: 10 * time.Second}
	free := func(d time.Duration) contend.After {
		return contend.After{Refusal: contend.Refusal{Held: true, Free: d}, Turn: true}
	}
	notified, kept, mendable := first, first, first
	notified.Subscribed = true
	kept.Refusal = contend.Refusal{Held: true, Kept: 5 * time.Second}
	mendable.Refusal = contend.Refusal{Mendable: true}
	after := func(n int) contend.Progress { return contend.Progress{Attempts: n} }
	complained := contend.Progress{ComplainedOf: now - 8*time.Second}
	for name, test := range map[string]struct {
		policy contend.Policy
		before contend.Progress
		after  contend.After
		want   time.Duration
	}{
		"backoff":                       {backsOff, after(0), first, 2 * ms},
		"a longer backoff":              {backsOff, after(4), first, 16 * ms},
		"the longest backoff":           {backsOff, after(40), first, 64 * ms},
		"notified":                      {backsOff, after(0), notified, 200 * ms},
		"a key that expires":            {backsOff, after(40), free(20 * ms), 22 * ms},
		"a key that expires later":      {backsOff, after(40), free(40 * ms), 64 * ms},
		"every minute":                  {every, after(0), first, time.Minute},
		"a kept key":                    {every, after(0), kept, 5*time.Second + 2*ms},
		"complaints":                    {backsOff, complained, first, time.Second},
		"complaints for long":           {backsOff, contend.Progress{ComplainedOf: 1}, first, 5 * time.Second},
		"the last look at complaints":   {mends, complained, mendable, 2 * time.Second},
		"complaints that pass":          {mends, complained, first, time.Minute},
		"complaints waited out forever": {every, complained, mendable, time.Minute},
		"complaints from before": {
			mends,
			contend.Progress{ComplainedOf: now - time.Minute, Since: now - 5*time.Second},
			mendable,
			5 * time.Second,
		},
	} {
		if got := due(&test.policy, test.before, test.after); got != test.want {
			t.Errorf("%s: after %v, want %v", name, got, test.want)
		}
	}
}

// An attempt that does not count puts off nothing that MaxAttempts counts.
func TestALookPutsNothingOff(t *testing.T) {
	o := contend.Policy{Every: time.Minute, MaxAttempts: 3}
	p := planned(&o, contend.Progress{}, first)
	a := contend.After{Refusal: held, Turn: true, Now: now + 10*time.Second}
	p.Plan(&o, &a, most)
	if got := p.Next(&o, &contend.View{Now: a.Now, Status: waitqueue.Status{Turn: true}}); got.Until != now+
		time.Minute {
		t.Errorf("the next attempt is due %v after the one that counted, want a minute", got.Until-now)
	}
}

// On a slow network, or a starved machine, rounds take long; pauses must not take many times as long.
func TestHazard31PausesAfterSplitVotesAreBounded(t *testing.T) {
	for took, limit := range map[time.Duration]time.Duration{
		100 * time.Microsecond: 64 * time.Millisecond,
		10 * time.Millisecond:  64 * time.Millisecond,
		500 * time.Millisecond: 2 * time.Second,
	} {
		last := time.Duration(0)
		for n := 1; n < 20; n++ {
			r := contend.Refusal{Held: true, Split: true, Granted: 1, Masters: 5}
			pause := r.Spread(n, took, most)
			if pause > limit || pause < last || n == 1 && pause > max(2*time.Millisecond, took) {
				t.Errorf("after %d rounds of %v: %v, and %v before", n, took, pause, last)
			}
			last = pause
		}
		if last < limit/2 {
			t.Errorf("after many rounds of %v: %v, which is too short for others to get through", took, last)
		}
	}
}
