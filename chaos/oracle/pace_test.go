package oracle_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

func TestHazard137CallsThatTakeLongAreFound(t *testing.T) {
	waits := func(e *history.Event) { e.Wait = 20_000 * ms }
	// calls has ten acquisitions that take so long, and their releases.
	calls := func(h *tape, took, release int64) {
		for n := range int64(10) {
			at := 5000 + 10_000*n
			h.release(h.hold(1, history.Plain, at, at+took, at+9000, waits), at+took+10, at+took+10+release)
		}
	}
	judge(t, []trial{
		{"both in time", func(h *tape) { calls(h, 900, 900) }, 0},
		{"acquisitions are slow", func(h *tape) { calls(h, 1100, 10) }, 1},
		{"releases are slow", func(h *tape) { calls(h, 10, 1100) }, 1},
		{"both are slow", func(h *tape) { calls(h, 1100, 1100) }, 2},
		{"one of eleven is slow", func(h *tape) {
			calls(h, 10, 10)
			h.hold(1, history.Plain, 110_000, 112_000, 115_000, waits)
		}, 0},
		{"another client wanted the key", func(h *tape) {
			calls(h, 1100, 10)
			for n := range int64(10) {
				h.fail(2, history.Held, 5000+10_000*n, 5500+10_000*n, 0)
			}
		}, 0},
		{"another client wanted the key, which those do not wait for", func(h *tape) {
			calls(h, 1100, 10)
			for n := range int64(10) {
				h.fail(2, history.Held, 5000+10_000*n, 5500+10_000*n, 0)
			}
			for i := range h.events {
				h.events[i].Wait = 0
			}
		}, 1},
		{"tries are refused late", func(h *tape) {
			for n := range int64(3) {
				h.fail(1, history.Held, 5000+10_000*n, 6100+10_000*n, 0)
			}
		}, 1},
		{"extensions are slow", func(h *tape) {
			for n := range int64(3) {
				at := 5000 + 10_000*n
				h.extend(h.hold(1, history.Plain, at, at+1, at+9000), at+10, at+1100, at+9000)
			}
		}, 1},
		{"extensions are in time, or cut short", func(h *tape) {
			for n := range int64(3) {
				at := 5000 + 10_000*n
				h.extend(h.hold(1, history.Plain, at, at+1, at+9000), at+10, at+900, at+9000)
			}
			h.add(110_000, history.Event{
				Type: history.ExtendCall, Attempt: h.hold(1, history.Plain, 109_000, 109_001, 120_000),
			})
			h.mark(110_900, history.Healed, 0)
		}, 0},
		{"extensions are not answered", func(h *tape) {
			for n := range int64(3) {
				at := 5000 + 10_000*n
				id := h.hold(int(n), history.Plain, at, at+1, at+9000)
				h.add(at+10, history.Event{Type: history.ExtendCall, Attempt: id})
			}
			h.mark(110_900, history.Healed, 0)
		}, 1},
		{"no majority was in reach", func(h *tape) {
			h.mark(0, history.MajorityLost, 1)
			calls(h, 1100, 1100)
		}, 0},
		{"the client stood still", func(h *tape) {
			h.mark(0, history.Paused, 1)
			calls(h, 1100, 1100)
		}, 0},
		{"the machine stood still", func(h *tape) {
			calls(h, 1100, 10)
			for n := range int64(10) {
				h.stall(5100+10_000*n, 5900+10_000*n)
			}
		}, 0},
	}, oracle.NamePace, func(v *history.View) []oracle.Violation {
		return oracle.Pace(v, time.Second, time.Second)
	})
}
