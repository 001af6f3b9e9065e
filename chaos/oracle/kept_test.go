package oracle_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

func TestARenewedHoldIsLostOnlyForAReason(t *testing.T) {
	renewed := func(e *history.Event) { e.Renew = true }
	lose := func(h *tape, id uint64, at int64) { h.add(at, history.Event{Type: history.DoneClosed, Attempt: id}) }
	judge(t, []trial{
		{"released", func(h *tape) {
			id := h.hold(1, history.Plain, 0, 0, 1000, renewed)
			h.release(id, 5000, 5001)
			lose(h, id, 5000)
		}, 0},
		{"lost for no reason", func(h *tape) { lose(h, h.hold(1, history.Plain, 0, 0, 1000, renewed), 3000) }, 1},
		{"not to be renewed", func(h *tape) { lose(h, h.hold(1, history.Plain, 0, 0, 1000), 1000) }, 0},
		{"nobody could extend it", func(h *tape) {
			id := h.hold(1, history.Plain, 0, 0, 1000, renewed)
			h.mark(2100, history.KeepLost, 1)
			lose(h, id, 3000)
		}, 0},
		{"a short outage", func(h *tape) {
			id := h.hold(1, history.Plain, 0, 0, 1000, renewed)
			h.mark(2100, history.KeepLost, history.Everyone)
			h.mark(2290, history.KeepBack, history.Everyone)
			lose(h, id, 3000)
		}, 1},
		{"short outages that add up", func(h *tape) {
			id := h.hold(1, history.Plain, 0, 0, 1000, renewed)
			for at := int64(2100); at < 2900; at += 200 {
				h.mark(at, history.KeepLost, history.Everyone)
				h.mark(at+100, history.KeepBack, history.Everyone)
			}
			lose(h, id, 3000)
		}, 0},
		{"an outage long before", func(h *tape) {
			id := h.hold(1, history.Plain, 0, 0, 1000, renewed)
			h.mark(100, history.KeepLost, 1)
			h.mark(900, history.KeepBack, 1)
			lose(h, id, 3000)
		}, 1},
		{"it is excused", func(h *tape) {
			id := h.hold(1, history.Plain, 0, 0, 1000, renewed)
			lose(h, id, 3000)
			h.add(4000, history.Event{Type: history.Excused, Attempt: id})
		}, 0},
		{"another is excused", func(h *tape) {
			h.add(4000, history.Event{Type: history.Excused, Attempt: h.hold(1, history.Plain, 0, 0, 1000, renewed)})
			lose(h, h.hold(2, history.Plain, 0, 0, 1000, renewed), 3000)
		}, 1},
		{"masters are full, which takes nothing that is held", func(h *tape) {
			id := h.hold(1, history.Plain, 0, 0, 1000, renewed)
			h.mark(100, history.MajorityLost, 1)
			lose(h, id, 3000)
		}, 1},
	}, oracle.NameKept, oracle.Kept)
}
