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

// The rules of Next in their order. Each row breaks the rules before its own, and those behind it would say something
// else.
func TestTheFirstRuleThatFitsDecides(t *testing.T) {
	turn := waitqueue.Status{Turn: true}
	because := func(why waitqueue.Reason) waitqueue.Status { return waitqueue.Status{Turn: true, Why: why} }
	every := contend.Policy{Every: time.Minute, MaxAttempts: 9}
	outage := contend.Policy{Every: time.Minute, MaxAttempts: 9, MaxOutage: time.Second}
	far := contend.Progress{Unreached: true}
	for name, test := range map[string]struct {
		policy contend.Policy
		before contend.Progress
		after  contend.After
		view   contend.View
		want   contend.Step
	}{
		"passed a lock, though an attempt is due": {
			every, far, first, contend.View{
				Now: now + time.Hour, Status: waitqueue.Status{Taken: true, Turn: true, Why: waitqueue.Free},
			}, contend.Step{Do: contend.TakeOver},
		},
		"enters again, out of turn": {
			every, far, first, contend.View{
				Now: now + ms, Status: waitqueue.Status{Why: waitqueue.Enters | waitqueue.Free},
			}, contend.Step{Do: contend.Try, Enters: true},
		},
		"first of its queue": {
			every, far, first,
			contend.View{Now: now + ms, Status: because(waitqueue.First | waitqueue.Missed)},
			contend.Step{Do: contend.Try, Counts: true},
		},
		"free": {
			every, far, first, contend.View{Now: now + ms, Status: because(waitqueue.Free)}, contend.Step{
				Do: contend.Try, Counts: true,
			},
		},
		"free, out of turn": {
			every, far, first, contend.View{Now: now + ms, Status: waitqueue.Status{Why: waitqueue.Free}}, contend.Step{
				Until: now + time.Minute,
			},
		},
		"missed": {
			every, far, first, contend.View{Now: now + ms, Status: because(waitqueue.Missed)}, contend.Step{
				Do: contend.Try,
			},
		},
		"enters, in turn": {
			every, far, first, contend.View{Now: now + ms, Status: because(waitqueue.Enters)}, contend.Step{
				Do: contend.Try,
			},
		},
		"due": {
			every, contend.Progress{}, first, contend.View{Now: now + time.Minute, Status: turn}, contend.Step{
				Do: contend.Try, Counts: true,
			},
		},
		"due, and unreached before": {
			every, far, first, contend.View{Now: now + time.Minute, Status: turn}, contend.Step{
				Do: contend.Try, Counts: true, StepBack: true,
			},
		},
		"due out of turn": {
			every, far, first, contend.View{Now: now + time.Minute}, contend.Step{
				Do: contend.Try, Counts: true, StepBack: true,
			},
		},
		"not yet due": {
			every, far, first, contend.View{Now: now + 2*ms, Status: turn}, contend.Step{Until: now + time.Minute},
		},
		"soon, for company": {
			every, contend.Progress{}, first, contend.View{
				Now: now + 2*ms, Status: waitqueue.Status{Turn: true, Company: true},
			}, contend.Step{Do: contend.Try},
		},
		"not yet soon": {
			every, contend.Progress{}, first, contend.View{
				Now: now + ms, Status: waitqueue.Status{Turn: true, Company: true},
			}, contend.Step{Until: now + 2*ms},
		},
		"soon, out of turn": {
			every,
			contend.Progress{},
			first,
			contend.View{Now: now + 2*ms, Status: waitqueue.Status{Company: true}},
			contend.Step{Until: now + time.Minute},
		},
		"refresh of a position": {
			every,
			contend.Progress{},
			contend.After{Refusal: held, Turn: true, Counts: true, Subscribed: true},
			contend.View{Now: now + 27*time.Second, Status: turn},
			contend.Step{Do: contend.Try},
		},
		"refresh of a claim": {
			every, contend.Progress{Claims: true}, first, contend.View{Now: now + 1125*ms, Status: turn}, contend.Step{
				Do: contend.Try,
			},
		},
		"refresh, out of turn": {
			every, contend.Progress{Claims: true}, first, contend.View{Now: now + 1125*ms}, contend.Step{
				Until: now + time.Minute,
			},
		},
		"outage over": {
			outage, far,
			contend.After{Turn: true, Counts: true},
			contend.View{Now: now + 2*ms, Status: turn},
			contend.Step{Do: contend.GiveUp},
		},
		"outage of others over": {
			outage, far, first, contend.View{Now: now + 2*ms, Status: turn}, contend.Step{Do: contend.Try},
		},
		"outage of others over, out of turn": {
			outage, far, first, contend.View{Now: now + 2*ms}, contend.Step{Do: contend.GiveUp},
		},
		"outage not over": {
			outage, far, first, contend.View{Now: now + 2*ms, OutageLeft: time.Second, Status: turn}, contend.Step{
				Until: now + 1002*ms,
			},
		},
		"until it is woken": {
			contend.Policy{},
			far,
			contend.After{Refusal: held, Counts: true},
			contend.View{Now: now + time.Minute},
			contend.Step{},
		},
		"woken by an outage's end": {
			contend.Policy{MaxOutage: time.Second}, far, contend.After{Refusal: held, Counts: true}, contend.View{
				Now: now, OutageLeft: time.Second,
			}, contend.Step{Until: now + time.Second},
		},
	} {
		p := planned(&test.policy, test.before, test.after)
		if got := p.Next(&test.policy, &test.view); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// due is when the waiter that has been planned so tries again, alone and in turn.
func due(o *contend.Policy, p contend.Progress, a contend.After) time.Duration {
	return planned(o, p, a).Next(o, &contend.View{Now: now, Status: waitqueue.Status{Turn: true}}).Until - now
}

func TestWhenTheNextAttemptIsDue(t *testing.T) {
	mends := contend.Policy{Every: time.Minute, MendTime: 10 * time.Second}
	mendable := contend.After{Refusal: contend.Refusal{Mendable: true}, Turn: true, Counts: true}
	for name, test := range map[string]struct {
		policy contend.Policy
		before contend.Progress
		after  contend.After
		want   time.Duration
	}{
		"backoff":             {contend.Policy{}, contend.Progress{}, first, 2 * ms},
		"a longer backoff":    {contend.Policy{}, contend.Progress{Attempts: 4}, first, 16 * ms},
		"the longest backoff": {contend.Policy{}, contend.Progress{Attempts: 40}, first, 64 * ms},
		"notified": {
			contend.Policy{}, contend.Progress{}, contend.After{
				Refusal: held, Turn: true, Counts: true, Subscribed: true,
			}, 200 * ms,
		},
		"a key that expires": {
			contend.Policy{}, contend.Progress{Attempts: 40}, contend.After{
				Refusal: contend.Refusal{Held: true, Free: 20 * ms}, Turn: true,
			}, 22 * ms,
		},
		"a key that expires later": {
			contend.Policy{}, contend.Progress{Attempts: 40}, contend.After{
				Refusal: contend.Refusal{Held: true, Free: 40 * ms}, Turn: true,
			}, 64 * ms,
		},
		"every minute": {contend.Policy{Every: time.Minute}, contend.Progress{}, first, time.Minute},
		"a kept key": {
			contend.Policy{Every: time.Minute}, contend.Progress{}, contend.After{
				Refusal: contend.Refusal{Held: true, Kept: 5 * time.Second}, Turn: true, Counts: true,
			}, 5*time.Second + 2*ms,
		},
		"complaints": {
			contend.Policy{}, contend.Progress{ComplainedOf: now - 8*time.Second}, first, time.Second,
		},
		"complaints for long": {contend.Policy{}, contend.Progress{ComplainedOf: 1}, first, 5 * time.Second},
		"the last look at complaints": {
			mends, contend.Progress{ComplainedOf: now - 8*time.Second}, mendable, 2 * time.Second,
		},
		"complaints from before": {
			mends,
			contend.Progress{ComplainedOf: now - time.Minute, Since: now - 5*time.Second},
			mendable,
			5 * time.Second,
		},
		"complaints that pass": {
			mends, contend.Progress{ComplainedOf: now - 8*time.Second}, first, time.Minute,
		},
		"complaints waited out forever": {
			contend.Policy{Every: time.Minute},
			contend.Progress{ComplainedOf: now - 8*time.Second},
			mendable,
			time.Minute,
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
