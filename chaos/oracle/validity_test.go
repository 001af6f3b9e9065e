package oracle_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

func TestHoldsWithoutTimeLeftAreFound(t *testing.T) {
	judge(t, []trial{
		{"holds with time left", func(h *tape) { h.hold(1, history.Plain, 0, 5, 100) }, 0},
		{"a hold without", func(h *tape) { h.hold(1, history.Plain, 0, 5, 5) }, 1},
		{"one of many", func(h *tape) {
			for at := int64(100); at < 1100; at += 10 {
				h.hold(1, history.Plain, at, at+1, at+100)
			}
			h.hold(1, history.Plain, 0, 5, 5)
		}, 0},
		{"granted late on a machine that stood still", func(h *tape) {
			h.hold(1, history.Plain, 0, 50, 20)
			h.stall(10, 40)
		}, 0},
	}, oracle.NameValidity, func(v *history.View) []oracle.Violation { return oracle.Validity(v, 0.05) })
}
