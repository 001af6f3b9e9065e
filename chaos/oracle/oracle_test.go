package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// trial is one history and how many violations an oracle must find in it.
type trial struct {
	name  string
	write func(*tape)
	want  int
}

func judge(t *testing.T, trials []trial, name string, check func(*history.View) []oracle.Violation) {
	t.Helper()
	for _, tt := range trials {
		t.Run(tt.name, func(t *testing.T) {
			var h tape
			tt.write(&h)
			got := check(h.view())
			if len(got) != tt.want {
				t.Fatalf("found %d violations, want %d: %v", len(got), tt.want, got)
			}
			for _, v := range got {
				if v.Oracle != name || len(v.Text) < 20 {
					t.Errorf("violation of %q is not readable: %+v", name, v)
				}
				for _, e := range v.Events {
					if e < 0 || e >= len(h.events) {
						t.Errorf("event %d is outside the history", e)
					}
				}
			}
		})
	}
}

func TestTwoHoldersAtOnceAreFound(t *testing.T) {
	judge(t, []trial{
		{"one after the other", func(h *tape) {
			h.release(h.hold(1, history.Plain, 0, 2, 100), 50, 52)
			h.hold(2, history.Plain, 10, 51, 150)
		}, 0},
		{"taken at the very bound", func(h *tape) {
			h.hold(1, history.Plain, 0, 2, 100)
			h.hold(2, history.Plain, 10, 100, 200)
		}, 0},
		{"taken before the bound", func(h *tape) {
			h.hold(1, history.Plain, 0, 2, 100)
			h.hold(2, history.Plain, 10, 99, 200)
		}, 1},
		{"taken before the release call", func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 100)
			h.hold(2, history.Plain, 10, 49, 200)
			h.release(a, 50, 52)
		}, 1},
		{"done closed early", func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 100)
			h.done(a, 40)
			h.hold(2, history.Plain, 10, 41, 200)
		}, 0},
		{"granted after its own bound", func(h *tape) {
			h.hold(1, history.Plain, 0, 120, 100)
			h.hold(2, history.Plain, 10, 110, 200)
		}, 0},
		{"other key", func(h *tape) {
			h.hold(1, history.Plain, 0, 2, 100)
			h.hold(2, history.Plain, 10, 20, 200, onKey("other"))
		}, 0},
		{"readers share", func(h *tape) {
			h.hold(1, history.Shared, 0, 2, 100)
			h.hold(2, history.Shared, 0, 3, 100)
		}, 0},
		{"a writer among readers", func(h *tape) {
			h.hold(1, history.Shared, 0, 2, 100)
			h.hold(2, history.Shared, 0, 3, 50)
			h.hold(3, history.Exclusive, 10, 60, 200)
		}, 1},
		{"a reader during a write", func(h *tape) {
			h.hold(3, history.Exclusive, 0, 5, 200)
			h.hold(1, history.Shared, 0, 199, 300)
		}, 1},
		{"plain against shared", func(h *tape) {
			h.hold(3, history.Plain, 0, 5, 200)
			h.hold(1, history.Shared, 0, 100, 300)
		}, 1},
		{"reentrant by one owner", func(h *tape) {
			h.hold(1, history.Reentrant, 0, 2, 100, owner("me"))
			h.hold(1, history.Reentrant, 5, 7, 100, owner("me"))
		}, 0},
		{"reentrant by two owners, hidden behind a longer hold of the second", func(h *tape) {
			h.hold(1, history.Reentrant, 0, 2, 60, owner("me"))
			h.hold(2, history.Reentrant, 5, 7, 100, owner("you"))
			h.hold(2, history.Reentrant, 5, 8, 100, owner("you"))
		}, 2},
		{"an extension covers the gap", func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 100)
			h.extend(a, 60, 62, 200)
			h.hold(2, history.Plain, 10, 150, 300)
		}, 1},
		{"a failed extension does not", func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 100)
			h.extend(a, 60, 62, 0)
			h.hold(2, history.Plain, 10, 150, 300)
		}, 0},
		{"the time between a bound and a late extension is nobody's", func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 100)
			b := h.hold(2, history.Plain, 10, 110, 300)
			h.release(b, 120, 121)
			h.extend(a, 90, 130, 200)
		}, 0},
	}, oracle.NameOverlap, oracle.Overlap)
}

// TestOverlapAgreesWithEveryPair compares the sweep with the obvious quadratic check on random histories.
func TestOverlapAgreesWithEveryPair(t *testing.T) {
	kinds := []history.Kind{history.Plain, history.Shared, history.Exclusive, history.Reentrant}
	found := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var h tape
		for range 2 + r.IntN(5) {
			call := r.Int64N(300) - 150 // also before 0
			id := h.hold(1, kinds[r.IntN(4)], call, call+1, call+1+r.Int64N(80), owner(string(rune('a'+r.IntN(2)))))
			if r.IntN(2) == 0 {
				h.release(id, call+1+r.Int64N(60), call+90)
			}
		}
		v := h.view()
		want, got := everyPair(v), len(oracle.Overlap(v))
		if want != got {
			t.Fatalf("seed %d: %d holds are in conflict with an earlier one, the sweep found %d: %v", seed, want, got,
				v.Attempts)
		}
		found += got
	}
	if found < 500 {
		t.Fatalf("only %d overlaps in all: the comparison shows little", found)
	}
}

// everyPair counts the holds that are in conflict with one that began before.
func everyPair(v *history.View) int {
	n := 0
	for i := range v.Attempts {
		b := &v.Attempts[i]
		for j := range v.Attempts {
			a := &v.Attempts[j]
			before := a.Return < b.Return || a.Return == b.Return && j < i
			if i == j || !before || b.Return >= b.End() || a.Return >= a.End() || a.End() <= b.Return {
				continue
			}
			readers := a.Kind == history.Shared && b.Kind == history.Shared
			same := a.Kind == history.Reentrant && b.Kind == history.Reentrant && a.Owner == b.Owner
			if !readers && !same {
				n++
				break
			}
		}
	}
	return n
}

func TestAHolderThatLearnsOfItsEndTooLateIsFound(t *testing.T) {
	const slack = 10 * time.Millisecond
	// renewal is one that a holder notices at some time, after it had looked before then.
	renewal := func(seen, until, before int64, note string) func(h *tape) {
		return func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 100)
			h.add(seen, history.Event{
				Type: history.ExtendReturn, Attempt: a, Outcome: history.Acquired, Until: until * ms, TTL: 100 * ms,
				Note: note, Value: before * ms,
			})
			h.release(a, seen+30, seen+31)
		}
	}
	judge(t, []trial{
		{"closed at the bound", func(h *tape) { h.done(h.hold(1, history.Plain, 0, 2, 100), 100) }, 0},
		{"closed within the tolerance", func(h *tape) { h.done(h.hold(1, history.Plain, 0, 2, 100), 110) }, 0},
		{"closed late", func(h *tape) { h.done(h.hold(1, history.Plain, 0, 2, 100), 111) }, 1},
		{"never closed", func(h *tape) {
			h.hold(1, history.Plain, 0, 2, 100)
			h.mark(500, history.Healed, history.Everyone)
		}, 1},
		{"history ends before the bound", func(h *tape) { h.hold(1, history.Plain, 0, 2, 100) }, 0},
		{"released before", func(h *tape) { h.release(h.hold(1, history.Plain, 0, 2, 100), 50, 300) }, 0},
		{"renewed in time and seen late", renewal(110, 180, 0, history.NoteSeen), 0},
		{"renewed too late", renewal(120, 210, 0, history.NoteSeen), 1},
		{"closed late after renewals that nobody looked at", func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 100, renewed)
			h.add(250, history.Event{Type: history.DoneClosed, Attempt: a, Value: 161 * ms})
		}, 0},
		{"closed late for one who looked", func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 100, renewed)
			h.add(250, history.Event{Type: history.DoneClosed, Attempt: a, Value: 160 * ms})
		}, 1},
		{"renewed while nobody looked", renewal(160, 210, 71, history.NoteSeen), 0},
		{"renewed too late for one who looked", renewal(160, 210, 70, history.NoteSeen), 1},
		{"renewed and told too late", renewal(110, 180, 0, ""), 1},
		{"extended in time", func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 100)
			h.extend(a, 50, 60, 200)
			h.done(a, 200)
		}, 0},
		{"an extension after the bound does not count", func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 100)
			h.extend(a, 50, 101, 200)
			h.done(a, 200)
		}, 1},
		{"paused over the bound", func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 100)
			h.mark(50, history.Paused, 1)
			h.mark(300, history.Resumed, 1)
			h.done(a, 305)
		}, 0},
		{"somebody else paused over the bound", func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 100)
			h.mark(50, history.Paused, 2)
			h.mark(300, history.Resumed, 2)
			h.done(a, 305)
		}, 1},
		{"a library without Done", func(h *tape) {
			h.hold(1, history.Plain, 0, 2, 100, noDone)
			h.mark(500, history.Healed, history.Everyone)
		}, 0},
	}, oracle.NameDoneAfterBound, func(v *history.View) []oracle.Violation { return oracle.DoneAfterBound(v, slack) })
}

func TestAnExtensionOverAnotherHoldIsFound(t *testing.T) {
	between := func(kind history.Kind) func(h *tape) {
		return func(h *tape) {
			a := h.hold(1, kind, 0, 2, 100)
			b := h.hold(2, kind, 10, 110, 300)
			h.release(b, 120, 121)
			h.extend(a, 90, 130, 200)
		}
	}
	judge(t, []trial{
		{"somebody held it in the gap", between(history.Plain), 1},
		{"a reader held it in a reader's gap", between(history.Shared), 0},
		{"nobody held it in the gap", func(h *tape) { h.extend(h.hold(1, history.Plain, 0, 2, 100), 90, 130, 200) }, 0},
		{"the extension failed", func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 100)
			h.hold(2, history.Plain, 10, 110, 300)
			h.extend(a, 90, 130, 0)
		}, 0},
		{"somebody holds it after the last extension", func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 100)
			h.extend(a, 50, 60, 150)
			h.hold(2, history.Plain, 10, 151, 300)
		}, 0},
		{"the answer comes when its own bound has passed, and somebody holds it", func(h *tape) {
			h.extend(h.hold(1, history.Plain, 0, 2, 100), 40, 300, 139)
			h.hold(2, history.Plain, 10, 145, 245)
		}, 0},
		{"the same, and somebody held it before that bound", func(h *tape) {
			h.extend(h.hold(1, history.Plain, 0, 2, 100), 40, 300, 139)
			h.hold(2, history.Plain, 10, 120, 245)
		}, 1},
	}, oracle.NameContinuity, oracle.ExtensionContinuity)
}

func TestAReleaseOfAnotherOwnersKeyIsFound(t *testing.T) {
	removed := func(by, before, after string) func(h *tape) {
		return func(h *tape) {
			h.add(5, history.Event{Type: history.Removed, Key: "k", Owner: by, Before: before, After: after})
		}
	}
	judge(t, []trial{
		{"its own", removed("a", "a", ""), 0},
		{"nothing there", removed("a", "", ""), 0},
		{"refused", removed("a", "b", "b"), 0},
		{"somebody else's", removed("a", "b", ""), 1},
		{"a prefix is not the owner", removed("worker-1", "worker-10", ""), 1},
	}, oracle.NameForeignRelease, oracle.ForeignRelease)
}

func TestKeysThatNoHoldExplainsAreFound(t *testing.T) {
	found := func(h *tape, at int64, owner string, pttl int64) {
		h.add(at, history.Event{Type: history.KeyFound, Key: "k", Owner: owner, Value: pttl * ms})
	}
	judge(t, []trial{
		{"held", func(h *tape) { h.hold(1, history.Plain, 0, 2, 100); found(h, 50, "a", 50) }, 0},
		{"released a moment ago", func(h *tape) {
			h.release(h.hold(1, history.Plain, 0, 2, 100), 10, 12)
			found(h, 30, "a", 70)
		}, 0},
		{"released long ago", func(h *tape) {
			h.release(h.hold(1, history.Plain, 0, 2, 100), 10, 12)
			found(h, 40, "a", 60)
		}, 1},
		{"a lost attempt", func(h *tape) {
			h.fail(1, history.Held, 0, 5, 0)
			h.events[0].Owner = "a"
			found(h, 40, "a", 60)
		}, 1},
		{"excused until healed", func(h *tape) {
			h.release(h.hold(1, history.Plain, 0, 2, 100), 10, 12)
			h.mark(35, history.Healed, history.Everyone)
			found(h, 40, "a", 60)
		}, 0},
		{"client killed: lives for its ttl", func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 100)
			h.add(10, history.Event{Type: history.Stopped, Attempt: a})
			found(h, 90, "a", 10)
		}, 0},
		{"client killed, ttl over", func(h *tape) {
			a := h.hold(1, history.Plain, 0, 2, 100)
			h.add(10, history.Event{Type: history.Stopped, Attempt: a})
			found(h, 140, "a", 10)
		}, 1},
		{"never expires", func(h *tape) {
			h.hold(1, history.Plain, 0, 2, 100)
			h.add(50, history.Event{Type: history.KeyFound, Key: "k", Owner: "a", Value: -1})
		}, 1},
		{"an owner nobody knows", func(h *tape) { found(h, 90, "zz", 10) }, 1},
		{"an attempt with unknown owner may have left it", func(h *tape) {
			h.fail(1, history.Held, 0, 80, 0)
			found(h, 90, "zz", 10)
		}, 0},
	}, oracle.NameOrphan, func(v *history.View) []oracle.Violation { return oracle.Orphans(v, 20*time.Millisecond) })
}

func TestPlannedFaultsThatDidNotFireAreFound(t *testing.T) {
	judge(t, []trial{
		{"all fired", func(h *tape) { h.add(1, history.Event{Type: history.FaultOn, Name: "kill"}) }, 0},
		{"another fired", func(h *tape) { h.add(1, history.Event{Type: history.FaultOn, Name: "stop"}) }, 1},
		{"went off without coming on", func(h *tape) {
			h.add(1, history.Event{Type: history.FaultOff, Name: "kill"})
		}, 1},
	}, oracle.NameFaults, func(v *history.View) []oracle.Violation { return oracle.PlannedFaults(v, []string{"kill"}) })
}

func TestTokensThatRepeatOrFallAreFound(t *testing.T) {
	judge(t, []trial{
		{"rising", func(h *tape) {
			h.hold(1, history.Fenced, 0, 2, 10, token(1))
			h.hold(2, history.Fenced, 5, 20, 30, token(2))
		}, 0},
		{"concurrent in any order", func(h *tape) {
			h.hold(1, history.Fenced, 0, 20, 30, token(2))
			h.hold(2, history.Fenced, 5, 20, 30, token(1))
		}, 0},
		{"falling", func(h *tape) {
			h.hold(1, history.Fenced, 0, 2, 10, token(10))
			h.hold(2, history.Fenced, 5, 20, 30, token(2))
		}, 1},
		{"falling behind one that returned early and was called late", func(h *tape) {
			h.hold(1, history.Fenced, 0, 100, 110, token(1))
			h.hold(1, history.Fenced, 50, 60, 70, token(9))
			h.hold(2, history.Fenced, 61, 90, 95, token(5))
		}, 1},
		{"twice", func(h *tape) {
			h.hold(1, history.Fenced, 0, 20, 30, token(7))
			h.hold(2, history.Fenced, 0, 20, 30, token(7))
		}, 1},
		{"twice on different keys", func(h *tape) {
			h.hold(1, history.Fenced, 0, 2, 30, token(7))
			h.hold(2, history.Fenced, 5, 20, 30, token(7), onKey("other"))
		}, 0},
		{"no token", func(h *tape) {
			h.hold(1, history.Fenced, 0, 2, 30, token(7))
			h.hold(2, history.Plain, 5, 20, 30)
		}, 0},
	}, oracle.NameTokenOrder, oracle.TokenOrder)
}

func TestUpdatesThatGotLostAreFound(t *testing.T) {
	update := func(h *tape, id uint64, read, write, from, to int64, outcome history.Outcome) {
		h.add(from, history.Event{Type: history.RegisterRead, Attempt: id, Key: "k", Value: read})
		h.add(to, history.Event{Type: history.RegisterWrite, Attempt: id, Key: "k", Value: write, Outcome: outcome})
	}
	many := func(broken bool) func(h *tape) {
		return func(h *tape) {
			for i := range int64(500) {
				read := i
				if broken && i == 400 {
					read = i - 1
				}
				update(h, uint64(i+1), read, i+1, 10*i, 10*i+5, history.Acquired)
			}
		}
	}
	check := func(v *history.View) []oracle.Violation { return oracle.Register(v, 5*time.Second) }
	judge(t, []trial{
		{"one after the other", many(false), 0},
		{"one lost among many", many(true), 1},
		{"lost update", func(h *tape) {
			update(h, 1, 0, 1, 0, 10, history.Acquired)
			update(h, 2, 0, 2, 5, 15, history.Acquired)
		}, 1},
		{"the second was refused", func(h *tape) {
			update(h, 1, 0, 1, 0, 10, history.Acquired)
			update(h, 2, 0, 2, 5, 15, history.Held)
		}, 0},
		{"concurrent but in a chain", func(h *tape) {
			update(h, 1, 2, 1, 0, 10, history.Acquired)
			update(h, 2, 0, 2, 1, 9, history.Acquired)
		}, 0},
		{"read without write", func(h *tape) {
			h.add(1, history.Event{Type: history.RegisterRead, Attempt: 1, Key: "k"})
			update(h, 2, 0, 2, 5, 15, history.Acquired)
		}, 0},
	}, oracle.NameRegister, check)
}

func TestRegisterOutOfTimeIsUnknownAndFails(t *testing.T) {
	var h tape
	h.add(0, history.Event{Type: history.RegisterRead, Attempt: 1, Key: "k"})
	h.add(1, history.Event{Type: history.RegisterWrite, Attempt: 1, Key: "k", Value: 1, Outcome: history.Acquired})
	got := oracle.Register(h.view(), 0)
	if len(got) != 1 || !got[0].Unknown || !strings.Contains(got[0].Text, "could not be checked") {
		t.Fatalf("got %+v, want one Unknown", got)
	}
}

func TestSafetyIsTheSumOfItsOracles(t *testing.T) {
	var h tape
	a := h.hold(1, history.Fenced, 0, 2, 100, token(9))
	h.hold(2, history.Fenced, 10, 50, 200, token(3))
	h.extend(a, 60, 90, 300)
	h.add(95, history.Event{Type: history.Removed, Key: "k", Owner: "a", Before: "b"})
	var names []string
	for _, v := range oracle.Safety(h.view()) {
		names = append(names, v.Oracle)
	}
	want := []string{oracle.NameOverlap, oracle.NameContinuity, oracle.NameForeignRelease, oracle.NameTokenOrder}
	if fmt.Sprint(names) != fmt.Sprint(want) {
		t.Fatalf("found %v, want %v", names, want)
	}
}

func BenchmarkOverlap(b *testing.B) {
	var h tape
	for i := range int64(10000) {
		h.release(h.hold(int(i%50), history.Plain, 10*i, 10*i+2, 10*i+100), 10*i+8, 10*i+9)
	}
	v := h.view()
	b.ReportAllocs()
	for b.Loop() {
		if n := len(oracle.Overlap(v)); n != 0 {
			b.Fatal(n)
		}
	}
}

func TestHazard135AHoldWithoutTheTokenThatWasAskedForIsFound(t *testing.T) {
	judge(t, []trial{
		{"with tokens", func(h *tape) { h.hold(1, history.Fenced, 0, 2, 100, token(7)) }, 0},
		{"none was asked for", func(h *tape) { h.hold(1, history.Plain, 0, 2, 100) }, 0},
		{"now and then there is none", func(h *tape) {
			h.hold(1, history.Fenced, 0, 2, 100, token(7))
			h.hold(1, history.Fenced, 200, 202, 300)
			h.hold(1, history.Fenced, 400, 402, 500)
		}, 1},
	}, oracle.NameTokens, oracle.Tokens)
}
