package oracle_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

func TestVictimsOfFailuresElsewhereAreFound(t *testing.T) {
	quiet := func(e *history.Event) { e.Quiet = true }
	renewed := func(e *history.Event) { e.Quiet, e.Renew = true, true }
	refused := func(h *tape, outcome history.Outcome, call, ret int64) {
		h.fail(1, outcome, call, ret, 0)
		h.events[len(h.events)-2].Quiet = true
	}
	victims := func(allowed float64) func(v *history.View) []oracle.Violation {
		return func(v *history.View) []oracle.Violation {
			_, found := oracle.Victims(v, 100*time.Millisecond, 50*time.Millisecond, allowed)
			return found
		}
	}
	outage := func(h *tape) { h.mark(100, history.MajorityLost, 1); h.mark(200, history.MajorityBack, 1) }
	oneLostOfTen := func(h *tape) {
		for range 9 {
			h.release(h.hold(1, history.Plain, 0, 1, 300, renewed), 900, 901)
		}
		h.done(h.hold(1, history.Plain, 0, 1, 300, renewed), 600)
	}
	judge(t, []trial{
		{"a free key in time", func(h *tape) { h.hold(1, history.Plain, 0, 99, 1000, quiet) }, 0},
		{"a free key that took too long", func(h *tape) { h.hold(1, history.Plain, 0, 101, 1000, quiet) }, 1},
		{"a free key that is said to be held", func(h *tape) { refused(h, history.Held, 0, 5) }, 1},
		{"a free key without a quorum", func(h *tape) { refused(h, history.NoQuorum, 0, 5) }, 1},
		{"who gives up early", func(h *tape) {
			refused(h, history.Cancelled, 0, 5)
			h.hold(1, history.Plain, 10, 12, 1000, quiet)
		}, 0},
		{"who gives up late", func(h *tape) { refused(h, history.Cancelled, 0, 105) }, 1},
		{"somebody else's key", func(h *tape) { h.fail(1, history.Held, 0, 5, 0) }, 0},
		{"who waits far longer than an outage lasts", func(h *tape) {
			outage(h)
			h.hold(1, history.Plain, 0, 260, 1000, quiet)
		}, 1},
		{"shortly after an outage, and later", func(h *tape) {
			outage(h)
			refused(h, history.NoQuorum, 240, 245)
			h.hold(1, history.Plain, 260, 262, 1000, quiet)
		}, 0},
		{"long after an outage", func(h *tape) {
			outage(h)
			refused(h, history.NoQuorum, 260, 265)
		}, 1},
		{"the machine stood still", func(h *tape) {
			h.hold(1, history.Plain, 0, 1, 1000, quiet)
			h.stall(100, 200)
			h.hold(1, history.Plain, 99, 205, 1000, quiet)
		}, 0},
		{"all met an outage: it does not know", func(h *tape) {
			h.mark(100, history.MajorityLost, history.Everyone)
			refused(h, history.NoQuorum, 110, 115)
		}, 1},
		{"a hold that is kept", func(h *tape) { h.release(h.hold(1, history.Plain, 0, 1, 300, renewed), 900, 901) }, 0},
		{"a hold that is lost", func(h *tape) { h.done(h.hold(1, history.Plain, 0, 1, 300, renewed), 600) }, 1},
		{"a hold that nobody could extend", func(h *tape) {
			id := h.hold(1, history.Plain, 0, 1, 300, renewed)
			h.mark(400, history.KeepLost, 1)
			h.done(id, 600)
		}, 0},
	}, oracle.NameVictims, victims(0))
	judge(t, []trial{
		{"one late acquisition of fifty", func(h *tape) {
			for i := range int64(49) {
				h.hold(1, history.Plain, 10*i, 10*i+5, 1000, quiet)
			}
			h.hold(1, history.Plain, 600, 800, 1000, quiet)
		}, 0},
		{"seven late acquisitions of fifty", func(h *tape) {
			for i := range int64(43) {
				h.hold(1, history.Plain, 10*i, 10*i+5, 1000, quiet)
			}
			for i := range int64(7) {
				h.hold(1, history.Plain, 600+200*i, 800+200*i, 3000, quiet)
			}
		}, 7},
		{"one lost hold of ten", oneLostOfTen, 1},
		{"one lost hold of ten while a fault is on", func(h *tape) { h.fault("kill", 0, 900); oneLostOfTen(h) }, 0},
	}, oracle.NameVictims, victims(0.02))
	h := &tape{}
	h.hold(1, history.Plain, 0, 1, 300, renewed)
	h.hold(1, history.Plain, 0, 7, 300, quiet)
	h.mark(400, history.Healed, history.Everyone)
	if q, _ := oracle.Victims(h.view(), time.Second, 0, 0); q.Holds != 1 || q.Free != 2 || q.P99 != 7*ms {
		t.Errorf("%+v, want one hold and two free keys, the slowest after 7 ms", q)
	}
}
