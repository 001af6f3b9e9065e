package verdict_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/verdict"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/report"
)

// tape writes a history; times are in milliseconds.
type tape struct {
	events  []history.Event
	attempt uint64
}

func (t *tape) add(at int64, e history.Event) {
	e.At = at * int64(time.Millisecond)
	t.events = append(t.events, e)
}

// ask is an acquire-call of the key "k" with a ttl of 2 s by a client that waits for 20 s.
func (t *tape) ask(client int, at int64, change ...func(*history.Event)) uint64 {
	t.attempt++
	e := history.Event{
		Type: history.AcquireCall, Client: client, Attempt: t.attempt, Key: "k", TTL: 2e9, Wait: 20e9, NoDone: true,
	}
	for _, f := range change {
		f(&e)
	}
	t.add(at, e)
	return t.attempt
}

// get grants an attempt for as long as its ttl.
func (t *tape) get(id uint64, at int64, change ...func(*history.Event)) uint64 {
	e := history.Event{
		Type: history.AcquireReturn, Attempt: id, Outcome: history.Acquired,
		Until: (at + 1990) * int64(time.Millisecond),
	}
	for _, f := range change {
		f(&e)
	}
	t.add(at, e)
	return id
}

// fail ends an attempt without a hold.
func (t *tape) fail(id uint64, at int64, outcome history.Outcome) {
	t.add(at, history.Event{Type: history.AcquireReturn, Attempt: id, Outcome: outcome})
}

// take is an acquisition of a millisecond.
func (t *tape) take(client int, at int64, change ...func(*history.Event)) uint64 {
	return t.get(t.ask(client, at-1, change...), at)
}

// leave is a release of a millisecond.
func (t *tape) leave(id uint64, at int64) { t.leaves(id, at, at+1, history.Acquired) }

func (t *tape) leaves(id uint64, at, ret int64, outcome history.Outcome) {
	t.add(at, history.Event{Type: history.ReleaseCall, Attempt: id})
	t.add(ret, history.Event{Type: history.ReleaseReturn, Attempt: id, Outcome: outcome})
}

// extend is an extension that gives so much time from its call on.
func (t *tape) extend(id uint64, at, ret, gives int64, outcome history.Outcome) {
	t.add(at, history.Event{Type: history.ExtendCall, Attempt: id, TTL: 2e9})
	t.add(ret, history.Event{
		Type: history.ExtendReturn, Attempt: id, TTL: 2e9, Outcome: outcome,
		Until: (at + gives) * int64(time.Millisecond),
	})
}

// healthy has clients 1 and 2 take turns at another key, from a time on.
func (t *tape) healthy(from int64) {
	next, at := t.ask(1, from, onKey("healthy")), from+1
	for turn := range 24 {
		held := t.get(next, at)
		next = t.ask(2-turn%2, at+5, onKey("healthy"))
		t.leave(held, at+10)
		at += 12
	}
	t.leave(t.get(next, at), at+10)
}

// crowd has clients 1 and 2 take turns four hundred times.
func (t *tape) crowd() {
	for n := range int64(400) {
		at := 5000 + 25*n
		t.leave(t.take(1, at), at+10)
		t.leave(t.take(2, at+12), at+22)
	}
}

// pause stops client 1 for some time.
func (t *tape) pause(from, to int64) {
	t.add(from, history.Event{Type: history.Paused, Client: 1})
	t.add(to, history.Event{Type: history.Resumed, Client: 1})
}

// again writes something so many times, which begins every so many milliseconds.
func again(times, every int64, write func(t *tape, at int64)) func(*tape) {
	return func(t *tape) {
		for n := range times {
			write(t, 5000+every*n)
		}
	}
}

// entersLate repeats a run with containers on an overloaded machine. An owner asks to enter again. It gets no answer
// until its first hold has expired, and its release fails. Every 100 ms the harness asks three of the five masters, and
// each answer takes so many milliseconds (late). The lock waits 100 ms for an answer.
func (t *tape) entersLate(from, late int64) {
	outer := t.get(t.ask(1, from, of(history.Reentrant)), from+20, by("me"))
	inner := t.ask(1, from+21, of(history.Reentrant), by("me"))
	for at := from; at < from+2100; at += 100 {
		for master := range 3 {
			t.add(at, history.Event{
				Type: history.Slow, Client: history.Everyone, Master: master, Value: late * int64(time.Millisecond),
				Patience: 100 * int64(time.Millisecond),
			})
		}
	}
	t.leave(t.get(inner, from+2100), from+2110)
	t.leaves(outer, from+2120, from+2220, history.NoQuorum)
}

func onKey(key string) func(*history.Event)     { return func(e *history.Event) { e.Key = key } }
func by(owner string) func(*history.Event)      { return func(e *history.Event) { e.Owner = owner } }
func of(kind history.Kind) func(*history.Event) { return func(e *history.Event) { e.Kind = kind } }
func until(ms int64) func(*history.Event) {
	return func(e *history.Event) { e.Until = ms * int64(time.Millisecond) }
}
func token(n uint64) func(*history.Event) { return func(e *history.Event) { e.Token = n } }
func once(e *history.Event)               { e.Wait = 0 }
func renewed(e *history.Event)            { e.Renew = true }
func tellsDone(e *history.Event)          { e.NoDone = false }
func patient(ms int64) func(*history.Event) {
	return func(e *history.Event) { e.Patience = ms * int64(time.Millisecond) }
}

// judged is a history and how its judgement must begin: with a verdict, and the name of an oracle or the words of the
// first reason.
type judged struct {
	name   string
	want   report.Verdict
	reason string
	write  func(t *tape)
}

func check(t *testing.T, cases []judged) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			var h tape
			h.healthy(0)
			tt.write(&h)
			j, err := verdict.Check(h.events, oracle.Limits{}, true)
			must(t, err)
			reasons := strings.Join(j.Reasons, "\n")
			if j.Verdict != tt.want || !strings.HasPrefix(reasons, tt.reason) {
				t.Errorf("%s, want %s for %q: %s", j.Verdict, tt.want, tt.reason, reasons)
			}
		})
	}
}
