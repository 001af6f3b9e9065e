package hold

import (
	"context"
	"time"

	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/internal/schedule"
	"github.com/seed-624411e5/redlock/single"
)

// Hold is one hold of some keys: from its acquisition until nothing is left of it on the masters. It is safe for
// concurrent use. It has no goroutine.
type Hold struct {
	env    *Env
	handle Handle
	terms  *Terms
	*Lease // its mutex guards what follows

	entry Entry[*Hold]

	span   span
	unused bool // it was not needed, so that its key is not kept for a while
	state  State
	over   error         // why the hold is over; nil while it is not
	ending *round        // the release, once there is one
	token  uint64        // of a fenced lock
	done   chan struct{} // made on first use

	extending extending
	renewal   renewal
	attention schedule.Entry // when the hold next needs some
}

// onlyHold is the hold of an owner that was made for it. That of an owner that may have others is random.
const onlyHold = "1"

// Init prepares one attempt, in the name of owner or of a new one (""). Nothing is sent yet. It reports false if the
// Locker was closed.
func (h *Hold) Init(env *Env, handle Handle, t *Terms, e *Lease, value string) bool {
	h.env, h.handle, h.terms, h.Lease = env, handle, t, e
	h.owner, h.present, h.longest = value, h, t.TTL
	if n := len(env.Lanes); n <= fewMasters {
		h.states = h.few[:n]
	} else {
		h.states = make([]masterState, n)
	}
	if h.owner == "" {
		h.owner = owner.New(env.Identity)
	}
	switch {
	case t.Kind == single.Plain:
	case value == "":
		h.id = onlyHold
	default:
		h.id = owner.Random()
	}
	return env.Registry.Enter(&h.entry, h)
}

// Ask is how a hold asks for its keys.
type Ask struct {
	Token  uint64        // to begin with
	AsOf   time.Duration // when the configuration of masters was found current
	From   string        // the owner that has the keys and hands them over, if there is one
	Doubt  uint64        // masters that do not count, because that owner's requests may still set a key there
	Window time.Duration // for how long the lock may be passed on; 0: not at all

	Waiter   string        // the name in the masters' queues, if it waits there
	Waited   time.Duration // for how long
	Polite   bool          // others are before it, in queues
	Queued   bool          // masters may have the waiter in their queues, and it is not known which
	QueuedOn uint64        // masters that may have it
}

// Take asks the masters for the keys, and finds the token of a fenced lock. After a failure the hold is not held;
// [Hold.Abandon] releases what masters have granted.
func (h *Hold) Take(ctx context.Context, a Ask) *Failure {
	request := single.Request{Op: single.Acquire, TTL: h.terms.TTL, Token: a.Token}
	if a.From != "" {
		request.Op, request.From = single.Transfer, a.From
	} else {
		request.Fence, request.Exact = h.terms.Fenced, h.terms.Publishes
		request.Waiter, request.Waited, request.Polite = a.Waiter, a.Waited, a.Polite
		if h.terms.Fenced {
			request.Spare = h.env.Tokens.Spare(a.Window, a.Token)
			request.Retained = h.env.Retained.Has(h.terms.Keys[0], h.env.Now())
		}
	}
	h.mu.Lock()
	h.queueOnLocked(a.QueuedOn)
	for i := range h.states {
		h.states[i].continuityUnknown = a.Doubt&(1<<i) != 0
	}
	h.waiterID, h.queued, h.passing.window = a.Waiter, a.Queued, a.Window
	h.asOf = a.AsOf
	h.mu.Unlock()
	r, f := h.run(ctx, h.request(request))
	if f != nil {
		return f
	}
	return h.acquired(ctx, r)
}

// request completes a request for this hold.
func (h *Hold) request(r single.Request) single.Request {
	r.Kind, r.Keys, r.Owner, r.Hold, r.Within = h.terms.Kind, h.terms.Keys, h.owner, h.id, h.terms.Within
	if r.Op == single.Extend {
		r.Token = h.token
	}
	return r
}

// run performs one more operation of the hold and waits until it is decided.
func (h *Hold) run(ctx context.Context, request single.Request) (*round, *Failure) {
	w := h.env.newRoundWait()
	r := h.begin(request, w)
	if r == nil {
		return nil, &Failure{Fault: Ended, Op: request.Op, Verifies: request.Op == single.Extend}
	}
	if !w.wait(ctx, h.terms.Timeout, r) {
		return nil, &Failure{Fault: Cancelled, Op: request.Op, Verifies: request.Op == single.Extend}
	}
	h.env.recycle(w)
	return r, nil
}

// begin sends one more operation of the hold. It returns nil if the hold is over.
func (h *Hold) begin(request single.Request, observer decisionObserver) *round {
	var after effects
	defer after.run() // after unlocking
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state.Over() {
		return nil
	}
	r := newRoundLocked(h, request, observer)
	if takes(request.Op) {
		r.start = min(r.start, h.asOf)
	}
	r.verifies = request.Op == single.Extend // what is to extend something takes its turn; see extend.go
	r.issueLocked(&after)
	return r
}

// takes reports that an operation gets a hold its keys: free keys, or the keys of another owner that it names.
func takes(op single.Op) bool { return op == single.Acquire || op == single.Transfer }

// acquired turns a decided acquisition into a held lock. After a failure it is not held, and nothing has been released
// yet.
func (h *Hold) acquired(ctx context.Context, r *round) *Failure {
	h.mu.Lock()
	fences := r.verdict == Won && h.terms.Fenced && h.token == 0
	h.mu.Unlock()
	if fences {
		if f := (*fenced)(h).fence(ctx, r); f != nil {
			return f
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	until := r.validUntil()
	h.passing.ends, h.passing.bound = r.start+h.passing.window, until
	if h.terms.MaxHold > 0 {
		h.span.atMost = h.env.Later(r.start, h.terms.MaxHold)
		until = min(until, h.span.atMost)
	}
	if h.state.Over() { // the Locker was shut down
		return &Failure{Fault: Closed, Op: r.request.Op}
	}
	if f := r.failureLocked(r.refusal()); f != nil {
		return f
	}
	if until <= h.env.Now()+h.terms.Grace {
		return &Failure{Fault: Late, Op: r.request.Op, Result: r.resultLocked()}
	}
	// what was handed over and may have been set late is this hold's from now on, like the rest
	for i := range r.ballots {
		if b := &r.ballots[i]; b.ended && b.Err == nil && b.Reply.Outcome == single.Granted {
			h.states[i].continuityUnknown = false
		}
	}
	h.span.since = r.start
	h.state.Acquire()
	(*attended)(h).bindLocked(r, until)
	return nil
}

// Handle returns the owner of the hold.
func (h *Hold) Handle() Handle { return h.handle }

// Token returns the token of a fenced lock.
func (h *Hold) Token() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.token
}

// Left returns the rest of the hold's validity, zero or less when it is over.
func (h *Hold) Left() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := h.span.until - h.env.Now()
	if h.state.Over() {
		left = min(left, 0)
	}
	return left
}

// Status describes a hold that is held.
type Status struct {
	Now, Since, Until time.Duration
	Token             uint64
	Renewals          int
}

// Held describes the hold; ok is false if it is not held.
func (h *Hold) Held() (d Status, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.env.Now()
	if h.state.Over() || now >= h.span.until { // until is 0 of one that is being acquired
		return Status{}, false
	}
	return Status{now, h.span.since, h.span.until, h.token, h.renewal.count}, true
}

// HeldAt reports whether the hold was ever held and, if so, for how long at a time.
func (h *Hold) HeldAt(t time.Duration) (held bool, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.state.Held {
		return false, 0
	}
	return true, t - h.span.since
}

// Err returns nil while the hold is held, and then why not. It reads the clock, so it knows of an end that no timer has
// noticed yet.
func (h *Hold) Err() error {
	var after effects
	defer after.run()
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.env.Now(); !h.state.Over() && now >= h.span.until {
		h.overLocked(h.span.why(now), nil, &after)
		h.releaseLocked(nil, &after)
	}
	return h.over
}

// Over returns why the hold is over, nil while it is not; it does not read the clock.
func (h *Hold) Over() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// Why returns the reason for which the hold is over by now.
func (h *Hold) Why() Why {
	_ = h.Err()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state.Why
}

// Done returns a channel that is closed when the hold is over.
func (h *Hold) Done() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done == nil {
		h.done = make(chan struct{})
		if h.state.Over() {
			close(h.done)
		}
	}
	return h.done
}

// Inspect asks the masters who holds the keys. The hold leaves nothing behind.
func (h *Hold) Inspect(ctx context.Context) (*Result, *Failure) {
	defer h.env.Registry.Leave(&h.entry)
	r, f := h.run(ctx, single.Request{Op: single.Inspect, Keys: h.terms.Keys})
	if f != nil {
		return nil, f
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return r.resultLocked(), nil
}

// Handed describes a hold to the process that continues it.
type Handed struct {
	Token uint64
	Doubt uint64 // masters to which a request that sets a key may be on its way
}

// HandOver ends the hold, and leaves its keys on the masters. This process does not release the keys, so its waiters
// are notified now. If it has no waiters, the Locker leaves the masters' queues. It reports false if the hold was over.
func (h *Hold) HandOver() (d Handed, ok bool) {
	var after effects
	h.mu.Lock()
	queued := h.queued || h.queuedOnLocked() != 0
	if ok = !h.state.Over(); ok {
		d = Handed{h.token, h.inDoubtLocked()}
		h.overLocked(HandedOver, nil, &after)
		if h.env.Watch != nil {
			h.env.Watch.HandedOver(h, h.env.Now()-h.span.since)
		}
	}
	h.mu.Unlock()
	if !ok {
		return d, false
	}
	if unclaimed, _ := h.env.Leaving(Exit{Keys: h.terms.Keys}); len(unclaimed) > 0 && queued {
		after.leave(h, unclaimed, EveryMaster)
	}
	after.run()
	h.env.Registry.Leave(&h.entry) // only now: Close has to wait for what leaves the masters' queues
	return d, true
}
