package oracle_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

func TestAReentryThatWaitsForItsOwnHoldIsFound(t *testing.T) {
	me := owner("me")
	behindItself := func(h *tape) {
		h.hold(1, history.Reentrant, 0, 2, 1000, me)
		h.hold(1, history.Reentrant, 10, 1001, 2000, me)
	}
	judge(t, []trial{
		{"at once", func(h *tape) {
			h.hold(1, history.Reentrant, 0, 2, 1000, me)
			h.hold(1, history.Reentrant, 10, 50, 1000, me)
		}, 0},
		{"behind itself", behindItself, 1},
		{"given up behind itself", func(h *tape) {
			h.hold(1, history.Reentrant, 0, 2, 1000, me)
			h.hold(1, history.Reentrant, 10, 400, 1000, me)
			h.events[len(h.events)-1].Outcome = history.Cancelled
		}, 1},
		{"behind somebody else", func(h *tape) {
			h.hold(1, history.Reentrant, 0, 2, 1000, owner("you"))
			h.hold(2, history.Reentrant, 10, 1001, 2000, me)
		}, 0},
		{"after its first hold was released", func(h *tape) {
			h.release(h.hold(1, history.Reentrant, 0, 2, 1000, me), 20, 21)
			h.hold(1, history.Reentrant, 30, 600, 2000, me)
		}, 0},
		{"without a majority", func(h *tape) {
			h.hold(1, history.Reentrant, 0, 2, 1000, me)
			h.mark(5, history.MajorityLost, 1)
			h.hold(1, history.Reentrant, 10, 600, 2000, me)
		}, 0},
		{"while masters answered late", func(h *tape) {
			behindItself(h)
			h.slow(20, 500, 50)
			h.slow(500, 900, 50)
		}, 0},
		{"behind itself, with late masters for a part of it", func(h *tape) {
			behindItself(h)
			h.slow(20, 500, 50)
		}, 1},
		{"behind itself, while masters answered later than usual and soon enough", func(h *tape) {
			behindItself(h)
			for at := int64(10); at < 1000; at += 44 {
				h.slow(at, at+44, 50)
			}
		}, 1},
		{"behind itself, with late masters before and after", func(h *tape) {
			h.hold(1, history.Reentrant, 50, 52, 1000, me)
			h.hold(1, history.Reentrant, 60, 1001, 2000, me)
			h.slow(0, 60, 50)
			h.slow(1000, 2000, 50)
		}, 1},
		{"another kind", func(h *tape) {
			h.hold(1, history.Plain, 0, 2, 1000, me)
			h.hold(1, history.Plain, 10, 1001, 2000, me)
		}, 0},
	}, oracle.NameReentry, func(v *history.View) []oracle.Violation { return oracle.Reentry(v, 300*time.Millisecond) })
}
