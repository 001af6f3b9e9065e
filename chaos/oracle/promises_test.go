package oracle_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

func TestHazard137AnAcquisitionThatIgnoresItsContextIsFound(t *testing.T) {
	asks := func(h *tape, at, patience, took int64, outcome history.Outcome) {
		h.ids++
		e := history.Event{Type: history.AcquireCall, Client: 1, Attempt: h.ids, Key: "k", Patience: patience * ms}
		h.add(at, e)
		h.add(at+took, history.Event{Type: history.AcquireReturn, Client: 1, Attempt: h.ids, Outcome: outcome})
	}
	fourTimes := func(h *tape, patience, took int64, outcome history.Outcome) {
		for n := range int64(4) {
			asks(h, 1000*n, patience, took, outcome)
		}
	}
	judge(t, []trial{
		{"it ends with its context", func(h *tape) { fourTimes(h, 10, 15, history.Cancelled) }, 0},
		{"it goes on", func(h *tape) { fourTimes(h, 10, 900, history.Acquired) }, 1},
		{"two of four go on", func(h *tape) {
			asks(h, 0, 10, 15, history.Cancelled)
			asks(h, 500, 10, 15, history.Cancelled)
			asks(h, 1000, 10, 900, history.Acquired)
			asks(h, 2000, 10, 900, history.Acquired)
		}, 0},
		{"there was no end to wait for", func(h *tape) { fourTimes(h, 0, 900, history.Acquired) }, 0},
		{"the machine stood still", func(h *tape) {
			for n := range int64(4) {
				h.stall(1000*n+20, 1000*n+880)
			}
			fourTimes(h, 10, 900, history.Acquired)
		}, 0},
		{"the client stood still", func(h *tape) {
			h.mark(0, history.Paused, 1)
			fourTimes(h, 10, 900, history.Acquired)
			h.mark(5000, history.Resumed, 1)
		}, 0},
	}, oracle.NameContext, func(v *history.View) []oracle.Violation { return oracle.Contexts(v, 350*time.Millisecond) })
}

func TestHazard137AClientThatIsNeverServedIsFound(t *testing.T) {
	served := func(h *tape, client int, n int64) {
		for i := range n {
			h.release(h.hold(client, history.Plain, 100*i, 100*i+2, 100*i+50), 100*i+10, 100*i+12)
		}
	}
	overtaken := func(h *tape, n int64) {
		h.release(h.hold(2, history.Plain, 0, 2, 50), 10, 12)
		served(h, 1, n)
		served(h, 3, n)
		h.hold(2, history.Plain, 20, 8000, 8100)
	}
	judge(t, []trial{
		{"both are served", func(h *tape) { served(h, 1, 50); served(h, 2, 10) }, 0},
		{"one is not", func(h *tape) { served(h, 1, 50); h.fail(2, history.Cancelled, 0, 6000, 9000) }, 1},
		{"one has bad luck", func(h *tape) { served(h, 1, 20); h.fail(2, history.Cancelled, 0, 6000, 9000) }, 0},
		{"one is not, for a short time", func(h *tape) {
			served(h, 1, 50)
			h.fail(2, history.Cancelled, 0, 900, 9000)
		}, 0},
		{"one is not, and the others hardly are", func(h *tape) {
			served(h, 1, 3)
			h.fail(2, history.Cancelled, 0, 6000, 9000)
		}, 0},
		{"one is not, without a majority", func(h *tape) {
			served(h, 1, 50)
			h.mark(0, history.MajorityLost, 2)
			h.fail(2, history.Cancelled, 0, 6000, 9000)
		}, 0},
		{"one is served once and then not", func(h *tape) { overtaken(h, 40) }, 1},
		{"one is served once and then has bad luck", func(h *tape) { overtaken(h, 20) }, 0},
		{"there is but one", func(h *tape) { h.fail(2, history.Cancelled, 0, 6000, 9000) }, 0},
	}, oracle.NameService, func(v *history.View) []oracle.Violation { return oracle.Starved(v, 5*time.Second) })
}
