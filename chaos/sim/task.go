package sim

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/sim/spec"
)

// task is one goroutine of a client. The scheduler decides when it does which step; the goroutine
// exists only to wait in the engine's blocking calls.
type task struct {
	c         *client
	number    int
	sessions  []Session
	work      chan func() // what to call next
	ended     chan struct{}
	then      func() // the scheduler's next step when it has returned; nil: nothing is under way
	at        int    // the next session
	finished  bool
	ending    bool     // the last session acquires and extends no more
	acquiring *hold    // the hold that it is acquiring
	parked    *Session // that waits for the second part of an exchange
	cancel    context.CancelCauseFunc
}

// hold is one acquisition and the lock that came of it, as the history knows it.
type hold struct {
	task    *task
	ids     []uint64 // of the attempts, one for each key
	keys    []string
	kind    history.Kind
	lock    *redlock.Lock
	closed  <-chan struct{} // its Done
	until   time.Duration   // by the client's clock
	renewed bool
	bounded bool // MaxHold ends it
	gone    bool // it was released, its Done closed, or its client died

	// What counting takes.
	began  time.Duration // the time of the request, by the client's clock
	since  time.Duration // when it was got
	ttl    time.Duration
	grace  time.Duration
	tries  bool // it does not wait
	rounds int  // of its acquisition
	over   bool // Done has closed by itself
	lasted bool // for a hundred ttls
}

func newTask(c *client, number int, sessions []Session) *task {
	return &task{c: c, number: number, sessions: sessions, work: make(chan func()), ended: make(chan struct{}, 1)}
}

// run is the task's goroutine.
func (t *task) run() {
	for call := range t.work {
		call()
		t.ended <- struct{}{}
	}
}

// call makes the goroutine call f; then runs on the scheduler once f has returned and all goroutines are idle.
func (t *task) call(f, then func()) {
	t.then = then
	t.work <- f
}

// step plans the task's next step after d of the client's clock.
func (t *task) step(d time.Duration, do func()) {
	w := t.c.w
	w.at(w.now+1+t.c.reference(d), visible, t.c.number, w.tie(uint64(t.c.number), uint64(t.number)), do)
}

// next plans the next session, or ends the task.
func (t *task) next() {
	if t.at == len(t.sessions) {
		t.finished = true
		return
	}
	s := &t.sessions[t.at]
	t.at++
	if t.postponed(s) {
		t.parked = s
		return
	}
	t.step(s.Idle, func() { t.begin(s, t.next) })
}

// announce announces the generation of the new set until the masters have accepted it, then calls after. A set may lack
// a quorum for a minute, so announce waits for pause after a failure, and doubles the pause each time, up to a second.
func (t *task) announce(s *Session, pause time.Duration, after func()) {
	w := t.c.w
	var err error
	tell := func() { err = t.c.locker.Announce(context.Background(), newest) }
	if w.plan.Broken.NotAnnounced {
		tell = func() {}
	}
	t.call(tell, func() {
		if err != nil {
			t.step(s.Idle+pause, func() { t.announce(s, min(2*pause, time.Second), after) })
			return
		}
		w.announced()
		after()
	})
}

// begin acquires the session's lock. after runs when the session is over.
func (t *task) begin(s *Session, after func()) {
	w := t.c.w
	if s.Announce {
		t.announce(s, time.Millisecond, after)
		return
	}
	h := &hold{
		task: t, kind: s.Kind, renewed: s.Renew, bounded: s.MaxHold > 0, began: t.c.reading(), ttl: s.TTL,
		grace: s.grace(), tries: s.Wait == 0,
	}
	for _, n := range s.Keys {
		w.attempt++
		h.ids = append(h.ids, w.attempt)
		h.keys = append(h.keys, keyName(n))
	}
	call := history.Event{
		Type: history.AcquireCall, TTL: int64(s.TTL), Wait: int64(s.Wait), Renew: s.Renew &&
			s.MaxHold == 0, Quiet: s.Quiet,
	}
	if len(h.ids) > 1 {
		call.Lock = h.ids[0]
	}
	h.record(call)
	h.asks(s)
	ctx, cancel := context.WithCancelCause(context.Background())
	t.cancel = cancel
	if s.Wait > 0 {
		tie := w.tie(uint64(t.c.number), uint64(t.number), h.ids[0])
		w.at(w.now+1+t.c.reference(s.Wait), visible, t.c.number, tie, func() {
			t.cutShort(h)
			cancel(context.DeadlineExceeded)
		})
	}
	t.acquiring = h
	t.beginning(h)
	var err error
	t.call(func() { h.lock, err = acquire(ctx, t.c.locker, h.keys, s) }, func() { t.acquired(s, h, err, after) })
}

// acquire makes the call that the session asks for.
func acquire(ctx context.Context, locker *redlock.Locker, keys []string, s *Session) (*redlock.Lock, error) {
	opts := []redlock.Option{redlock.Grace(s.grace())}
	if s.Renew {
		opts = append(opts, redlock.AutoRenew())
	}
	if s.MaxHold > 0 {
		opts = append(opts, redlock.MaxHold(s.MaxHold))
	}
	switch s.Kind {
	case history.Fenced:
		opts = append(opts, redlock.Fenced())
	case history.Shared:
		opts = append(opts, redlock.Shared())
	case history.Exclusive:
		opts = append(opts, redlock.Exclusive())
	case history.Reentrant:
		opts = append(opts, redlock.Reentrant("job-"+strconv.Itoa(s.Job)))
	}
	if s.Every > 0 && s.Wait > 0 {
		opts = append(opts, redlock.RetryEvery(s.Every))
	}
	if len(keys) > 1 {
		opts = append(opts, redlock.AndKeys(keys[1:]...))
	}
	if s.Wait > 0 {
		return locker.Acquire(ctx, keys[0], s.TTL, opts...)
	}
	return locker.TryAcquire(ctx, keys[0], s.TTL, opts...)
}

// grace is the session's grace, or else the shortest that is allowed: a longer one would take the
// place of the drift allowance, and hide it if that were missing.
func (s *Session) grace() time.Duration { return max(s.Grace, time.Millisecond) }

// record enters an event of the hold in the history, once for every key.
func (h *hold) record(e history.Event) {
	e.Client, e.Kind = h.task.c.number, h.kind
	for i, id := range h.ids {
		e.Attempt, e.Key = id, h.keys[i]
		h.task.c.w.record(e)
	}
}

// acquired takes note of how the acquisition ended.
func (t *task) acquired(s *Session, h *hold, err error, after func()) {
	w := t.c.w
	t.acquiring = nil
	e := history.Event{Type: history.AcquireReturn, Outcome: outcomeOf(err)}
	if err != nil {
		w.counts.failed(err)
		h.missed(s, err)
		h.record(e)
		h.says(spec.Answered, err, spec.Step{})
		after()
		return
	}
	h.closed, h.since = h.lock.Done(), t.c.reading()
	e.Owner, e.Until, e.Token = w.owner(h.lock.Owner()), h.bound(), h.lock.Token()
	h.says(spec.Answered, nil, spec.Step{Bound: h.until, Token: e.Token})
	owner := w.know(h.lock.Owner())
	if owner.held && (h.kind == history.Plain || h.kind == history.Fenced) {
		w.counts.Passed++
		if h.kind == history.Fenced {
			w.counts.WithTokens++
		}
	}
	owner.settled, owner.held, owner.hold = true, true, h
	h.record(e)
	w.counts.acquired(s, t.c.plan.Sets)
	w.live = append(w.live, h)
	t.extend(s, h, 0, after)
}

// bound reads the hold's bound, in reference time.
func (h *hold) bound() int64 {
	c := h.task.c
	left := h.lock.Remaining()
	h.until = c.reading() + left
	return c.w.now + c.reference(left)
}

// extend plans the n-th extension, or the step after the last one.
func (t *task) extend(s *Session, h *hold, n int, after func()) {
	if n == len(s.Extends) {
		t.ending = t.at == len(t.sessions) && !s.Renew
		t.step(s.Hold, func() { t.leave(s, h, after) })
		return
	}
	x := s.Extends[n]
	t.step(x.After, func() {
		h.record(history.Event{Type: history.ExtendCall, TTL: int64(x.TTL)})
		h.extends(x.TTL)
		h.says(spec.Extend, nil, spec.Step{TTL: x.TTL})
		var err error
		t.call(func() { err = h.lock.Extend(context.Background(), x.TTL) }, func() {
			e := history.Event{Type: history.ExtendReturn, Outcome: outcomeOf(err), TTL: int64(x.TTL)}
			if err == nil {
				h.lateFor(h.until, t.c.reading())
				e.Until = h.bound()
				t.c.w.counts.Extended++
			} else {
				h.extended(err)
			}
			h.says(spec.Extended, err, spec.Step{Bound: h.reports(), Asked: true})
			h.record(e)
			t.extend(s, h, n+1, after)
		})
	})
}

// leave ends the session: by a release, or by doing nothing more.
func (t *task) leave(s *Session, h *hold, after func()) {
	if s.Leave && (!s.Renew || s.MaxHold > 0) {
		after()
		return
	}
	h.record(history.Event{Type: history.ReleaseCall})
	h.releases()
	h.says(spec.Free, nil, spec.Step{})
	h.gone = true
	var err error
	t.call(func() { err = h.lock.Release(context.Background()) }, func() {
		h.record(history.Event{Type: history.ReleaseReturn, Outcome: outcomeOf(err)})
		h.says(spec.Freed, err, spec.Step{})
		if err == nil {
			t.c.w.checkReleased(h)
		}
		after()
	})
}

// outcomeOf says how a call ended in the history's words.
func outcomeOf(err error) history.Outcome {
	switch {
	case err == nil:
		return history.Acquired
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return history.Cancelled
	case errors.Is(err, redlock.ErrHeld), errors.Is(err, redlock.ErrContended), errors.Is(err, redlock.ErrNotHeld):
		return history.Held
	case errors.Is(err, redlock.ErrNoQuorum):
		return history.NoQuorum
	case errors.Is(err, redlock.ErrExpired):
		return history.Expired
	default:
		return history.Failed
	}
}

func keyName(n int) string { return "k" + strconv.Itoa(n) }
