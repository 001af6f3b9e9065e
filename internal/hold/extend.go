package hold

import (
	"context"
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

// extending is the state of a hold's extensions, without renewals. The lock's mutex guards it.
type extending struct {
	latest  *round
	begun   int           // how many there were
	wanted  time.Duration // by those that wait for the next one
	waiting int           // how many those are
}

// Extend extends the hold to ttl from asOf, unless an extension serves that began after asked others. done is false
// after an extension that does not serve: ask again. After a failure the hold keeps its old end, unless it is over.
func (h *Hold) Extend(ctx context.Context, ttl, asOf time.Duration, asked int) (done bool, f *Failure) {
	w := h.env.newRoundWait()
	e := (*extended)(h)
	r, serves := e.begin(ttl, asked, asOf, w)
	if r == nil {
		return true, &Failure{Fault: Ended, Op: single.Extend}
	}
	decided := w.wait(ctx, h.terms.Timeout, r)
	if !serves {
		e.waited()
	}
	if !decided {
		return true, &Failure{Fault: Cancelled, Op: single.Extend}
	}
	h.env.recycle(w)
	// This also holds for an extension that this call only waited for: the goroutine that began it may not have
	// applied it yet.
	over, f := e.apply(r)
	return serves || over, f
}

// Extensions counts the extensions that have begun.
func (h *Hold) Extensions() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.extending.begun
}

// extended is a Hold as its extensions know it.
type extended Hold

// waited records that one caller less waits for the next extension: the caller is about to ask for it, or was
// cancelled. With the last caller, waited forgets the ttl that these callers wanted.
func (e *extended) waited() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.extending.waiting--; e.extending.waiting == 0 {
		e.extending.wanted = 0
	}
}

// begin adds the observer to the extension under way or, if there is none, begins an extension. It begins none after
// validity has ended: another owner may have had the key since. asked is the number of extensions that had begun when
// the caller came. serves reports that this extension began after that, and is for at least ttl. A new extension
// counts from asOf. r is nil if the hold is over.
func (e *extended) begin(ttl time.Duration, asked int, asOf time.Duration,
	observer decisionObserver,
) (r *round, serves bool) {
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
	x := &e.extending
	if x.begun > asked && x.latest.request.TTL >= ttl {
		if !x.latest.addObserverLocked(observer) {
			after.observer, after.observed = observer, x.latest
		}
		return x.latest, true
	}
	for _, r := range [...]*round{x.latest, e.renewal.round} {
		if r != nil && r.addObserverLocked(observer) {
			x.wanted = max(x.wanted, ttl)
			x.waiting++
			return r, false
		}
	}
	r = e.newRoundLocked(max(ttl, x.wanted), asOf, observer)
	x.latest, x.wanted = r, 0
	if x.begun++; x.begun == 1 {
		after.unpassed = (*Hold)(e)
	}
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
	return r
}

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
