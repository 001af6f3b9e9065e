package oracle_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

func TestARenewedHoldIsLostOnlyForAReason(t *testing.T) {
	judge(t, []trial{
		{"released", func(h *tape) {
			id := h.hold(1, history.Plain, 0, 0, 1000, renewed)
			h.release(id, 5000, 5001)
			h.done(id, 5000)
		}, 0},
		{"lost for no reason", func(h *tape) { h.done(h.hold(1, history.Plain, 0, 0, 1000, renewed), 3000) }, 1},
		{"not to be renewed", func(h *tape) { h.done(h.hold(1, history.Plain, 0, 0, 1000), 1000) }, 0},
		{"nobody could extend it", func(h *tape) {
			id := h.hold(1, history.Plain, 0, 0, 1000, renewed)
			h.mark(2100, history.KeepLost, 1)
			h.done(id, 3000)
		}, 0},
		{"a short outage", func(h *tape) {
			id := h.hold(1, history.Plain, 0, 0, 1000, renewed)
			h.mark(2100, history.KeepLost, history.Everyone)
			h.mark(2290, history.KeepBack, history.Everyone)
			h.done(id, 3000)
		}, 1},
		{"short outages that add up", func(h *tape) {
			id := h.hold(1, history.Plain, 0, 0, 1000, renewed)
			for at := int64(2100); at < 2900; at += 200 {
				h.mark(at, history.KeepLost, history.Everyone)
				h.mark(at+100, history.KeepBack, history.Everyone)
			}
			h.done(id, 3000)
		}, 0},
		{"an outage long before", func(h *tape) {
			id := h.hold(1, history.Plain, 0, 0, 1000, renewed)
			h.mark(100, history.KeepLost, 1)
			h.mark(900, history.KeepBack, 1)
			h.done(id, 3000)
		}, 1},
		{"it is excused", func(h *tape) {
			id := h.hold(1, history.Plain, 0, 0, 1000, renewed)
			h.done(id, 3000)
			h.add(4000, history.Event{Type: history.Excused, Attempt: id})
		}, 0},
		{"another is excused", func(h *tape) {
			h.add(4000, history.Event{Type: history.Excused, Attempt: h.hold(1, history.Plain, 0, 0, 1000, renewed)})
			h.done(h.hold(2, history.Plain, 0, 0, 1000, renewed), 3000)
		}, 1},
		{"masters are full, which takes nothing that is held", func(h *tape) {
			id := h.hold(1, history.Plain, 0, 0, 1000, renewed)
			h.mark(100, history.MajorityLost, 1)
			h.done(id, 3000)
		}, 1},
	}, oracle.NameKept, oracle.Kept)
}
