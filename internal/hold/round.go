package hold

import (
	"context"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/schedule"
	"github.com/seed-624411e5/redlock/single"
)

// round is one operation of one hold, sent to every master in parallel. The lease's mutex guards its fields. Calls in
// flight belong to their lane until they have ended.
//
// A round is decided once, by the first vote that settles it or by its timeout. Votes that arrive later are
// stragglers: they change nothing here, but the lock's master states record their effects on the masters.
type round struct {
	hold      *Hold
	request   single.Request
	start     time.Duration // the clock before the first byte was sent
	ballots   []ballot
	votes     Votes
	verdict   Verdict
	repairs   bool               // if it is won, masters that have lost the key get it back
	hurried   bool               // it waits no longer for masters that are late; see internal/contend
	verifies  bool               // it asks whether the key is there, by an extension that extends nothing
	observer  decisionObserver   // told once, when the round is decided; may be nil
	observers []decisionObserver // others, which were added later
}

// ballot is one master's part of a round.
type ballot struct {
	lane.Call
	vote   Vote
	ended  bool // the call is over and its result may be read
	spared bool // the master was not asked, because it is far behind the others
}

// decisionObserver is notified when a round has been decided. It is called without the lock's mutex, from any
// goroutine.
type decisionObserver interface{ onDecided(*round) }

// newRoundLocked prepares an operation of h. Nothing is sent yet.
func newRoundLocked(h *Hold, request single.Request, observer decisionObserver) *round {
	n := len(h.states)
	var r *round
	if n <= fewMasters {
		few := new(struct {
			round
			ballots [fewMasters]ballot
		})
		r, few.round.ballots = &few.round, few.ballots[:n]
	} else {
		r = &round{ballots: make([]ballot, n)}
	}
	r.hold, r.request, r.observer = h, request, observer
	// Under load most releases, and acquisitions of several keys, travel in bundles. A bundle needs no preparation
	// here.
	mayBundle := request.Op == single.Release || request.Op == single.Acquire && len(request.Keys) > 1
	if !mayBundle || !h.env.Lanes[0].Queued() {
		h.env.Prepare(&r.request)
	}
	for i := range r.ballots {
		c := &r.ballots[i].Call
		c.Request, c.Index, c.To = &r.request, i, r
	}
	r.start = h.env.Now()
	return r
}

// validUntil is the bound that winning this round earns.
func (r *round) validUntil() time.Duration {
	return r.hold.env.ValidUntil(r.start, r.request.TTL)
}

// judgeLocked returns the verdict of the votes so far.
func (r *round) judgeLocked() Verdict {
	if r.request.Op == single.Inspect {
		return r.hold.env.Inspected(r.votes, r.answersLocked())
	}
	return r.hold.env.Judge(r.request.Op, r.votes)
}

// countLocked enters one master's vote and reports whether it decided the round. A round that is decided counts no
// more.
func (r *round) countLocked(i int, v Vote) bool {
	if r.verdict != Open || r.ballots[i].vote != Pending {
		return false
	}
	r.ballots[i].vote = v
	r.votes.Add(i, v)
	r.verdict = r.judgeLocked()
	return r.verdict != Open
}

// voteOf reads the vote from a call that has ended. If a key was set again at an unknown time, it is no vote for
// continuity.
func (r *round) voteOf(c *lane.Call) Vote {
	switch {
	case c.Err != nil:
		return Unknown
	case r.request.Op == single.Raise && c.Reply.Token != r.request.Token:
		return Refused
	case r.continuityUnknown(c):
		return Unknown
	case c.Reply.Outcome == single.Granted:
		return Granted
	default:
		return Refused
	}
}

// Ended implements [lane.Receiver]: the call to one master has ended, in time or as a straggler.
func (r *round) Ended(c *lane.Call) {
	var after effects
	defer after.run()
	h := r.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	r.ballots[c.Index].ended = true
	if r.request.Fence || r.request.Op == single.Raise || r.request.Op == single.Transfer {
		h.env.Tokens.Observe(c.Reply.Token)
		r.noteRetentionLocked()
	}
	vote := r.voteOf(c)
	r.observeVote(c, vote)
	h.handle.Answered(c, vote == Refused)
	if r.countLocked(c.Index, vote) && !r.askSparedLocked(&after) {
		after.decided = r
	}
	if r.request.Op == single.Acquire {
		r.hurryLocked()
	}
	if strays(&h.states[c.Index], c) {
		after.leave(h, c.Request.Keys, 1<<c.Index)
	}
	if !r.verifies {
		h.settleLocked(c)
	}
	if r.repairs {
		after.repairs = r.repairsLocked()
	}
}

// expire counts every vote still missing as unknown: the round's time is up.
func (r *round) expire() {
	var after effects
	defer after.run()
	r.hold.mu.Lock()
	defer r.hold.mu.Unlock()
	for i := range r.ballots {
		if r.countLocked(i, Unknown) {
			after.decided = r
		}
	}
}

// addObserverLocked adds an observer of the decision, and reports false if the round has already been decided.
func (r *round) addObserverLocked(d decisionObserver) bool {
	if r.verdict != Open {
		return false
	}
	r.observers = append(r.observers, d)
	return true
}

// observeVote tells a watcher of a call that has ended, in time for its round or not.
func (r *round) observeVote(c *lane.Call, vote Vote) {
	if watch := r.hold.env.Watch; watch != nil {
		facts := r.facts()
		watch.Voted(&facts, c.Index, vote, c.Err)
	}
}

// announce notifies the observers. A decided round gets no more observers, so the observers can be read without the
// mutex.
func (r *round) announce() {
	if watch := r.hold.env.Watch; watch != nil {
		facts := r.facts()
		for i := range r.ballots {
			if r.ballots[i].spared {
				watch.Voted(&facts, i, Unknown, single.ErrBehind)
			}
		}
		watch.Decided(&facts)
	}
	if r.request.Op == single.Release {
		r.freed()
	}
	if r.observer != nil {
		r.observer.onDecided(r)
	}
	for _, d := range r.observers {
		d.onDecided(r)
	}
}

// refusal returns the fault of a round that masters have denied.
func (r *round) refusal() Fault {
	if r.request.Op == single.Acquire {
		return Refusal
	}
	return Absent
}

// failureLocked is nil of a round that was won, and otherwise why it was not: refusal where masters have denied it.
func (r *round) failureLocked(refusal Fault) *Failure {
	switch r.verdict {
	case Won:
		return nil
	case Denied:
		return &Failure{Fault: refusal, Op: r.request.Op, Result: r.resultLocked()}
	default:
		return &Failure{Fault: Unreached, Op: r.request.Op, Result: r.resultLocked()}
	}
}

// facts describes the round.
func (r *round) facts() Facts {
	return Facts{r.hold, r.request.Op, r.verifies, r.request.Keys, r.start, r.votes, r.verdict}
}

// resultLocked describes the round as it is now: late answers would change it.
func (r *round) resultLocked() *Result {
	res := &Result{Facts: r.facts(), Sent: r.sent(), Answers: r.answersLocked()}
	res.Hold, res.Keys = nil, slices.Clone(res.Keys) // whoever keeps it keeps neither the lock nor its acquisition
	res.Since = res.Sent
	if takes(r.request.Op) || r.request.Op == single.Raise {
		res.Since = r.hold.terms.Sent
	}
	return res
}

func (r *round) answersLocked() []Answer {
	answers := make([]Answer, len(r.ballots))
	for i := range r.ballots {
		b := &r.ballots[i]
		if answers[i] = (Answer{Vote: b.vote, Ended: b.ended}); b.ended {
			answers[i].Err, answers[i].Reply = b.Err, b.Reply
			answers[i].Unknown = b.Err == nil && r.continuityUnknown(&b.Call)
		}
	}
	return answers
}

// sent is the time when the first request of the round was sent. A request that follows another has a later deadline,
// and counts as sent later.
func (r *round) sent() time.Time {
	var first time.Time
	for i := range r.ballots {
		if at := r.ballots[i].Deadline; first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first.Add(-r.hold.terms.Timeout)
}

// roundWait is the wait of one goroutine for a round to be decided. It is reused where nothing can signal it any more.
type roundWait struct {
	signals chan signal // of capacity 2: each comes once at the most
	timer   schedule.Timer
	quiet   bool // nothing will signal it
}

// signal is an event that ends the wait of a roundWait. Both kinds come by one channel, because to select among many
// costs more than the wait.
type signal uint8

const (
	isDecided signal = iota
	isLate
)

// newRoundWait returns a roundWait that may have been used before; recycle takes it back.
func (e *Env) newRoundWait() *roundWait {
	if w, ok := e.spare.Get().(*roundWait); ok {
		return w
	}
	return &roundWait{signals: make(chan signal, 2), quiet: true}
}

func (e *Env) recycle(w *roundWait) {
	if w.quiet {
		e.spare.Put(w)
	}
}

// onDecided implements decisionObserver.
func (w *roundWait) onDecided(*round) { w.signals <- isDecided }

// wait returns when r has been decided, by its votes or because timeout has passed. It reports false when ctx is done
// before that.
func (w *roundWait) wait(ctx context.Context, timeout time.Duration, r *round) bool {
	w.quiet = false
	if w.timer == nil {
		w.timer = r.hold.env.After(timeout, func() { w.signals <- isLate })
	} else {
		w.timer.Reset(timeout)
	}
	select {
	case s := <-w.signals:
		if s == isLate {
			r.expire()
			<-w.signals
			w.quiet = true
			return true
		}
		w.quiet = w.timer.Stop()
		return true
	case <-ctx.Done():
		stopped := w.timer.Stop()
		for {
			select {
			case s := <-w.signals:
				if s == isDecided { // both at once: what was decided counts
					w.quiet = stopped
					return true
				}
			default:
				return false
			}
		}
	}
}

// hurryLocked limits the wait for late masters in a round of a try. A stopped master would otherwise hold up the next
// round until the timeout.
func (r *round) hurryLocked() {
	h := r.hold
	if r.verdict != Open || r.hurried || r.votes.Refused == 0 || !h.env.Majority(r.votes.Granted|r.votes.Refused) {
		return
	}
	r.hurried = true
	if d := h.handle.Patience(h.env.Now() - r.start); d > 0 {
		h.env.After(d, r.expire)
	}
}
