package oracle_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

func TestMoreThanNHoldersAreFound(t *testing.T) {
	hold := func(h *tape, client int, from, until int64) uint64 {
		return h.hold(client, history.Shared, from-1, from, until)
	}
	twoMore := func(h *tape) { hold(h, 2, 20, 90); hold(h, 3, 30, 90) }
	judge(t, []trial{
		{"as many as there may be", twoMore, 0},
		{"one more", func(h *tape) { hold(h, 1, 10, 90); twoMore(h) }, 1},
		{"two more", func(h *tape) { hold(h, 1, 10, 90); twoMore(h); hold(h, 4, 40, 90) }, 2},
		{"after a release", func(h *tape) { h.release(hold(h, 1, 10, 90), 25, 26); twoMore(h) }, 0},
		{"after a bound", func(h *tape) { h.release(hold(h, 1, 10, 25), 80, 81); twoMore(h) }, 0},
		{"before a release", func(h *tape) { h.release(hold(h, 1, 10, 90), 35, 36); twoMore(h) }, 1},
		{"one of another semaphore", func(h *tape) {
			h.hold(1, history.Shared, 9, 10, 90, onKey("another"))
			twoMore(h)
		}, 0},
	}, "", func(v *history.View) []oracle.Violation { return oracle.AtMost(v, 2) })
}
