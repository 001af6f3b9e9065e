package oracle_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

func TestAFreeKeyThatIsAskedForIsAcquiredInTime(t *testing.T) {
	const bound, gap = 100 * time.Millisecond, 10 * time.Millisecond
	tries := func(h *tape, client int, from, to int64) {
		for at := from; at < to; at += 20 {
			h.fail(client, history.Held, at, at+12, 0)
		}
	}
	judge(t, []trial{
		{"acquired in time", func(h *tape) { h.hold(1, history.Plain, 0, 90, 200) }, 0},
		{"one waits and nobody holds", func(h *tape) { h.fail(1, history.Cancelled, 0, 150, 150) }, 1},
		{"somebody holds", func(h *tape) {
			h.hold(2, history.Plain, 0, 5, 300)
			h.fail(1, history.Cancelled, 0, 350, 150)
		}, 0},
		{"two livelock", func(h *tape) { tries(h, 1, 0, 200); tries(h, 2, 5, 200) }, 1},
		{"tries far apart are not asking", func(h *tape) {
			for at := int64(0); at < 1000; at += 100 {
				h.fail(1, history.Held, at, at+20, 0)
			}
		}, 0},
		{"no majority", func(h *tape) {
			h.mark(10, history.MajorityLost, history.Everyone)
			tries(h, 1, 0, 400)
			h.mark(390, history.MajorityBack, history.Everyone)
		}, 0},
		{"no majority for that client", func(h *tape) {
			h.mark(10, history.MajorityLost, 1)
			tries(h, 1, 0, 400)
		}, 0},
		{"no majority for another client", func(h *tape) {
			h.mark(10, history.MajorityLost, 2)
			tries(h, 1, 0, 400)
		}, 1},
		{"wanted together with a key that is held", func(h *tape) {
			h.hold(2, history.Plain, 0, 5, 300, onKey("other"))
			h.both(1, 10, 290)
		}, 0},
		{"wanted together with a key that is free", func(h *tape) { h.both(1, 10, 290) }, 2},
		{"wanted by another, too, who needs no other key", func(h *tape) {
			h.hold(2, history.Plain, 0, 5, 300, onKey("other"))
			h.both(1, 10, 290)
			h.fail(1, history.Cancelled, 20, 200, 180)
		}, 1},
		{"never answered", func(h *tape) {
			h.add(0, history.Event{Type: history.AcquireCall, Client: 1, Attempt: 99, Key: "k"})
			h.mark(500, history.Healed, history.Everyone)
		}, 1},
	}, oracle.NameLiveness, func(v *history.View) []oracle.Violation { return oracle.Liveness(v, bound, gap) })
}

func TestRefusalsAndFailuresNeedAReason(t *testing.T) {
	judge(t, []trial{
		{"all acquired", func(h *tape) { h.hold(1, history.Plain, 0, 90, 200) }, 0},
		{"refused is served", func(h *tape) {
			h.hold(2, history.Plain, 0, 1, 400)
			h.fail(1, history.Held, 2, 5, 0)
		}, 0},
		{"refused just after it was given back", func(h *tape) {
			h.release(h.hold(2, history.Plain, 0, 3, 200), 8, 9)
			h.fail(1, history.Held, 20, 25, 0)
		}, 0},
		{"refused although nobody has it", func(h *tape) { h.fail(1, history.Held, 0, 5, 0) }, 1},
		{"sent away from a free key instead of waiting", func(h *tape) {
			h.fail(2, history.Cancelled, 0, 9, 0)
			h.fail(1, history.Held, 2, 5, 1000)
		}, 1},
		{"sent away from a key that is taken", func(h *tape) {
			h.hold(2, history.Plain, 0, 1, 400)
			h.fail(1, history.Held, 2, 5, 1000)
		}, 0},
		{"an error is not", func(h *tape) { h.fail(1, history.Failed, 0, 5, 0) }, 1},
		{"no quorum is not", func(h *tape) { h.fail(1, history.NoQuorum, 0, 5, 0) }, 1},
		{"no quorum because another has some masters", func(h *tape) {
			h.release(h.hold(2, history.Plain, 0, 3, 200), 8, 9)
			h.fail(1, history.NoQuorum, 4, 6, 0)
		}, 0},
		{"no quorum long after the other", func(h *tape) {
			h.release(h.hold(2, history.Plain, 0, 3, 200), 8, 9)
			h.fail(1, history.NoQuorum, 314, 316, 0)
		}, 1},
		{"no quorum for one who waits", func(h *tape) {
			h.release(h.hold(2, history.Plain, 0, 3, 200), 8, 9)
			h.fail(1, history.NoQuorum, 4, 6, 20)
		}, 1},
		{"no majority", func(h *tape) {
			h.mark(0, history.MajorityLost, 1)
			h.fail(1, history.NoQuorum, 2, 5, 0)
		}, 0},
		{"majority lost on the way", func(h *tape) {
			h.fail(1, history.NoQuorum, 2, 15, 0)
			h.mark(10, history.MajorityLost, history.Everyone)
		}, 0},
		{"just back", func(h *tape) {
			h.mark(0, history.MajorityLost, history.Everyone)
			h.mark(10, history.MajorityBack, history.Everyone)
			h.fail(1, history.NoQuorum, 12, 15, 0)
		}, 0},
		{"back for long", func(h *tape) {
			h.mark(0, history.MajorityLost, history.Everyone)
			h.mark(10, history.MajorityBack, history.Everyone)
			h.fail(1, history.NoQuorum, 212, 215, 0)
		}, 1},
		{"cancelled by the caller", func(h *tape) { h.fail(1, history.Cancelled, 0, 50, 500) }, 0},
		{"waited in vain for a free key", func(h *tape) { h.fail(1, history.Cancelled, 0, 500, 500) }, 1},
		{"waited behind others", func(h *tape) {
			h.hold(2, history.Plain, 0, 1, 400)
			h.fail(1, history.Cancelled, 0, 500, 500)
		}, 0},
		{"waited for two keys of which one was taken", func(h *tape) {
			h.hold(2, history.Plain, 0, 1, 400, onKey("other"))
			h.both(1, 0, 500)
		}, 0},
		{"waited in vain for two keys", func(h *tape) { h.both(1, 0, 500) }, 1},
	}, oracle.NameAvailability, func(v *history.View) []oracle.Violation {
		return oracle.Availability(v, 50*time.Millisecond, 1, 0)
	})
}

func TestServedAttemptsAreCountedByTheirOutcome(t *testing.T) {
	var h tape
	h.hold(1, history.Plain, 0, 1, 10)
	h.hold(1, history.Plain, 20, 21, 30)
	h.hold(1, history.Plain, 40, 41, 50)
	h.fail(2, history.Held, 52, 53, 0)
	h.fail(2, history.NoQuorum, 460, 461, 0)
	got := oracle.Serve(h.view(), 0)
	if got.Attempts != 5 || got.Acquired != 3 || got.Refused != 1 || got.Failed != 1 || got.Ratio != 0.75 {
		t.Fatalf("got %+v", got)
	}
}

func TestLocksAreAcquiredSoonAfterAnOutage(t *testing.T) {
	judge(t, []trial{
		{"at once", func(h *tape) {
			h.mark(100, history.MajorityBack, history.Everyone)
			h.hold(1, history.Plain, 50, 110, 200)
		}, 0},
		{"slow", func(h *tape) {
			h.mark(100, history.MajorityBack, history.Everyone)
			h.hold(1, history.Plain, 50, 151, 200)
		}, 1},
		{"nobody asked", func(h *tape) {
			h.mark(100, history.Healed, history.Everyone)
			h.hold(1, history.Plain, 500, 510, 900)
		}, 0},
		{"somebody held it", func(h *tape) {
			h.hold(2, history.Plain, 0, 1, 160)
			h.mark(100, history.MajorityBack, history.Everyone)
			h.hold(1, history.Plain, 50, 170, 200)
		}, 0},
		{"wanted only together with another key", func(h *tape) {
			h.mark(100, history.MajorityBack, history.Everyone)
			h.both(1, 50, 500)
			h.hold(1, history.Plain, 590, 600, 700)
		}, 0},
	}, oracle.NameRecovery, func(v *history.View) []oracle.Violation { return oracle.Recovery(v, 50*time.Millisecond) })
}
