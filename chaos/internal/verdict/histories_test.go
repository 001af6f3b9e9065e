package verdict_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/report"
)

func TestBrokenLocksDoNotPass(t *testing.T) {
	check(t, []judged{
		{"nothing is wrong", report.Pass, "", func(*tape) {}},
		{"an owner of a reentrant lock is given to two clients", report.Violation, "overlap", func(t *tape) {
			a, b := t.ask(1, 5000, of(history.Reentrant)), t.ask(2, 5005, of(history.Reentrant))
			t.get(a, 5001, by("pid"))
			t.get(b, 5006, by("pid"))
			t.leave(a, 5020)
			t.leave(b, 5030)
		}},
		{"an owner that enters again is refused at once", report.Violation, "reentry", func(t *tape) {
			for n := range int64(12) {
				at := 5000 + 100*n
				outer := t.get(t.ask(1, at, of(history.Reentrant)), at+1, by("me"))
				t.fail(t.ask(1, at+5, of(history.Reentrant), by("me")), at+6, history.Held)
				t.leave(outer, at+20)
			}
		}},
		{"an owner waits for itself, and masters are slow but answer", report.Violation, "reentry", func(t *tape) {
			t.entersLate(5000, 80)
		}},
		{"readers wait for each other", report.Violation, "sharing", again(30, 100, func(t *tape, at int64) {
			first := t.take(1, at, of(history.Shared))
			second := t.ask(2, at+5, of(history.Shared))
			t.leave(first, at+20)
			t.leave(t.get(second, at+22), at+40)
			t.leave(t.take(1, at+60, of(history.Exclusive)), at+70)
		})},
		{"extensions give no time", report.Violation, "operations", again(12, 3000, func(t *tape, at int64) {
			id := t.take(1, at)
			t.extend(id, at+1000, at+1001, 990, history.Acquired)
			t.leave(id, at+1100)
		})},
		{"extensions are slow", report.Violation, "pace", again(12, 4000, func(t *tape, at int64) {
			id := t.take(1, at)
			t.extend(id, at+100, at+1700, 1990, history.Acquired)
			t.leave(id, at+1800)
		})},
		{"extensions hang until the end", report.Violation, "pace", func(t *tape) {
			for n := range int64(4) {
				id := t.get(t.ask(int(n), 5000, onKey("abcd"[n:n+1])), 5001)
				t.extend(id, 5100, 30_000, 0, history.Cancelled)
				t.leaves(id, 30_001, 30_002, history.Held)
			}
		}},
		{"a try waits", report.Violation, "pace", again(12, 4000, func(t *tape, at int64) {
			first := t.take(1, at)
			try := t.ask(2, at+1, once)
			t.leave(first, at+1900)
			t.leave(t.get(try, at+1902), at+1910)
		})},
		{"a client is served at first and then never", report.Violation, "service", func(t *tape) {
			t.leave(t.take(3, 4000), 4010)
			t.ask(3, 4990)
			t.crowd()
		}},
		{"a waiter is forgotten", report.Violation, "service", func(t *tape) {
			t.ask(2, 4990, func(e *history.Event) { e.Worker = 1 })
			t.crowd()
		}},
		{"releases are unsupported", report.Violation, "operations", again(30, 3000, func(t *tape, at int64) {
			t.leaves(t.take(1, at), at+10, at+11, history.Unsupported)
		})},
		{"a key that many want is free nearly all the time", report.Violation, "outage", func(t *tape) {
			next, at := t.ask(1, 5000), int64(5001)
			for n := range 12 {
				held := t.get(next, at)
				next = t.ask(n%2+1, at+1)
				t.leave(held, at+10)
				at += 1900
			}
			t.leave(t.get(next, at), at+10)
		}},
		{"holds end after a hundredth of the ttl", report.Unknown, "validity", again(30, 100, func(t *tape, at int64) {
			t.leave(t.get(t.ask(1, at), at+1, until(at+20)), at+10)
		})},
		{"a hold is extended after its release", report.Violation, "extension-continuity", func(t *tape) {
			id := t.take(1, 5000)
			t.leave(id, 5010)
			t.extend(id, 5100, 5101, 1990, history.Acquired)
		}},
		{"the resource gets another token", report.Violation, "tokens", func(t *tape) {
			id := t.get(t.ask(1, 5000, of(history.Fenced)), 5001, token(7))
			t.add(5002, history.Event{Type: history.RegisterRead, Attempt: id, Key: "k/checked", Token: 8})
			t.add(5003, history.Event{
				Type: history.RegisterWrite, Attempt: id, Key: "k/checked", Token: 8, Value: 1,
				Outcome: history.Acquired,
			})
			t.leave(id, 5010)
		}},
		{"holds have no time left soon after the grant", report.Violation, "operations", func(t *tape) {
			for n := range int64(12) {
				at := 5000 + 3000*n
				id := t.take(1, at)
				t.add(at+50, history.Event{Type: history.Stopped, Attempt: id, Note: history.NoteBound})
				t.leave(id, at+51)
			}
		}},
		{"nobody asked for a key that another had", report.Unknown, "too little happened: nobody", func(t *tape) {
			t.events = nil
			for n := range int64(30) {
				t.leave(t.take(1, 10+100*n), 20+100*n)
			}
		}},
	})
}

func TestCorrectLocksAreNotConvicted(t *testing.T) {
	killed := func(t *tape, id uint64, at int64) {
		t.add(at, history.Event{Type: history.Stopped, Attempt: id, Note: "its process ended"})
	}
	pass := func(name string, write func(t *tape)) judged { return judged{name, report.Pass, "", write} }
	check(t, []judged{
		pass("clients are killed while they ask", func(t *tape) {
			for n := range int64(8) {
				at := 5000 + 500*n
				killed(t, t.ask(3, at, onKey("other"), patient(20_000)), at+100)
			}
			t.healthy(60_000)
		}),
		pass("a client is killed at once, and the others go on", func(t *tape) {
			killed(t, t.ask(3, 4990), 4995)
			t.crowd()
		}),
		pass("a client is killed with a renewed hold", func(t *tape) {
			killed(t, t.take(1, 5000, renewed), 5100)
			t.healthy(9000)
		}),
		pass("a client stands still for longer than its renewed hold lives", func(t *tape) {
			id := t.take(1, 5000, renewed)
			t.pause(5500, 9000)
			t.add(9001, history.Event{Type: history.Stopped, Attempt: id, Note: history.NoteBound})
			t.leave(id, 9002)
		}),
		pass("a client stands still while it tries", func(t *tape) {
			id := t.ask(1, 5000, once)
			t.pause(5001, 9000)
			t.fail(id, 9001, history.NoQuorum)
		}),
		pass("a client stands still while it waits", func(t *tape) {
			id := t.ask(1, 5000)
			t.pause(5001, 15_000)
			t.leave(t.get(id, 15_001), 15_010)
		}),
		pass("a client stands still while it releases", again(12, 4000, func(t *tape, at int64) {
			id := t.take(1, at)
			t.pause(at+11, at+1500)
			t.leaves(id, at+10, at+1501, history.NoQuorum)
		})),
		pass("an owner that enters again has the same token", func(t *tape) {
			outer := t.get(t.ask(1, 5000, of(history.Reentrant)), 5001, by("me"), token(7))
			inner := t.get(t.ask(1, 5002, of(history.Reentrant), by("me")), 5003, by("me"), token(7))
			t.leave(inner, 5010)
			t.leave(outer, 5020)
		}),
		pass("an owner enters again while masters get no time", func(t *tape) { t.entersLate(5000, 100) }),
		pass("readers have one token", func(t *tape) {
			a := t.get(t.ask(1, 5000, of(history.Shared)), 5001, token(7))
			b := t.get(t.ask(2, 5002, of(history.Shared)), 5003, token(7))
			t.leave(a, 5010)
			t.leave(b, 5020)
		}),
		pass("reports come twice", func(t *tape) { t.events = append(t.events, t.events...) }),
		pass("a clock of seconds, and the returns first", func(t *tape) {
			id := t.take(1, 5001)
			n := len(t.events)
			t.events[n-2].At, t.events[n-1].At = 5e9, 5e9
			t.events[n-2], t.events[n-1] = t.events[n-1], t.events[n-2]
			t.leave(id, 5010)
		}),
		pass("the run ends while clients ask, extend and release", func(t *tape) {
			id := t.take(1, 5000)
			t.add(5100, history.Event{Type: history.ExtendCall, Attempt: id, TTL: 2e9})
			t.add(5000, history.Event{Type: history.ReleaseCall, Attempt: t.take(2, 4990, onKey("other"))})
			t.fail(t.ask(3, 5101), 5200, history.Cancelled)
			t.ask(4, 5150)
		}),
		pass("a slow lock", again(12, 3000, func(t *tape, at int64) {
			t.leaves(t.get(t.ask(1, at), at+600, until(at+1900)), at+700, at+1300, history.Acquired)
		})),
		pass("ttls of five milliseconds", again(12, 10, func(t *tape, at int64) {
			id := t.get(t.ask(1, at, func(e *history.Event) { e.TTL = 5e6 }), at+1, until(at+5))
			t.leave(id, at+3)
		})),
		pass("masters are away for longer than the ttl", func(t *tape) {
			id := t.take(1, 5000, renewed, tellsDone)
			lost := func(at int64, typ history.Type) { t.add(at, history.Event{Type: typ, Client: history.Everyone}) }
			lost(5100, history.MajorityLost)
			lost(5100, history.KeepLost)
			t.add(7000, history.Event{Type: history.DoneClosed, Attempt: id})
			for n := range int64(50) {
				t.fail(t.ask(2, 6000+100*n, once), 6050+100*n, history.NoQuorum)
			}
			lost(15_000, history.KeepBack)
			lost(15_000, history.MajorityBack)
			t.healthy(17_000)
		}),
	})
}
