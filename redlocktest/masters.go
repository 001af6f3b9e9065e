package redlocktest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock"
)

// TB is the part of a test that this package needs: *testing.T, *testing.B and *testing.F have it.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// DefaultCount is the number of masters without [Count].
const DefaultCount = 5

const maxCount = 64 // as redlock.New allows

// Option changes the masters that New starts.
type Option func(*settings)

type settings struct {
	count int
	guard time.Duration
}

// Count is the number of masters, from 1 to 64.
func Count(n int) Option { return func(s *settings) { s.count = n } }

// RestartGuard keeps a restarted master from voting for d, as single.Options.RestartGuard does; 0 means no guard. New's
// masters vote at once. Use it for Lockers with a RestartGuard in their Options.
func RestartGuard(d time.Duration) Option { return func(s *settings) { s.guard = d } }

// Masters are masters in this process. Slice it to act on some of the masters:
//
//	masters[:3].Stop()
//	masters[0].SlowDown(time.Second)
//	redlock.NewJoint(masters[:3].All(), masters[2:].All(), opts)
type Masters []*Master

// world is the common state of the masters of one New.
type world struct {
	tb    TB
	time  worldTime
	clock *clock // the masters'

	mu     sync.Mutex
	clocks []*clock // all of them
}

// tb returns the test of the first master, and for no masters a test that does nothing.
func (m Masters) tb() TB {
	if len(m) == 0 {
		return nobody{}
	}
	return m[0].world.tb
}

// nobody is the TB of an empty Masters. It has nothing to do, so nothing can fail.
type nobody struct{}

func (nobody) Helper()               {}
func (nobody) Cleanup(func())        {}
func (nobody) Errorf(string, ...any) {}
func (nobody) Fatalf(string, ...any) {}

// New starts masters, five unless [Count] says otherwise, named redlocktest-1 and so on. They use no goroutine and no
// port, and need no Close. In a bubble of testing/synctest, a Locker that is still open when tb ends fails the test.
// Bad options fail the test; tb must not be nil.
func New(tb TB, opts ...Option) Masters {
	if tb == nil {
		panic("redlocktest: New without a test: it needs one to fail") //nolint:forbidigo // nobody else could be told
	}
	tb.Helper()
	s := settings{count: DefaultCount}
	for i, o := range opts {
		if o == nil {
			tb.Fatalf("redlocktest: option %d of %d is nil", i+1, len(opts))
			continue // a TB of another implementation
		}
		o(&s)
	}
	switch {
	case s.count < 1 || s.count > maxCount:
		tb.Fatalf("redlocktest: Count is %d, and must be from 1 to %d", s.count, maxCount)
	case s.guard < 0:
		tb.Fatalf("redlocktest: RestartGuard is negative: %v", s.guard)
	}
	w := &world{tb: tb, time: worldTime{began: time.Now()}}
	w.clock = w.newClock()
	tb.Cleanup(func() {
		if lockerLeft() {
			tb.Errorf("redlocktest: a Locker was still open when its testing/synctest bubble ended, which takes that " +
				"for a deadlock: " +
				"defer its Close in the bubble, or make it with Masters.Locker, which closes it")
		}
	})
	all := make(Masters, s.count)
	for i := range all {
		all[i] = newMaster(w, fmt.Sprintf("redlocktest-%d", i+1), s.guard)
	}
	return all
}

// checkBubble fails the test if masters from outside are used in a bubble: their goroutines do not wait in its time.
func (w *world) checkBubble(tb TB) {
	tb.Helper()
	if w.time.isAhead() {
		tb.Fatalf("redlocktest: the masters were made outside the Locker's testing/synctest bubble: call " +
			"redlocktest.New in the bubble")
	}
}

// All returns the masters for redlock.New. A Locker made from them follows the masters' time, unless its Options have
// another Clock. The caller must close it: a bubble of testing/synctest takes an open Locker for a deadlock.
func (m Masters) All() []redlock.Master {
	all := make([]redlock.Master, len(m))
	for i := range m {
		all[i] = m[i]
	}
	return all
}

// Locker returns a Locker over the masters that is closed when tb ends. Options.Clock defaults to the masters' time;
// everything else has redlock's defaults. Bad options fail the test.
//
// When the Locker is closed, locks that are still held expire. The close waits for no stopped master: it moves the
// Locker's clock on until no lock is left. [Masters.Held] finds locks that were forgotten.
func (m Masters) Locker(tb TB, opts redlock.Options) *redlock.Locker {
	tb.Helper()
	if len(m) == 0 {
		tb.Fatalf("redlocktest: a Locker over no masters")
	}
	w := m[0].world
	w.checkBubble(tb)
	own := w.newClock()
	if opts.Clock == nil {
		opts.Clock = own
	}
	links := make([]redlock.Master, len(m))
	for i := range m {
		links[i] = link{m[i], own}
	}
	l, err := redlock.New(links, opts)
	if err != nil {
		w.drop(own)
		tb.Fatalf("redlocktest: %v", err)
	}
	tb.Cleanup(func() {
		tb.Helper()
		defer w.drop(own)
		if err := closeSoon(l, own); err != nil {
			tb.Errorf("redlocktest: closing the Locker: %v", err)
		}
	})
	return l
}

const (
	// calm is how long the Close of a Locker may take to release held locks.
	calm = 100 * time.Millisecond
	// patience is how long the close may take in the end.
	patience = 10 * time.Second
	// longestJump is the longest step of a Locker's clock in Advance.
	longestJump = 365 * 24 * time.Hour
)

// closeSoon closes a Locker, and moves its clock on until it waits for nothing.
func closeSoon(l *redlock.Locker, c *clock) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- l.Close(ctx) }()
	for wait, jump := calm, time.Hour; ; wait, jump = calm/5, min(2*jump, longestJump) {
		select {
		case err := <-closed:
			return err
		case <-time.After(wait):
			c.advance(jump)
		}
	}
}

// Clock is the masters' time. Lockers made by redlock.New use it by default. Set it in their Options if a wrapper
// stands between them and the masters. It begins an hour after its zero, runs as Go's clock does, and jumps with
// [Masters.Advance].
func (m Masters) Clock() redlock.Clock {
	if len(m) == 0 {
		return newClock(&worldTime{began: time.Now()})
	}
	return m[0].Clock()
}

// Advance moves time on by d, which must not be negative, for the masters and for all Lockers that follow them. For a
// Locker it is as if its process had been suspended for d. All timers that are due in d fire now, at the same time:
// locks are lost at the end of their validity, renewed or not, and ttls are over. To see a renewal, advance by less
// than two thirds of the ttl. To see events in their order, use a bubble of testing/synctest and time.Sleep.
//
// Advance returns at once; other goroutines do the work of the timers soon after.
func (m Masters) Advance(d time.Duration) {
	if len(m) == 0 {
		return
	}
	w := m[0].world
	if d < 0 {
		w.tb.Helper()
		w.tb.Fatalf("redlocktest: Advance by %v, and time does not go back", d)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.time.ahead.Add(int64(d))
	for _, c := range w.clocks {
		c.advance(0)
	}
}

// newClock returns a clock that follows the world's time until it is garbage.
func (w *world) newClock() *clock {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := newClock(&w.time)
	w.clocks = append(w.clocks, c)
	return c
}

func (w *world) drop(c *clock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clocks = slices.DeleteFunc(w.clocks, func(other *clock) bool { return other == c })
}

// Stop stops each of the masters; see [Master.Stop].
func (m Masters) Stop() { m.each((*Master).Stop) }

// Start starts each of the masters again; see [Master.Start].
func (m Masters) Start() { m.each((*Master).Start) }

// Forget empties each of the masters; see [Master.Forget].
func (m Masters) Forget() { m.each((*Master).Forget) }

// SlowDown lets each of the masters answer after d; see [Master.SlowDown].
func (m Masters) SlowDown(d time.Duration) { m.each(func(m *Master) { m.SlowDown(d) }) }

// Fail has each of the masters answer with err; see [Master.Fail].
func (m Masters) Fail(err error) { m.each(func(m *Master) { m.Fail(err) }) }

// FailNext makes each of the masters answer its next acquisition with err; see [Master.FailNext]. So the next attempt
// of a Locker over these masters fails: TryAcquire returns a *redlock.QuorumError that matches redlock.ErrNoQuorum
// and has err for each master. Acquire tries again, unless single.Permanent(err) is true.
func (m Masters) FailNext(err error) { m.each(func(m *Master) { m.FailNext(err) }) }

// Lose removes keys from each of the masters; see [Master.Lose].
//
// The holder learns of the loss as in reality: by its next renewal, a third of its ttl after the one before, by
// Extend or Verify, or when its validity ends. Until then it believes in its lock, and another process can get the
// key. To speed that up, call [Masters.Advance] with a third of the ttl.
func (m Masters) Lose(keys ...string) { m.each(func(m *Master) { m.Lose(keys...) }) }

func (m Masters) each(do func(*Master)) {
	for i := range m {
		do(m[i])
	}
}
