package hold

import (
	"context"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// This file serialises the extensions of one hold. On each master, an operation of a hold waits until the earlier one
// has ended (see send.go). So an extension that began while another was under way would spend its request timeout in
// waiting. The serialisation prevents these failures:
//
//   - Masters take more than half the request timeout, and two callers extend at the same time, or one extends while
//     the lock is being renewed. The first succeeds; the second gets the error that too few masters answered in time.
//   - Eight callers extend at the same time, and the last waits for seven round trips.
//   - A majority has lost the key. The first extension sets it again on some masters and is not decided yet; the second
//     finds it there, and wins, although the lock was free in between.
//
// So only one extension is under way at a time. Callers that arrive while it runs share the next extension. It begins
// after all of these calls, and has the longest ttl among theirs, since no extension ever shortens. A renewal does
// not wait: it is tried again.

// extending is the state of a hold's extensions. Only newest counts renewals, too. The lock's mutex guards it.
type extending struct {
	latest *round
	newest *round  // of these and of renewals
	next   *cohort // its extension has not begun
}

// cohort is the callers that share an extension. round is nil until it begins.
type cohort struct {
	ttls  []time.Duration // of each caller that has not given up
	round *round
}

// Extend extends the hold to ttl. current waits until the configuration is current, and says as of when; Extend returns
// its error. After a failure the hold keeps its old end, unless it is over.
func (h *Hold) Extend(ctx context.Context, ttl time.Duration, current func(context.Context) (time.Duration, error)) (
	f *Failure, err error,
) {
	asOf, err := current(ctx)
	if err != nil {
		return nil, err
	}
	e := (*extended)(h)
	c := e.join(ttl)
	defer e.leave(c, ttl)
	for {
		w := h.env.newRoundWait()
		r, serves := e.begin(c, asOf, w)
		if r == nil {
			return &Failure{Fault: Ended, Op: single.Extend}, nil
		}
		if !w.wait(ctx, h.terms.Timeout, r) {
			e.abandon(r)
			return &Failure{Fault: Cancelled, Op: single.Extend}, nil
		}
		h.env.recycle(w)
		// This also holds for an extension that this call only waited for: the goroutine that began it may not have
		// applied it yet.
		if over, f := e.apply(r); serves || over {
			return f, nil
		}
		if asOf, err = current(ctx); err != nil {
			return nil, err
		}
	}
}

// extended is a Hold as its extensions know it.
type extended Hold

// join adds a caller to those that the next extension serves.
func (e *extended) join(ttl time.Duration) *cohort {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.extending.next == nil {
		e.extending.next = new(cohort)
	}
	c := e.extending.next
	c.ttls = append(c.ttls, ttl)
	return c
}

// leave removes a caller from its cohort, unless the extension has begun.
func (e *extended) leave(c *cohort, ttl time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.round == nil {
		i := slices.Index(c.ttls, ttl)
		c.ttls = slices.Delete(c.ttls, i, i+1)
	}
}

// begin adds the observer to the cohort's extension or, if there is none yet, to another that is under way. If there is
// none, begin begins the cohort's, which counts from asOf. It begins none after validity has ended: another owner may
// have had the key since. serves reports that r is the cohort's. r is nil if the hold is over.
func (e *extended) begin(c *cohort, asOf time.Duration, observer decisionObserver) (r *round, serves bool) {
	if (*Hold)(e).Err() != nil {
		return nil, false
	}
	var after effects
	defer after.run()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state.Over() {
		return nil, false
	}
	if c.round != nil {
		if !c.round.addObserverLocked(observer) {
			after.observer, after.observed = observer, c.round
		}
		return c.round, true
	}
	x := &e.extending
	for _, r := range [...]*round{x.latest, e.renewal.round} {
		if r != nil && r.addObserverLocked(observer) {
			return r, false
		}
	}
	if x.latest == nil {
		after.unpassed = (*Hold)(e)
	}
	r = e.newRoundLocked(slices.Max(c.ttls), asOf, observer)
	x.latest, c.round, x.next = r, r, nil
	r.issueLocked(&after)
	return r, true
}

// newRoundLocked prepares an extension, of a configuration that was current as of then.
func (e *extended) newRoundLocked(ttl, asOf time.Duration, observer decisionObserver) *round {
	e.longest = max(e.longest, ttl)
	h := (*Hold)(e)
	r := newRoundLocked(h, h.request(single.Request{Op: single.Extend, TTL: ttl}), observer)
	r.repairs = true
	r.start = min(r.start, asOf)
	e.extending.newest = r
	return r
}

// abandon makes an extension take effect that its caller does not wait for any more. Otherwise the hold would not end
// although a majority has said that the key is lost.
func (e *extended) abandon(r *round) {
	e.mu.Lock()
	open := r.addObserverLocked(e)
	e.mu.Unlock()
	if !open {
		e.apply(r)
	}
}

// onDecided implements decisionObserver, for an abandoned extension.
func (e *extended) onDecided(r *round) { e.apply(r) }

// apply applies a decided extension. It also reports that the hold is over.
func (e *extended) apply(r *round) (over bool, f *Failure) {
	var after effects
	defer after.run()
	e.mu.Lock()
	defer e.mu.Unlock()
	f = e.applyLocked(r, &after)
	return e.state.Over(), f
}

// applyLocked applies a decided extension. The extension counts only if it was decided before the old bound. Until
// then no other owner could have had a quorum; afterwards one could, in between.
func (e *extended) applyLocked(r *round, after *effects) *Failure {
	h, now := (*Hold)(e), e.env.Now()
	switch {
	case h.state.Over():
	case now >= h.span.until:
		h.overLocked(h.span.why(now), nil, after)
		h.releaseLocked(nil, after)
	case r.verdict == Won:
		(*attended)(h).bindLocked(r, r.validUntil())
		return nil
	case r.verdict == Denied:
		h.overLocked(Lost, r.resultLocked(), after)
		h.releaseLocked(nil, after)
	default:
		return r.failureLocked(Absent)
	}
	return &Failure{Fault: Ended, Op: single.Extend}
}

// Verify asks the masters whether they still have the keys, and returns nil if a quorum has them. If a majority has
// lost them, the hold is over.
func (h *Hold) Verify(ctx context.Context) *Failure {
	// An extension by almost nothing changes nothing, and is granted just where the hold is there.
	r, f := h.run(ctx, h.request(single.Request{Op: single.Extend, TTL: time.Millisecond}))
	if f != nil {
		return f
	}
	if h.Err() != nil {
		return &Failure{Fault: Ended, Op: single.Extend, Verifies: true}
	}
	var after effects
	defer after.run()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.state.Over():
	case r.verdict == Denied:
		h.overLocked(Lost, r.resultLocked(), &after)
		h.releaseLocked(nil, &after)
	case r.verdict != Won:
		h.passing.doubt = true
		after.unpassed = h
	}
	return r.failureLocked(r.refusal())
}
