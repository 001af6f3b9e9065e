package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/internal/cause"
	"github.com/seed-624411e5/redlock/internal/contend"
	"github.com/seed-624411e5/redlock/internal/delivery"
	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/janitor"
	"github.com/seed-624411e5/redlock/single"
)

// EventKind says what happened.
type EventKind uint8

// The events of a Locker.
const (
	// EventAcquire: an acquisition round was decided. For a round of [Locker.Attach] Op is "attach". Err is nil if a
	// quorum granted the lock; the caller may still get an error, when validity was used up.
	EventAcquire EventKind = iota
	// EventExtend: an extension, asked for or by AutoRenew, was decided; or AutoRenew sent none, because the
	// configuration of masters is out of date, and Err matches [ErrOutdated].
	EventExtend
	// EventRelease: a release was decided. Failed attempts are released, too.
	EventRelease
	// EventLost: a lock ended without a release. Err says why.
	EventLost
	// EventSwept: the janitor had a release confirmed by Master that had not confirmed it in time.
	EventSwept
	// EventLapsed: the janitor gave up asking Master, because the key's ttl is over.
	EventLapsed
	// EventVote: one master's part in a round has ended: its Vote, after Took, or why there is none. A straggler's
	// comes after its round was decided, and does not change it.
	EventVote
	// EventPending: Master did not confirm a release. The janitor asks it again until EventSwept or EventLapsed. If
	// Err is set, too many releases are pending already: the master is not asked again, and the key lapses by its
	// ttl.
	EventPending
	// EventReturned: an Acquire, TryAcquire or Attach has returned Err to its caller, after Took and that many Rounds.
	EventReturned
	// EventVerify: [Lock.Verify] was decided: whether a quorum still has the lock's key. It extends nothing.
	EventVerify
	// EventPass: a lock was released, and passed on to another goroutine of this Locker, without asking a master.
	EventPass
	// EventHandover: a lock was handed over to another process ([Lock.Handover]), without asking a master.
	EventHandover
	// EventWaiting: an Acquire did not get the lock at once, and waits. Its EventReturned has Waited set, and ends
	// that.
	EventWaiting
	// EventComplaint: a wait goes on although too many masters complain for a quorum. The cause needs a person, or a
	// credentials provider that renews its credentials. Err has each master's complaint. The event is sent once, when
	// that begins.
	EventComplaint
)

// String returns the kind in lower case.
func (k EventKind) String() string {
	names := [...]string{
		"acquire", "extend", "release", "lost", "swept", "lapsed", "vote", "pending", "returned", "verify", "pass",
		"handover", "waiting",
		"complaint",
	}
	if int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Event is something that a Locker did. Which fields are set depends on its Kind.
type Event struct {
	Kind EventKind
	// At is when it happened.
	At time.Time
	// Context has the values of the context that was given to the acquisition, such as its trace. It never ends, and is
	// never nil. Of EventPending, EventSwept and EventLapsed it has no values.
	Context context.Context
	// Op is the operation: "acquire", "attach", "extend", "verify", "release", "raise" (a fencing counter) or
	// "inspect".
	Op string
	// Key is the key, or the keys, separated by commas.
	Key string
	// Granted, Refused and Unknown count the votes of a round when it was decided; Quorum of N masters were needed.
	// The deciding vote is the last one counted. So a round that was won has just a quorum of granted votes;
	// EventVote reports the later votes.
	Granted, Refused, Unknown, Quorum, N int
	// Set is "old" or "new" with a Locker over two sets of masters ([NewJoint]), and otherwise "". It names the set
	// that decided the round, in other events the old set. The counts above are of this set.
	Set string
	// Took is the time from the beginning of the round to its decision, or to the vote; of EventReturned, of the whole
	// call.
	Took time.Duration
	// Rounds is how many rounds an acquisition took.
	Rounds int
	// Waited, of EventReturned, says that there was an EventWaiting of the same call.
	Waited bool
	// Held, of EventRelease, EventPass, EventHandover and EventLost, says that the lock was held before, HeldFor how
	// long. The release of a failed attempt was not.
	Held    bool
	HeldFor time.Duration
	// Master is the master that voted or that the janitor asks. Vote is its vote.
	Master string
	Vote   Vote
	// Err is the failure, which matches one of the sentinels, or nil.
	Err error
	// Missed is how many events before this one were not delivered, because the Observer was too far behind.
	Missed int
}

// watch is an observed Locker as its holds know it.
type watch struct{ *Locker }

// Decided implements [hold.Watch]: it sends the events of a decided round.
func (w watch) Decided(f *hold.Facts) {
	set, votes := w.decisive(f), &f.Votes
	e := Event{
		Op: opName(f.Op, f.Verifies), Took: w.clock.Now() - f.Start,
		Set: set.Name, Quorum: set.Quorum, N: set.Masters(),
		Granted: set.Of(votes.Granted), Refused: set.Of(votes.Refused), Unknown: set.Of(votes.Unknown),
	}
	refusal := hold.Absent
	switch f.Op {
	case single.Acquire, single.Transfer:
		if e.Kind = EventAcquire; f.Op == single.Acquire {
			refusal = hold.Refusal
		}
	case single.Extend:
		if e.Kind = EventExtend; f.Verifies {
			e.Kind = EventVerify
		}
	case single.Release:
		e.Kind = EventRelease
		e.Held, e.HeldFor = f.Hold.HeldAt(f.Start)
	default:
		return
	}
	switch f.Verdict {
	case won:
	case denied:
		e.Err = faultReasons[refusal]
	default:
		e.Err = ErrNoQuorum
	}
	w.tell(lockOf(f.Hold).spec, e)
}

// Voted implements [hold.Watch].
func (w watch) Voted(f *hold.Facts, master int, vote hold.Vote, err error) {
	w.tell(lockOf(f.Hold).spec, Event{
		Kind: EventVote, Op: opName(f.Op, f.Verifies), Took: w.clock.Now() - f.Start,
		Master: w.names[master], Vote: Vote(vote), Err: err,
	})
}

// Lost implements [hold.Watch].
func (w watch) Lost(h *hold.Hold, reason error, held time.Duration) {
	w.tell(lockOf(h).spec, Event{Kind: EventLost, Err: reason, Held: true, HeldFor: held})
}

// HandedOver implements [hold.Watch].
func (w watch) HandedOver(h *hold.Hold, held time.Duration) {
	w.tell(lockOf(h).spec, Event{Kind: EventHandover, Op: opNames[single.Transfer], Held: true, HeldFor: held})
}

// PassedOn implements [hold.Watch].
func (w watch) PassedOn(h *hold.Hold, held time.Duration) {
	w.tell(lockOf(h).spec, Event{Kind: EventPass, Op: opNames[single.Release], Held: true, HeldFor: held})
}

// NotRenewed implements [hold.Watch].
func (w watch) NotRenewed(h *hold.Hold) {
	if err := w.outdated(); err != nil {
		w.tell(lockOf(h).spec, Event{Kind: EventExtend, Op: opNames[single.Extend], Err: err})
	}
}

// opNames are the operations as an observer gets to know them.
var opNames = [...]string{
	single.Acquire: "acquire", single.Extend: "extend", single.Release: "release", single.Raise: "raise",
	single.Inspect: "inspect", single.Announce: "announce", single.Transfer: "attach",
}

// opName returns the name of an operation in events and errors.
func opName(op single.Op, verifies bool) string {
	if verifies {
		return "verify"
	}
	return opNames[op]
}

// observeReturn sends the event of an acquisition that returns to its caller.
func (l *Locker) observeReturn(op single.Op, s *spec, start time.Duration, rounds int, err error) {
	if l.observer != nil {
		l.tell(s, Event{
			Kind: EventReturned, Op: opNames[op], Took: l.clock.Now() - start, Rounds: rounds, Waited: s.waited,
			Err: err,
		})
	}
}

// Waits implements [contend.Locks]: it sends, once for each call, the event of an acquisition that waits.
func (s *acquisition) Waits() {
	if !s.waited && s.locker.observer != nil {
		s.waited = true
		s.locker.tell((*spec)(s), Event{Kind: EventWaiting, Op: opNames[single.Acquire]})
	}
}

// Complains implements [contend.Locks]: it sends the event of a wait that goes on though masters complain.
func (s *acquisition) Complains(f *contend.Failure) {
	if l := s.locker; l.observer != nil {
		l.tell((*spec)(s), Event{Kind: EventComplaint, Op: opNames[single.Acquire], Err: l.notWon(f)})
	}
}

// tell queues an event about the acquisition s for the observer of an observed Locker.
func (l *Locker) tell(s *spec, e Event) {
	if e.N == 0 {
		first := &l.env.Sets[0]
		e.Set, e.Quorum, e.N = first.Name, first.Quorum, first.Masters()
	}
	e.Key, e.Context = l.listed(s.Keys), s.values
	l.observer.put(e)
}

// observePending sends the event of a release that master i had not confirmed.
func (l *Locker) observePending(what janitor.Kind, i int, r *single.Request) {
	e := Event{Op: opNames[single.Release], Key: l.listed(r.Keys), Master: l.names[i]}
	switch what {
	case janitor.Adopted:
		e.Kind = EventPending
	case janitor.Dropped:
		e.Kind, e.Err = EventPending, errTooManyPending
	case janitor.Settled:
		e.Kind = EventSwept
	case janitor.Lapsed:
		e.Kind = EventLapsed
	}
	l.observer.put(e)
}

var errTooManyPending = errors.New("redlock: too many releases of this master are pending already: the key lapses by " +
	"its ttl")

// maxEvents bounds the events that wait for an Observer which is slower than the Locker.
const maxEvents = 1 << 14

// observer calls Options.Observer.
type observer struct {
	queue   *delivery.Queue[Event]
	failure error // the first panic; to be read when the queue is empty
}

func newObserver(observe func(Event)) *observer {
	o := &observer{}
	o.queue = delivery.New(maxEvents, func(e Event, missed int) {
		defer func() {
			if p := recover(); p != nil && o.failure == nil {
				o.failure = fmt.Errorf("redlock: Options.Observer panicked on %q of %q: %v", e.Kind, e.Key, p)
			}
		}()
		e.Missed = missed
		observe(e)
	})
	return o
}

// put queues an event of now.
func (o *observer) put(e Event) {
	e.At = time.Now()
	if e.Context == nil {
		e.Context = context.Background()
	}
	o.queue.Put(e)
}

// close takes no more events and waits until Options.Observer has received all queued events. It returns the first
// panic of the Observer, and the number of events that the Observer missed. It waits no longer than ctx, and no
// longer for one call of Options.Observer than patience lasts, which begins anew with each call.
func (o *observer) close(ctx context.Context, patience func(context.Context) (context.Context, func())) error {
	var missed, left int
	for before := -1; ; before = left {
		waits, enough := patience(ctx)
		missed, left = o.queue.Close(waits.Done())
		enough()
		switch {
		case left > 0 && ctx.Err() != nil:
			return fmt.Errorf("redlock: close: Options.Observer was not told of the last %d events: %w", left,
				cause.Of(ctx))
		case left > 0 && left == before:
			return errSlowObserver
		}
		if left == 0 {
			break
		}
	}
	if missed > 0 {
		return errors.Join(o.failure,
			fmt.Errorf("redlock: close: Options.Observer was too far behind to be told of the last %d events", missed))
	}
	return o.failure
}

var errSlowObserver = errors.New("redlock: close: Options.Observer has not returned")
