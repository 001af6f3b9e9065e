package sim

import (
	"context"
	"flag"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/internal/mutant/mutanttest"
	"github.com/seed-624411e5/redlock/internal/soak"
)

// machine is a world that rapid controls step by step: three clients that want one key of five
// masters. The world lives in a bubble. It receives its orders over channels made outside the
// bubble, so its time stands while it waits for rapid.
type machine struct {
	w     *world
	holds map[*client]*hold
	tell  chan func()
	told  chan struct{}
	ended chan error
}

// machineTTL is the longest ttl.
const machineTTL = 400 * time.Millisecond

func newMachine(seed uint64, broken BrokenVariants) *machine {
	session := Session{Keys: []int{0}, TTL: machineTTL} // tells the guard how long keys live
	s := &Schedule{
		Seed: seed, Broken: broken, Net: Net{
			MinDelay: 50 * time.Microsecond, MaxDelay: 2 * time.Millisecond, Spike: 20,
			SpikeDelay: 30 * time.Millisecond,
		},
	}
	for i := range 5 {
		s.Masters = append(s.Masters,
			MasterClock{PPM: int64(i-2) * 2500, Offset: time.Duration(i) * 300 * time.Microsecond})
	}
	for i := range 3 {
		s.Clients = append(s.Clients, Client{PPM: int64(i-1) * 5000, Tasks: [][]Session{{session}}})
	}
	m := &machine{
		w:     &world{plan: s, names: make(map[string]*owner), trace: &[]Line{}},
		holds: make(map[*client]*hold), tell: make(chan func()), told: make(chan struct{}), ended: make(chan error, 1),
	}
	go bubble(func() {
		err := m.w.build()
		for f := range m.tell {
			if err == nil {
				f()
			}
			m.told <- struct{}{}
		}
		if err == nil {
			err = m.w.shutDown()
		}
		m.ended <- err
	})
	return m
}

// do runs f in the bubble and waits for it.
func (m *machine) do(f func()) {
	m.tell <- f
	<-m.told
}

// advance lets time pass.
func (m *machine) advance(d time.Duration) {
	until := m.w.now + int64(d)
	m.w.loop(until, func() bool { return m.w.steps > maxSteps })
	m.w.now = max(m.w.now, until)
}

// fault breaks something now.
func (m *machine) fault(f *Fault) {
	m.w.breakDown(f)
	if f.Kind != Pause {
		m.w.at(m.w.now+int64(f.For), hidden, none, 0, func() { m.w.mend(f) })
	}
}

// idle reports that the client can take an order.
func (m *machine) idle(c *client) bool { return c.tasks[0].then == nil && c.stopped <= m.w.now }

func (m *machine) acquire(c *client, ttl time.Duration) {
	t := c.tasks[0]
	m.w.attempt++
	h := &hold{task: t, ids: []uint64{m.w.attempt}, keys: []string{keyName(0)}}
	h.record(history.Event{Type: history.AcquireCall, TTL: int64(ttl)})
	var err error
	m.step(t, func() { h.lock, err = c.locker.TryAcquire(context.Background(), keyName(0), ttl) }, func() {
		e := history.Event{Type: history.AcquireReturn, Outcome: outcomeOf(err)}
		if err == nil {
			h.closed, e.Owner, e.Until = h.lock.Done(), m.w.owner(h.lock.Owner()), h.bound()
			m.w.live = append(m.w.live, h)
			m.holds[c] = h
		}
		h.record(e)
	})
}

func (m *machine) extend(h *hold, ttl time.Duration) {
	h.record(history.Event{Type: history.ExtendCall, TTL: int64(ttl)})
	var err error
	m.step(h.task, func() { err = h.lock.Extend(context.Background(), ttl) }, func() {
		e := history.Event{Type: history.ExtendReturn, Outcome: outcomeOf(err), TTL: int64(ttl)}
		if err == nil {
			e.Until = h.bound()
		}
		h.record(e)
	})
}

func (m *machine) release(h *hold) {
	h.record(history.Event{Type: history.ReleaseCall})
	h.gone = true
	delete(m.holds, h.task.c)
	var err error
	m.step(h.task, func() { err = h.lock.Release(context.Background()) }, func() {
		h.record(history.Event{Type: history.ReleaseReturn, Outcome: outcomeOf(err)})
	})
}

// step makes a task do a call, at an instant that no other call has.
func (m *machine) step(t *task, f, then func()) {
	t.step(0, func() { t.call(f, then) })
	m.advance(2)
}

// believers counts the clients that believe now that they hold the lock.
func (m *machine) believers() int {
	n := 0
	for _, h := range m.holds {
		if !h.gone && h.lock.Remaining() > 0 {
			n++
		}
	}
	return n
}

// tally counts the events in rapid's cases, to show that they tested something.
type tally struct{ acquired, extended, released, faults int }

func TestRandomStepsBreakNoPromise(t *testing.T) {
	var did tally
	batches := 20
	if testing.Short() {
		batches *= 5 // rapid draws a fifth of the cases then, which are too few, and cheap
	}
	for range batches {
		rapid.Check(t, machineProperty(BrokenVariants{}, &did))
	}
	if did.acquired < 300 || did.extended < 30 || did.released < 30 || did.faults < 300 {
		t.Errorf("%+v: too few to mean anything", did)
	}
	t.Logf("%+v", did)
}

// The state machine must notice a lock that is broken.
func TestRandomStepsFindABrokenLock(t *testing.T) {
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "1s"} {
		before := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = flag.Set(name, before) })
	}
	for i, name := range []string{"plain-delete", "half-quorum", "late-extend"} {
		if i > 0 && !soak.Share(i, 2) { // building a mutant takes longer than finding it
			continue
		}
		t.Run(name, func(t *testing.T) {
			broken := BrokenVariants{Mutant: name}
			if name == "plain-delete" {
				broken = BrokenVariants{PlainDelete: true}
			} else if _, within := mutanttest.Within(t, name); !within {
				return
			}
			inner := &failing{TB: t}
			for range 50 {
				done := make(chan struct{})
				go func() { // which rapid ends when it has found something
					defer close(done)
					rapid.Check(inner, machineProperty(broken, new(tally)))
				}()
				<-done
				if inner.failed {
					return
				}
			}
			t.Error("not noticed")
		})
	}
}

// failing takes rapid's verdict without failing the test.
type failing struct {
	rapid.TB
	failed bool
}

func (f *failing) Logf(string, ...any)   {}
func (f *failing) Log(...any)            {}
func (f *failing) Errorf(string, ...any) { f.failed = true }
func (f *failing) Error(...any)          { f.failed = true }
func (f *failing) Fail()                 { f.failed = true }
func (f *failing) Failed() bool          { return f.failed }
func (f *failing) FailNow()              { f.failed = true; runtime.Goexit() }
func (f *failing) Fatal(...any)          { f.FailNow() }
func (f *failing) Fatalf(string, ...any) { f.FailNow() }

// machineProperty plays one case: after any sequence of rapid's steps, no two clients hold the lock
// at once, and all keys are free in the end.
func machineProperty(broken BrokenVariants, did *tally) func(*rapid.T) {
	return func(rt *rapid.T) {
		m := newMachine(rapid.Uint64().Draw(rt, "seed"), broken)
		defer func() {
			close(m.tell)
			if err := <-m.ended; err != nil {
				rt.Error(err)
			}
		}()
		rt.Repeat(m.actions(did))
		m.do(func() {
			m.advance(2*machineTTL + time.Second)
			for _, h := range m.held() {
				m.release(h)
			}
			m.advance(time.Second)
			// any attempt may meet a majority of masters that happen to be slow, and a new Locker's may last seconds
			c := m.w.clients[0]
			for attempts := 0; attempts < 5 && m.holds[c] == nil && m.w.steps <= maxSteps; {
				if m.idle(c) {
					m.acquire(c, machineTTL)
					attempts++
				}
				m.advance(time.Second)
			}
		})
		if last := m.w.events[len(m.w.events)-1]; m.w.steps > maxSteps {
			rt.Errorf("it did not settle: %+v", last)
		}
		if h := m.holds[m.w.clients[0]]; h == nil {
			rt.Error("no client can get the key after all has settled")
		}
	}
}

// actions are rapid's possible steps, and the check after each.
func (m *machine) actions(did *tally) map[string]func(*rapid.T) {
	client := rapid.IntRange(0, 2)
	span := func(rt *rapid.T, most time.Duration) time.Duration {
		return time.Duration(rapid.Int64Range(1, int64(most/time.Microsecond)).Draw(rt, "µs")) * time.Microsecond
	}
	ttl := func(rt *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(50, int(machineTTL/time.Millisecond)).Draw(rt, "ms")) * time.Millisecond
	}
	master := func(rt *rapid.T) int { return rapid.IntRange(0, 4).Draw(rt, "master") }
	// holder calls f with one of the holds, if there is one.
	holder := func(rt *rapid.T, f func(*hold)) {
		which := rapid.IntRange(0, 5).Draw(rt, "hold") // 6 is 1 · 2 · 3: fair for each number of holders
		m.do(func() {
			if held := m.held(); len(held) > 0 {
				f(held[which%len(held)])
			}
		})
	}
	fault := func(f *Fault) {
		m.do(func() {
			if f.Kind == Crash || f.Kind == Forget {
				if m.w.masters[f.Master].down {
					return
				}
			}
			m.fault(f)
			did.faults++
		})
	}
	return map[string]func(*rapid.T){
		"acquire": func(rt *rapid.T) {
			number, d := client.Draw(rt, "client"), ttl(rt)
			m.do(func() {
				if c := m.w.clients[number]; m.idle(c) && m.holds[c] == nil {
					m.acquire(c, d)
					did.acquired++
				}
			})
		},
		"extend": func(rt *rapid.T) {
			d := ttl(rt)
			holder(rt, func(h *hold) { m.extend(h, d); did.extended++ })
		},
		"release": func(rt *rapid.T) { holder(rt, func(h *hold) { m.release(h); did.released++ }) },
		"restart": func(rt *rapid.T) {
			kind := rapid.SampledFrom([]FaultKind{Crash, Forget}).Draw(rt, "kind")
			fault(&Fault{Kind: kind, Client: All, Master: master(rt), For: span(rt, 50*time.Millisecond)})
		},
		"freeze": func(rt *rapid.T) {
			fault(&Fault{Kind: Freeze, Client: All, Master: master(rt), For: span(rt, 100*time.Millisecond)})
		},
		"pause": func(rt *rapid.T) {
			fault(&Fault{Kind: Pause, Client: client.Draw(rt, "client"), Master: All, For: span(rt, 2*machineTTL)})
		},
		"advance": func(rt *rapid.T) {
			d := span(rt, machineTTL)
			m.do(func() { m.advance(d) })
		},
		"answers": func(rt *rapid.T) { // as long as masters need that are well: without it few calls would succeed
			d := span(rt, 10*time.Millisecond)
			m.do(func() { m.advance(d) })
		},
		"": m.check,
	}
}

// check checks the invariants.
func (m *machine) check(rt *rapid.T) {
	var found []oracle.Violation
	believers := 0
	m.do(func() {
		v := history.NewView(m.w.events)
		found = append(oracle.Safety(v), oracle.DoneAfterBound(v, doneTolerance)...)
		believers = m.believers()
	})
	for _, v := range found {
		rt.Error(v)
	}
	if believers > 1 {
		rt.Errorf("%d clients believe that they hold the lock", believers)
	}
}

// held returns the holds of idle clients.
func (m *machine) held() []*hold {
	var held []*hold
	for _, c := range m.w.clients {
		if h := m.holds[c]; h != nil && !h.gone && m.idle(c) {
			held = append(held, h)
		}
	}
	return held
}
