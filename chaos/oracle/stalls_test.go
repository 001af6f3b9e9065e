package oracle_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// TestMastersThatAnswerLateExcuseFailuresAlone has one acquisition that worked and one that failed, and a slow master.
func TestMastersThatAnswerLateExcuseFailuresAlone(t *testing.T) {
	for slow, want := range map[int64]int{105: 0, 300: 1} {
		h := &tape{}
		h.hold(1, history.Plain, 100, 150, 400)
		h.fail(2, history.NoQuorum, 110, 150, 0)
		h.events[2].Key, h.events[3].Key = "other", "other"
		h.slow(slow, slow+20, 0)
		if s := oracle.Serve(h.view(), 0); s.Acquired != 1 || s.Failed != want {
			t.Errorf("slow at %d ms: %+v, want %d failed", slow, s, want)
		}
	}
}

// TestStallsDoNotCountForAnyOracleAboutTime has for each a history that is judged guilty, and the same with a stall
// that explains it; a stall that explains too little changes nothing.
func TestStallsDoNotCountForAnyOracleAboutTime(t *testing.T) {
	const bound = 100 * time.Millisecond
	for name, tt := range map[string]struct {
		guilty func(h *tape)
		judge  func(v *history.View) []oracle.Violation
		// from and to are a stall that explains it, and short is one that does not.
		from, to, short int64
	}{
		"liveness": {
			func(h *tape) { h.fail(1, history.Cancelled, 0, 150, 150) },
			func(v *history.View) []oracle.Violation { return oracle.Liveness(v, bound, 0) }, 20, 90, 50,
		},
		"availability": {
			func(h *tape) { h.fail(1, history.NoQuorum, 100, 150, 0) },
			func(v *history.View) []oracle.Violation { return oracle.Availability(v, 0, 1, 0) }, 90, 110, 95,
		},
		"recovery": {
			func(h *tape) {
				h.mark(100, history.MajorityBack, history.Everyone)
				h.hold(1, history.Plain, 50, 250, 400)
			},
			func(v *history.View) []oracle.Violation { return oracle.Recovery(v, bound) }, 120, 200, 130,
		},
		"done after bound": {
			func(h *tape) { h.done(h.hold(1, history.Plain, 0, 5, 100), 300) },
			func(v *history.View) []oracle.Violation { return oracle.DoneAfterBound(v, bound) }, 90, 290, 150,
		},
		"kept": {
			func(h *tape) { h.done(h.hold(1, history.Plain, 0, 5, 100, renewed), 100) }, oracle.Kept, 20, 60, 25,
		},
		"reentry": {
			func(h *tape) {
				h.hold(1, history.Reentrant, 0, 5, 500, owner("o"))
				h.hold(1, history.Reentrant, 10, 200, 600, owner("o"))
			},
			func(v *history.View) []oracle.Violation { return oracle.Reentry(v, bound) }, 20, 150, 40,
		},
		"orphan": {
			func(h *tape) {
				h.release(h.hold(1, history.Plain, 0, 5, 900, owner("o")), 10, 20)
				h.add(150, history.Event{Type: history.KeyFound, Key: "k", Owner: "o", Value: 700 * ms})
			},
			func(v *history.View) []oracle.Violation { return oracle.Orphans(v, bound) }, 30, 140, 40,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for which, stall := range map[string]struct {
				to    int64
				found int
			}{"no stall": {tt.from, 1}, "one that is too short": {tt.short, 1}, "one that explains it": {tt.to, 0}} {
				h := &tape{}
				tt.guilty(h)
				if stall.to > tt.from {
					h.stall(tt.from, stall.to)
				}
				if got := tt.judge(h.view()); len(got) != stall.found {
					t.Errorf("%s: found %v, want %d", which, got, stall.found)
				}
				if slices.Contains([]string{"liveness", "recovery", "reentry", "orphan"}, name) {
					slowMastersExcuse(t, tt.guilty, tt.judge, tt.from, stall.to, stall.found)
				}
			}
		})
	}
}

// slowMastersExcuse checks that a master that does not answer explains as much as a stall, and that one that answers
// just in time explains nothing.
func slowMastersExcuse(
	t *testing.T, guilty func(*tape), judge func(*history.View) []oracle.Violation, from, to int64, want int,
) {
	t.Helper()
	for patience, want := range map[int64]int{to - from: want, 2 * (to - from): 1} {
		h := &tape{}
		guilty(h)
		h.slow(from, to, patience)
		if got := judge(h.view()); len(got) != want {
			t.Errorf("a master that is asked at %d answers at %d, and a lock waits for %d: found %v, want %d", from, to,
				patience, got, want)
		}
	}
}

// TestAStallIsFeltForAsLongAsItWas: an attempt that fails just after a stall may fail because the library had marked
// masters as silent, and asks them again only in a moment. settle bounds this effect.
func TestAStallIsFeltForAsLongAsItWas(t *testing.T) {
	const settle = 60 * time.Millisecond
	for _, tt := range []struct {
		from, to, call int64
		excused        bool
	}{
		{100, 150, 199, true},
		{100, 150, 201, false},
		{100, 300, 359, true},
		{100, 300, 361, false},
	} {
		h := &tape{}
		h.stall(tt.from, tt.to)
		h.fail(1, history.NoQuorum, tt.call, tt.call+5, 0)
		if got := oracle.Availability(h.view(), settle, 1, 0); (len(got) == 0) != tt.excused {
			t.Errorf("a stall from %d to %d, a failure at %d: found %v", tt.from, tt.to, tt.call, got)
		}
	}
}

// TestAShortStallInALongWaitChangesNothing, for a granted and a failed wait: counting only
// successes would make their share too good.
func TestAShortStallInALongWaitChangesNothing(t *testing.T) {
	for _, granted := range []bool{true, false} {
		for stall, judged := range map[int64]int{0: 1, 50: 1, 51: 0} { // of a second, and it is felt for as long again
			h := &tape{}
			if granted {
				h.hold(1, history.Plain, 100, 1100, 1200)
			} else {
				h.fail(1, history.NoQuorum, 100, 1100, 0)
			}
			if stall > 0 {
				h.stall(500, 500+stall)
			}
			if got := oracle.Serve(h.view(), time.Second); got.Attempts != judged || got.Total != 1 {
				t.Errorf("granted: %v, stalled for %d: %+v, want %d", granted, stall, got, judged)
			}
		}
	}
}

// TestStallsDoNotHideFailedWaits: nine of ten waits of a second fail, although the key is free
// nearly all the time. Each meets a stall, with an effect that lasts twice the length of the stall.
// While half of a wait is undisturbed, the stall is no excuse.
func TestStallsDoNotHideFailedWaits(t *testing.T) {
	for stall, hidden := range map[int64]bool{40: false, 51: false, 240: false, 260: true} {
		h := &tape{}
		for i := range 100 {
			at := int64(i) * 1100
			if i%10 == 0 {
				h.hold(i%5, history.Plain, at, at+1000, at+1010)
			} else {
				h.fail(i%5, history.Cancelled, at, at+1001, 1000)
			}
			h.stall(at+300, at+300+stall)
		}
		got := oracle.Availability(h.view(), time.Second, 0.5, 0.1)
		if len(got) != 1 || got[0].Unknown != hidden {
			t.Errorf("stalls of %d: found %v", stall, got)
		}
	}
}

// A stall is no excuse for two holders at a time, nor for tokens out of order.
func TestStallsExcuseNoSafetyViolation(t *testing.T) {
	h := &tape{}
	h.hold(1, history.Fenced, 0, 5, 200, token(9))
	h.hold(2, history.Fenced, 10, 20, 200, token(3))
	h.stall(0, 300)
	if v := h.view(); len(oracle.Overlap(v)) != 1 || len(oracle.TokenOrder(v)) != 1 {
		t.Errorf("found %v and %v", oracle.Overlap(v), oracle.TokenOrder(v))
	}
}

func TestStalledIsTheTimeCoveredOnce(t *testing.T) {
	h := &tape{}
	h.stall(10, 30)
	h.stall(20, 40)
	h.stall(100, 110)
	h.mark(200, history.Healed, history.Everyone)
	if got := oracle.Stalled(h.view()); got != 40*ms {
		t.Errorf("stalled for %v", time.Duration(got))
	}
}

func TestAvailabilityThatJudgedTooLittleIsUnknown(t *testing.T) {
	h := &tape{}
	for at := int64(0); at < 1000; at += 100 {
		h.hold(1, history.Plain, at, at+10, at+20)
	}
	h.stall(0, 850)
	judge := func(share float64) []oracle.Violation { return oracle.Availability(h.view(), 0, 1, share) }
	if got := judge(0.1); len(got) != 0 {
		t.Errorf("one of ten was judged: %v", got)
	}
	if got := judge(0.2); len(got) != 1 || !got[0].Unknown {
		t.Errorf("only one of ten was judged: %v", got)
	}
}

// Clients without a majority fail quickly, and so often that the others would hardly count.
func TestAttemptsWithoutAMajorityDoNotMakeTheOthersFew(t *testing.T) {
	h := &tape{}
	h.hold(1, history.Plain, 0, 10, 20)
	h.mark(50, history.MajorityLost, 1)
	for at := int64(100); at < 5000; at += 100 {
		h.hold(1, history.Plain, at, at+10, at+20)
	}
	if got := oracle.Availability(h.view(), 0, 1, 0.1); len(got) != 0 {
		t.Errorf("one attempt had a majority, and was judged: %v", got)
	}
	none := &tape{}
	none.mark(0, history.MajorityLost, 1)
	none.hold(1, history.Plain, 100, 110, 120)
	if got := oracle.Availability(none.view(), 0, 1, 0.1); len(got) != 1 || !got[0].Unknown {
		t.Errorf("no attempt had a majority: %v", got)
	}
}
