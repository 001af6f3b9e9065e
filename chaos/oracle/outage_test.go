package oracle_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// fault has a fault on for a while.
func (t *tape) fault(name string, from, to int64) {
	t.add(from, history.Event{Type: history.FaultOn, Client: history.Everyone, Name: name})
	t.add(to, history.Event{Type: history.FaultOff, Client: history.Everyone, Name: name})
}

func TestHazard128ALockThatIsDeadWhileAFaultIsOnIsFound(t *testing.T) {
	const second = int64(1000)
	interrupted := func(end int64) func(h *tape) {
		return func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 2*second)
			h.fault("ring", 100, end)
			h.release(a, 105, 110)
			h.fail(2, history.Cancelled, 110, end, end)
		}
	}
	waits := func(h *tape, n, each int64) {
		for at := each; at <= n*each; at += each {
			h.release(h.hold(1, history.Plain, at-each, at, at+each), at+1, at+2)
		}
	}
	judge(t, []trial{
		{"nobody gets it while it is on", func(h *tape) {
			h.fault("kill", 0, 4*second)
			h.fail(1, history.Cancelled, 0, 4*second, 20*second)
		}, 1},
		{"nobody gets it, each time for a short while", func(h *tape) {
			for n := range int64(4) {
				h.fault("kill", 10*n*second, 10*n*second+900)
				h.fail(1, history.Cancelled, 10*n*second, 10*n*second+900, 900)
			}
		}, 1},
		{"nobody gets it under faults of which each is short", func(h *tape) {
			h.fault("kill", 0, 1200)
			h.fail(1, history.Cancelled, 0, 1200, 1200)
			h.fault("pause", 2000, 3200)
			h.fail(1, history.Cancelled, 2000, 3200, 1200)
		}, 1},
		{"dead under one of two faults", func(h *tape) {
			h.fault("kill", 0, 3*second)
			h.fail(1, history.Cancelled, 0, 3*second, 3*second)
			h.fault("latency", 4*second, 14*second)
			a := h.hold(1, history.Plain, 4*second, 4*second+2, 14*second)
			h.release(a, 14*second, 14*second)
			h.fail(2, history.Cancelled, 4*second, 14*second, 10*second)
		}, 1},
		{"one stretch of several", func(h *tape) {
			h.fault("kill", 0, 3*second)
			h.fail(1, history.Cancelled, 0, 1100, second)
			a := h.hold(1, history.Plain, 1100, 1102, 3*second)
			h.release(a, 3*second, 3*second)
			h.fail(2, history.Cancelled, 1100, 3*second, 2*second)
		}, 0},
		{"until the ttl of a hold that the fault interrupted", interrupted(2 * second), 0},
		{"beyond that ttl", interrupted(5 * second), 1},
		{"for the last two of eight seconds, after a hold that the fault interrupted", func(h *tape) {
			h.fault("ring", 100, 8*second)
			h.release(h.hold(1, history.Plain, 0, 2, 6*second), 6*second, 6*second)
			h.fail(2, history.Cancelled, 200, 8*second, 8*second)
		}, 0},
		{"until a client gets it that waited from the start", func(h *tape) {
			h.fault("ring", 100, 4*second)
			short := func(e *history.Event) { e.TTL = 2 * second * ms }
			h.release(h.hold(1, history.Plain, 0, 4*second+1, 6*second, short), 5*second, 5*second)
		}, 1},
		{"although the last hold was released before the fault", func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 2*second)
			h.release(a, 50, 90)
			h.fault("ring", 100, 2*second)
			h.fail(2, history.Cancelled, 110, 2*second, 2*second)
		}, 1},
		{"nobody wants it", func(h *tape) {
			h.fault("kill", 0, 4*second)
			h.fail(1, history.Cancelled, 0, 100, 100)
		}, 0},
		{"no majority", func(h *tape) {
			h.fault("kill", 0, 4*second)
			h.mark(0, history.MajorityLost, history.Everyone)
			h.fail(1, history.Cancelled, 0, 4*second, 20*second)
			h.mark(4*second, history.MajorityBack, history.Everyone)
		}, 0},
		{"the machine stood still", func(h *tape) {
			h.fault("kill", 0, 4*second)
			h.stall(0, 4*second)
			h.fail(1, history.Cancelled, 0, 4*second, 20*second)
		}, 0},
		{"the machine stood still for every other moment", func(h *tape) {
			h.fault("kill", 0, 4*second)
			for t := int64(0); t < 4*second; t += 200 {
				h.stall(t, t+100)
			}
			h.fail(1, history.Cancelled, 0, 4*second, 20*second)
		}, 0},
		{"masters answered late", func(h *tape) {
			h.fault("kill", 0, 4*second)
			h.slow(second, 4*second, 0)
			h.fail(1, history.Cancelled, 0, 4*second, 20*second)
		}, 0},
		{"without a fault, once", func(h *tape) { h.fail(1, history.Cancelled, 0, 4*second, 20*second) }, 0},
		{"without a fault, again and again", func(h *tape) { waits(h, 5, 1600) }, 1},
		{"without a fault, four times", func(h *tape) { waits(h, 4, 1600) }, 0},
		{"without a fault, for as long as a slow call", func(h *tape) { waits(h, 20, 1400) }, 0},
	}, oracle.NameOutage, func(v *history.View) []oracle.Violation {
		return oracle.Outage(v, 750*time.Millisecond, 1500*time.Millisecond, 50*time.Millisecond)
	})
}

// operations returns the certain violations, or the unknown ones.
func operations(unknown bool) func(*history.View) []oracle.Violation {
	return func(v *history.View) []oracle.Violation {
		_, found := oracle.Operations(v, time.Second, 0.8)
		return slices.DeleteFunc(found, func(x oracle.Violation) bool { return x.Unknown != unknown })
	}
}

func TestHazard129And133OperationsThatNeverWorkAreFound(t *testing.T) {
	ended := func(h *tape, typ history.Type, outcome history.Outcome, id uint64, call, ret int64) {
		h.add(call, history.Event{Type: typ, Attempt: id})
		h.add(ret, history.Event{Type: typ + 1, Attempt: id, Outcome: outcome})
	}
	repeated := func(times int, write func(h *tape)) func(h *tape) {
		return func(h *tape) {
			for range times {
				write(h)
			}
		}
	}
	failed := func(h *tape) {
		ended(h, history.ReleaseCall, history.Failed, h.hold(1, history.Plain, 2000, 2002, 2700), 2500, 2505)
	}
	release := func(outcome history.Outcome, before func(h *tape, id uint64)) func(h *tape) {
		return repeated(5, func(h *tape) {
			id := h.hold(1, history.Plain, 2000, 2002, 2700)
			if before != nil {
				before(h, id)
			}
			ended(h, history.ReleaseCall, outcome, id, 2500, 2505)
		})
	}
	judge(t, []trial{
		{"a release that works", release(history.Acquired, nil), 0},
		{"a release that errors", release(history.Failed, nil), 1},
		{"a release that says lost", release(history.Held, nil), 1},
		{"a release that ends with its context", repeated(5, func(h *tape) {
			ended(h, history.ReleaseCall, history.Cancelled, h.hold(1, history.Plain, 2000, 2002, 2700), 2500, 12500)
		}), 1},
		{"lost before", release(history.Held, func(h *tape, id uint64) { h.done(id, 2400) }), 0},
		{"too late", func(h *tape) {
			ended(h, history.ReleaseCall, history.Held, h.hold(1, history.Plain, 2000, 2002, 3000), 2990, 3001)
		}, 0},
		{"no majority", release(history.Failed, func(h *tape, _ uint64) { h.mark(2400, history.MajorityLost, 1) }), 0},
		{"a majority that is just back", func(h *tape) {
			h.mark(100, history.MajorityLost, 1)
			h.mark(1500, history.MajorityBack, 1)
			release(history.Failed, nil)(h)
		}, 0},
		{"the machine stood still", release(history.Failed, func(h *tape, _ uint64) { h.stall(2490, 2510) }), 0},
		{"one in ten", func(h *tape) {
			repeated(9, release(history.Acquired, nil))(h)
			release(history.Failed, nil)(h)
		}, 0},
		{"four of four", repeated(4, failed), 0},
		{"two of five", func(h *tape) {
			repeated(3, release(history.Acquired, nil))(h)
			repeated(2, failed)(h)
		}, 0},
		{"masters answered late", release(history.NoQuorum, func(h *tape, _ uint64) { h.slow(2495, 2501, 0) }), 0},
		{"masters answered late before", release(history.NoQuorum, func(h *tape, _ uint64) {
			h.slow(2400, 2460, 0)
		}), 1},
		{"Done closes early", repeated(5, func(h *tape) {
			h.done(h.hold(1, history.Plain, 2000, 2002, 3000), 2005)
		}), 1},
		{"Done closes early, without a majority", repeated(5, func(h *tape) {
			h.mark(1500, history.MajorityLost, 1)
			h.done(h.hold(1, history.Plain, 2000, 2002, 3000), 2005)
		}), 0},
		{"Done closes at its bound", repeated(5, func(h *tape) {
			h.done(h.hold(1, history.Plain, 2000, 2002, 3000), 2950)
		}), 0},
		{"an extension that errors", release(history.Acquired, func(h *tape, id uint64) {
			ended(h, history.ExtendCall, history.Failed, id, 2100, 2105)
		}), 1},
		{"an extension that the library has not", release(history.Acquired, func(h *tape, id uint64) {
			ended(h, history.ExtendCall, history.Unsupported, id, 2100, 2105)
		}), 0},
		{"an extension that its caller gave up", release(history.Acquired, func(h *tape, id uint64) {
			ended(h, history.ExtendCall, history.Cancelled, id, 2100, 2105)
		}), 0},
	}, oracle.NameOperations, operations(false))
	judge(t, []trial{
		{"four of four releases failed, which may be chance", repeated(4, failed), 1},
		{"none of ten could be judged", func(h *tape) {
			h.mark(100, history.MajorityLost, 1)
			repeated(2, release(history.Failed, nil))(h)
		}, 1},
		{"none of ten could be judged, and they worked", func(h *tape) {
			h.mark(100, history.MajorityLost, 1)
			repeated(2, release(history.Acquired, nil))(h)
		}, 0},
		{"none of five could be judged", func(h *tape) {
			h.mark(100, history.MajorityLost, 1)
			release(history.Failed, nil)(h)
		}, 0},
		{"ten releases after the bound", repeated(10, func(h *tape) {
			ended(h, history.ReleaseCall, history.Held, h.hold(1, history.Plain, 2000, 2002, 3000), 3000, 3001)
		}), 0},
		{"ten releases across the bound", repeated(10, func(h *tape) {
			ended(h, history.ReleaseCall, history.Held, h.hold(1, history.Plain, 2000, 2002, 3000), 2999, 3001)
		}), 1},
		{"all failed", release(history.Failed, nil), 0},
		{"all worked", release(history.Acquired, nil), 0},
	}, oracle.NameOperations, operations(true))
}
