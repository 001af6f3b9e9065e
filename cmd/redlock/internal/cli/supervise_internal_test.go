//go:build unix

package cli

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
	"github.com/seed-624411e5/redlock/internal/embedded"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// fakeProcess is a command that only records the calls of its methods.
type fakeProcess struct {
	terminal          bool // there is a terminal, and the command may have it
	has               bool // it has it
	continued, killed int
	begin             error         // the result of Begin
	gone              chan struct{} // closed by Kill; nil: never
}

func (p *fakeProcess) Begin(time.Duration) error { return p.begin }
func (p *fakeProcess) Done() <-chan struct{}     { return p.gone }
func (p *fakeProcess) Gone() <-chan struct{}     { return p.gone }
func (p *fakeProcess) Stopped() <-chan os.Signal { return nil }
func (p *fakeProcess) Status() child.Status      { return child.Status{} }
func (p *fakeProcess) Group() int                { return 1 << 30 }
func (p *fakeProcess) HasTerminal() bool         { return p.terminal }
func (p *fakeProcess) Suspend(bool) error        { return nil }
func (p *fakeProcess) RestoreTerminal()          {}
func (p *fakeProcess) Left(int) ([]string, int)  { return nil, 0 }

func (p *fakeProcess) GiveTerminal() bool {
	p.has = p.terminal
	return p.has
}

func (p *fakeProcess) TakeTerminal() bool {
	had := p.has && p.terminal
	p.has = false
	return had
}

func (p *fakeProcess) SignalOutside(os.Signal) error {
	p.continued++ // so that a stopped one gets the signal
	return nil
}

func (p *fakeProcess) Signal(sig os.Signal) error {
	if sig == child.Continue {
		p.continued++
	}
	return nil
}

func (p *fakeProcess) Terminate() error {
	p.continued++ // so that a stopped one gets the signal
	return nil
}

func (p *fakeProcess) Kill() error {
	if p.killed++; p.killed == 1 && p.gone != nil {
		close(p.gone)
	}
	return nil
}

type event struct {
	name   string
	handle func(s *supervisor)
}

var events = []event{
	{"SIGCONT", func(s *supervisor) { s.pass(child.Continue) }},
	{"SIGTERM", func(s *supervisor) { s.pass(syscall.SIGTERM) }},
	{"SIGINT", func(s *supervisor) { s.pass(os.Interrupt) }},
	{"SIGTSTP", func(s *supervisor) { s.pass(child.Stop) }},
	{"stopped", func(s *supervisor) { s.stopped(syscall.SIGSTOP) }},
	{"stopped for the terminal", func(s *supervisor) { s.stopped(syscall.SIGTTIN) }},
	{"timer", func(s *supervisor) { // whatever is planned is due
		s.nudgeAt = min(s.nudgeAt, 1)
		if s.wakeAt > 0 {
			s.wakeAt = 1
		}
		if s.kills > 0 { // before, it is planned for the end of the lock
			s.killAt = 1
		}
	}},
}

// losing is the beginning of the grace, when the command gets the signal to end. It comes while the lock is held.
var losing = event{"grace", func(s *supervisor) { s.grace = s.ttl }}

// sequences returns all sequences of these events, of at most n.
func sequences(of []event, n int) [][]event {
	all := [][]event{nil}
	for begin := 0; n > 0; n-- {
		for _, s := range all[begin:] {
			begin++
			for _, e := range of {
				all = append(all, append(slices.Clip(s), e))
			}
		}
	}
	return all
}

func names(sequence []event) string {
	var names []string
	for _, e := range sequence {
		names = append(names, e.name)
	}
	return strings.Join(names, ", ")
}

// shortHold acquires a lock without renewal.
func shortHold(t *testing.T, ttl time.Duration) *redlock.Lock { return holdBy(t, nil, ttl) }

// holdBy is shortHold with another clock than the system's.
func holdBy(t *testing.T, clock redlock.Clock, ttl time.Duration) *redlock.Lock {
	t.Helper()
	master, err := embedded.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	locker, err := redlock.Dial(t.Context(), []string{master.URL()}, redlock.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locker.Close(context.Background()) })
	lock, err := locker.Acquire(t.Context(), "key", ttl)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Release(context.Background()) }) // it may be over
	return lock
}

// supervise returns the supervisor of a command under a lock.
func supervise(t *testing.T, lock *redlock.Lock, ttl time.Duration, p process) *supervisor {
	t.Helper()
	s := &supervisor{
		what: "the lock", lock: lock, ttl: ttl, grace: ttl / 100, process: p, watch: &child.Watch{},
		signals: make(chan os.Signal, 1), fromKeyboard: func() bool { return true }, log: &journal{quiet: true},
		renewals: &renewals{},
	}
	t.Cleanup(func() { signal.Stop(s.signals) })
	return s
}

// standstill is a clock that pauses its reader until a settable moment.
type standstill struct {
	start time.Time
	until atomic.Int64
}

func (c *standstill) Now() time.Duration {
	if left := time.Duration(c.until.Load()) - child.Now(); left > 0 {
		<-time.After(left)
	}
	return time.Since(c.start)
}

func (c *standstill) Wall() time.Time                                   { return time.Now() }
func (c *standstill) AfterFunc(d time.Duration, f func()) redlock.Timer { return time.AfterFunc(d, f) }

// The lock is held when the supervisor begins to check it, and is over when the answer arrives. The supervisor must not
// act on the state before the pause. It must not send a stopped command the signal to end, because that would let the
// command run.
func TestHazard71APauseDuringTheCheckOfTheLockContinuesNothing(t *testing.T) {
	const ttl = time.Second
	clock := &standstill{start: time.Now().Add(-time.Hour)}
	p := &fakeProcess{}
	s := supervise(t, holdBy(t, clock, ttl), ttl, p)
	if s.look(); s.lost != nil {
		t.Fatalf("lost at once: %v", s.lost)
	}
	clock.until.Store(int64(s.bound + ttl/10))
	s.look()
	clock.until.Store(0)
	if p.continued != 0 || p.killed == 0 {
		t.Errorf("continued %d times, killed %d times", p.continued, p.killed)
	}
}

// history returns a supervisor after some events that came while its lock was held.
type history struct {
	supervisor
	process fakeProcess
	before  []event
}

// later returns a copy to go on with.
func (h *history) later() (*supervisor, *fakeProcess) {
	s, p := h.supervisor, h.process
	s.process = &p
	return &s, &p
}

// After a pause of all processes several events are pending at once, in any order. In no order may the command run for
// a moment. Events from before the pause also come in any order.
func TestHazard71NoOrderOfEventsContinuesACommandWhoseLockHasLapsed(t *testing.T) {
	const ttl = time.Second
	lock := shortHold(t, ttl)
	fresh := supervise(t, lock, ttl, nil)
	var histories []*history
	for _, terminal := range []bool{false, true} {
		for _, before := range sequences(append(slices.Clip(events), losing), 2) {
			h := &history{*fresh, fakeProcess{terminal: terminal, has: terminal}, before}
			h.supervisor.process = &h.process
			h.look()
			for _, e := range before {
				e.handle(&h.supervisor)
				h.settle()
			}
			if h.kills > 0 || lock.Err() != nil {
				t.Fatalf("killed %d times while the lock is held (%v), by %s", h.kills, lock.Err(), names(before))
			}
			wanted := slices.ContainsFunc(before, func(e event) bool {
				return e.name == "SIGCONT" || e.name == "grace"
			})
			if wanted && h.process.continued == 0 {
				t.Fatalf("not continued while the lock is held, by %s", names(before))
			}
			histories = append(histories, h)
		}
	}
	end := slices.MaxFunc(histories, func(a, b *history) int { return cmp.Compare(a.bound, b.bound) }).bound
	redistest.Eventually(t, 10*ttl, func() bool { return child.Now() >= end && lock.Err() != nil },
		"the end of the validity")

	tried := 0
	for _, h := range histories {
		for _, after := range sequences(events, 3)[1:] {
			s, p := h.later()
			for i, e := range after {
				e.handle(s)
				s.settle()
				if p.continued > h.process.continued || p.killed == 0 {
					t.Fatalf("continued %d times, killed %d times after the end of the lock; before it: %s; after "+
						"it: %s",
						p.continued-h.process.continued, p.killed, names(h.before), names(after[:i+1]))
				}
			}
			s.ended()
			if p.continued > h.process.continued {
				t.Fatalf("continued when it had ended; before the end of the lock: %s; after it: %s", names(h.before),
					names(after))
			}
			tried++
		}
	}
	if tried < 25_000 {
		t.Errorf("only %d orders were tried", tried)
	}
}

// A single Ctrl-C is passed on and does nothing more. Three soon after each other end a command that ignores them, if
// they come from a keyboard.
func TestOnlyCtrlCsSoonAfterEachOtherKill(t *testing.T) {
	for name, c := range map[string]struct {
		keyboard bool
		apart    time.Duration
		want     int
	}{
		"at a keyboard":  {true, 0, 1},
		"with pauses":    {true, 2 * interruptsWithin, 0},
		"from a program": {false, 0, 0},
	} {
		p := &fakeProcess{}
		s := supervise(t, shortHold(t, time.Minute), time.Minute, p)
		s.fromKeyboard = func() bool { return c.keyboard }
		for range 3 {
			s.pass(os.Interrupt)
			s.last -= c.apart
		}
		if p.killed != c.want || s.kills != 0 {
			t.Errorf("%s: killed %d times, want %d; %d of them for the lock", name, p.killed, c.want, s.kills)
		}
		if got := s.interruptedBy(syscall.SIGKILL); got != (c.want > 0) {
			t.Errorf("%s: interrupted: %v", name, got)
		}
	}
}
