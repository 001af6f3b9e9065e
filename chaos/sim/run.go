package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/seedrun"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/internal/store"
)

// Result is the result of a run.
type Result struct {
	History    []history.Event
	Violations []oracle.Violation
	Counts     Counts
	// Steps is how many events the engine took part in or the network had.
	Steps int
	// Judged is how many steps of each kind the specification has allowed, and Passed how many it does not judge.
	Judged map[string]int
	Passed int
	// Trace lists the masters' actions, if RunTraced made the run.
	Trace []Line
}

// mostMasters is how many masters a schedule may have.
const mostMasters = 10

// Run performs a schedule and judges it. The error says that it could not be performed: a schedule that makes no
// sense, or goroutines of the engine that were still there after Close.
//
// It also says so of a run that has not ended after a minute: a goroutine of the engine never waits. That goroutine is
// left behind, so the program should end soon.
func Run(s *Schedule) (*Result, error) { return run(s, false) }

// RunTraced is Run, and also records the masters' actions for [Timeline].
func RunTraced(s *Schedule) (*Result, error) { return run(s, true) }

// ErrEndless is the error of a run that does not end.
var ErrEndless = errors.New("sim: the run has not ended after a minute: a goroutine of the engine never waits")

func run(s *Schedule, traced bool) (*Result, error) {
	var (
		res *Result
		err error
	)
	if !seedrun.Ends(func() { res, err = perform(s, traced) }) {
		return nil, ErrEndless
	}
	return res, err
}

func perform(s *Schedule, traced bool) (res *Result, err error) {
	if len(s.Masters) == 0 || len(s.Masters) > mostMasters || len(s.Clients) == 0 {
		return nil, fmt.Errorf("sim: %d masters and %d clients can't be run", len(s.Masters), len(s.Clients))
	}
	if err := cmp.Or(s.Broken.builtFor(), s.checkExchange()); err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("sim: the bubble ended badly: %v", r)
		}
	}()
	w := &world{plan: s, names: make(map[string]*owner), events: make([]history.Event, 0, 64)}
	if traced {
		w.trace = &[]Line{}
	}
	bubble(func() { err = w.play() })
	if err != nil {
		return nil, err
	}
	res = &Result{History: w.events, Steps: w.steps, Violations: w.judge()}
	res.Counts = w.counts
	res.Judged, res.Passed = w.conform.judged()
	if err := unjudged(res.Violations); err != nil {
		return nil, err
	}
	if traced {
		res.Trace = *w.trace
	}
	return res, nil
}

// bubble runs f in a bubble of virtual time, also outside a test: the command has no *testing.T. synctest.Test uses
// only the T's name and its failure reports. The zero T has both in usable form, and nothing here fails through it.
// RunTests and MainStart, the exported ways to get a T, parse the program's flags and print.
// TestTheReplayCommandFailsInTheSameWay runs the command as a program, so it fails if a later version of Go needs more.
func bubble(f func()) {
	synctest.Test(new(testing.T), func(*testing.T) { f() })
}

// build makes the masters and the clients.
func (w *world) build() error {
	w.began = time.Now()
	for i, clock := range w.plan.Masters {
		m := &master{w: w, number: i, clock: clock, store: store.New()}
		m.store.Early, m.store.Listens = clock.Early, m.listens
		w.masters = append(w.masters, m)
	}
	for i := range w.plan.Clients {
		c, err := newClient(w, i)
		if err != nil {
			return fmt.Errorf("sim: client %d: %w", i, err)
		}
		w.clients = append(w.clients, c)
		for _, t := range c.tasks {
			go t.run()
		}
	}
	w.specify()
	return nil
}

// play is the run, from the first session to the last goroutine.
func (w *world) play() error {
	if err := w.build(); err != nil {
		return err
	}
	w.mended = w.arm(false)
	if w.troubled() {
		w.record(history.Event{Type: history.MajorityLost, Client: history.Everyone})
	}
	if !w.keeps() {
		w.record(history.Event{Type: history.KeepLost, Client: history.Everyone})
	}
	for _, c := range w.clients {
		for _, t := range c.tasks {
			t.next()
		}
	}
	w.loop(math.MaxInt64, func() bool { return w.now >= w.mended && w.idle() })
	w.recover()
	return w.shutDown()
}

// troubled reports whether so much can go wrong in the run that no client is promised a majority.
func (w *world) troubled() bool {
	n := &w.plan.Net
	if n.Spike+n.LoseRequest+n.LoseReply+n.Reset > 0 {
		return true
	}
	hit := 0
	for i := range w.masters {
		if slices.ContainsFunc(w.plan.Faults, func(f Fault) bool { return w.hinders(&f, i) }) {
			hit++
		}
	}
	return hit > len(w.masters)-redlock.Quorum(len(w.masters)) || hit > 0 && w.plan.Exchange != nil
}

// hinders reports whether a master may not answer in time because of a fault.
func (w *world) hinders(f *Fault, master int) bool {
	if f.Kind == Blip || f.Kind == Slow && lateness*f.Amount <= w.plan.minTimeout() {
		return false
	}
	return f.Master == All || f.Master == master
}

// lateness is how many times as long as one message of a slow master its answer may take: it comes back behind an
// acquisition and its release.
const lateness = 8

// keeps reports whether the only fault is full masters, which must not end a lock that is held and
// renewed. A client that is forgotten in an exchange loses its locks.
func (w *world) keeps() bool {
	n, x := &w.plan.Net, w.plan.Exchange
	return (x == nil || !x.Forgotten) && n.Spike+n.LoseRequest+n.LoseReply+n.Reset == 0 &&
		!slices.ContainsFunc(w.plan.Faults, func(f Fault) bool { return f.Kind != Full && f.Kind != Blip })
}

// idle reports that all tasks have finished their sessions and all holds are over.
func (w *world) idle() bool {
	for _, c := range w.clients {
		for _, t := range c.tasks {
			if !c.dead && (!t.finished || c.stopped > w.now) {
				return w.steps > maxSteps
			}
		}
	}
	return len(w.live) == 0 || w.steps > maxSteps
}

// recover checks the end of a run. All faults are over, so the masters must lose the remains of
// ended holds, and every client that asks for a key must get it.
func (w *world) recover() {
	w.calm, w.healed = true, w.now
	w.record(history.Event{Type: history.Healed, Client: history.Everyone, Master: history.Everyone})
	if w.troubled() {
		w.record(history.Event{Type: history.MajorityBack, Client: history.Everyone})
	}
	inspection := w.now + int64(w.grace()) + int64(time.Millisecond)
	w.loop(inspection, func() bool { return w.steps > maxSteps })
	w.now = max(w.now, inspection)
	w.inspect()
	for i, c := range w.clients {
		if c.dead || len(c.tasks) == 0 || c.plan.Sets == OldSet { // old clients have ended
			continue
		}
		t := c.tasks[0]
		t.finished = false
		last := &Session{
			Keys: []int{i % w.plan.keys()}, TTL: w.plan.maxTTL(), Wait: 2 * w.patience(), Hold: time.Millisecond,
		}
		t.step(0, func() { t.begin(last, func() { t.finished = true }) })
	}
	w.loop(math.MaxInt64, w.idle)
}

// inspect records the keys on the masters.
func (w *world) inspect() {
	for _, m := range w.masters {
		for n := range w.plan.keys() {
			holders := m.store.Holders(m.time(), keyName(n))
			for _, owner := range slices.Sorted(maps.Keys(holders)) {
				if w.excused(owner) {
					continue
				}
				w.record(history.Event{
					Type: history.KeyFound, Client: none, Master: m.number, Key: keyName(n), Owner: owner,
					Value: int64(holders[owner]),
				})
			}
		}
	}
}

// excused reports whether a client of this owner died so lately that its keys may not have expired yet.
func (w *world) excused(name string) bool {
	for _, o := range w.names {
		if o.name != name {
			continue
		}
		return slices.ContainsFunc(o.users, func(c *client) bool {
			// a frozen master reads its last requests when it goes on
			return c.dead && w.now <= max(c.died, w.healed)+int64(w.patience())
		})
	}
	return false
}

// shutDown ends every goroutine of the run. One that does not end is reported by the bubble.
func (w *world) shutDown() error {
	if w.steps > maxSteps {
		w.record(history.Event{Type: history.Stopped, Client: history.Everyone, Note: "the run did not end"})
	}
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range w.clients {
		go func() { _ = c.locker.Close(ended) }() // its leftovers do not matter any more
		for _, l := range c.links {
			for _, f := range l.open {
				if !f.returned {
					f.finish(errOver)
				}
			}
			l.openGate()
		}
		for _, t := range c.tasks {
			if t.cancel != nil {
				t.cancel(nil)
			}
			close(t.work)
		}
	}
	for _, p := range w.waiting {
		p.proceed()
	}
	synctest.Wait()
	return nil
}

// judge asks the oracles.
func (w *world) judge() []oracle.Violation {
	v := history.NewView(w.events)
	w.countBridged(v)
	return slices.Concat(
		oracle.Overlap(v), oracle.ExtensionContinuity(v), oracle.ForeignRelease(v), w.tokenOrder(v), // as oracle.Safety
		oracle.DoneAfterBound(v, doneTolerance),
		oracle.Orphans(v, w.grace()),
		oracle.Liveness(w.reachable(v), w.patience(), 0),
		oracle.Kept(v),
		w.victims(v),
		w.unreleased(v),
		w.ended(),
		w.conform.refused,
	)
}

// doneTolerance is the longest time between the end of a client's pause and the first ring of its timers.
const doneTolerance = 5 * time.Microsecond

// NameEnds is the oracle that finds runs that did not end.
const NameEnds = "ends"

// ended finds a run that had to be stopped.
func (w *world) ended() []oracle.Violation {
	if w.steps <= maxSteps {
		return nil
	}
	return []oracle.Violation{{
		Oracle: NameEnds, At: w.now, Text: fmt.Sprintf("after %d events, at %s, a client still had not finished",
			w.steps, history.Stamp(w.now)),
	}}
}

// grace is how long the remains of ended holds may stay on healthy masters: two rounds of the
// janitor and the requests before, between and after these rounds.
func (w *world) grace() time.Duration {
	ttl := w.plan.maxTTL()
	timeout := w.requestTimeout()
	grace := 3*sweepInterval + 3*timeout + 4*w.plan.Net.MaxDelay
	// released holds may be back
	if slices.ContainsFunc(w.plan.Faults, func(f Fault) bool { return f.Kind == Rollback }) {
		grace += ttl + ttl/50
	}
	if w.plan.Net.Stray { // the janitor can't see late repetitions: the keys that they set expire with their ttl
		grace += ttl + ttl/50 + strayFor*2*timeout // a batch with a release that follows its acquire has two timeouts
	}
	return grace
}

// requestTimeout is the longest: the engine's for the longest ttl, or a client's own.
func (w *world) requestTimeout() time.Duration {
	var longest time.Duration
	for _, c := range w.clients {
		longest = max(longest, c.plan.timeout(w.plan.maxTTL()))
	}
	return longest
}

// strayFor is how many times the time it had left a repeated request may be late.
const strayFor = 20

// sweepInterval is the engine's value: how often the engine asks a master with a pending release.
const sweepInterval = 200 * time.Millisecond

// patience is the longest time until a client gets a free key: until the keys of dead clients have
// expired, plus as many split votes as the clients can have.
func (w *world) patience() time.Duration {
	return w.grace() + w.plan.maxTTL() + w.plan.maxTTL()/50 + 300*time.Millisecond
}
