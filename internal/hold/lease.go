package hold

import (
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/single"
)

// Lease has the result of one acquisition: the keys that masters keep under one owner value. A lock that is passed on
// inside the process leaves its lease to its successor. So the holds of a lease follow each other, and present is the
// latest. Passing changes this pointer only.
//
// One mutex guards a lease and all of its holds. This prevents:
//
//   - A late answer to the acquisition comes while the lock is being passed on, or after two passes. It changes the one
//     masterState of that master, and the present hold uses the same one.
//   - The former holder asks Err, Verify or Release, or its timer fires, while its successor is being acquired. It
//     finds that it has parted: its own state says so.
//   - Close abandons the former holder while this holder passes the lock on. The lease stays with the former holder,
//     which has parted, and the keys lapse.
//   - Two mutexes of two holds would be taken in both orders.
type Lease struct {
	mu       sync.Mutex
	present  *Hold
	states   []masterState
	few      [fewMasters]masterState // what states are, of so many
	owner    string
	id       string        // tells the holds of one owner apart; "" for plain locks
	waiterID string        // under which name it waited in the masters' queues, if it did
	queued   bool          // its waiterID may still be in the masters' queues
	longest  time.Duration // the greatest ttl of a request to a master
	asOf     time.Duration // when the configuration was found current, for its acquisition
	passing  passing
	leaving  chan struct{} // closed when present does not leave any more; nil while nobody waits for that
}

// fewMasters is up to how many masters a hold and its rounds are allocated in one piece each.
const fewMasters = 5

// masterState is one master's part in one lease.
type masterState struct {
	last   *lane.Call // the latest operation, while it has not ended
	trace  Trace      // of our key
	queued bool       // it or an earlier attempt may stand in the arrival queue there

	gone              bool // an extension did not find the key there; see repair.go
	continuityUnknown bool // the key has been set again, and it is not known when
}

// nothingThere reports that a release need not be sent, because there is no key that it could remove.
func (s *masterState) nothingThere() bool { return s.last == nil && s.trace.Level < Touched }

// settleLocked records the effect of an ended call on its master.
func (e *Lease) settleLocked(c *lane.Call) {
	s, h := &e.states[c.Index], e.present
	if s.last == c {
		s.last = nil
	}
	switch c.Request.Op {
	case single.Acquire, single.Transfer, single.Extend:
		// An acquire that was refused by a client that retries counts as sent: the refusal may be the answer to the
		// second attempt while the first is still under way.
		granted := c.Err == nil && c.Reply.Outcome == single.Granted
		s.trace.Ended(End{Sets: sets(c), Sent: c.Sent, Unsure: c.Unsure(), Granted: granted})
		if c.Request.Op == single.Acquire {
			s.queued = s.queued || c.Request.Waiter != "" &&
				(c.Unsure() || c.Err == nil && c.Reply.Outcome == single.Refused)
		}
		s.gone = c.Request.Op == single.Extend && gone(c)
	case single.Release:
		// the last operation: its master has confirmed that the key is gone for good, or the janitor takes over
		if unsure := s.trace.Level >= Unsure; s.trace.Level >= Touched && (c.Err != nil || unsure) {
			h.env.Janitor.Adopt(c, unsure, h.env.Lapsed(h.env.Now(), e.longest),
				h.ending.start+c.Request.Keep)
		}
		s.trace = Trace{}
		if h.state.Settle() { // nothing is left to do for the hold
			h.env.Registry.Leave(&h.entry)
		}
	}
}

// strays reports that c was to leave a queue, together with the release of a key that is not there, and was not
// answered.
func strays(s *masterState, c *lane.Call) bool {
	return c.Request.Op == single.Release && c.Request.Waiter != "" && c.Err != nil && s.trace.Level < Touched &&
		s.queued
}

// inDoubtLocked returns a bit for each master that may set the key, or may have set it, at an unknown time: a request
// that sets the key was not answered there. The answer to a later request does not remove the doubt.
func (e *Lease) inDoubtLocked() (masters uint64) {
	for i := range e.states {
		if s := &e.states[i]; s.continuityUnknown || s.trace.Level >= MayLand || s.last != nil && sets(s.last) {
			masters |= 1 << i
		}
	}
	return masters
}

// sets reports that c sets a key that is free.
func sets(c *lane.Call) bool {
	return c.Request.Op == single.Acquire || c.Request.Op == single.Extend && c.Request.Repair
}

// Owner returns the value that proves on the masters who holds the keys. It is a secret.
func (e *Lease) Owner() string { return e.owner }

// Rename sets the owner before the keys are asked for.
func (e *Lease) Rename(value string) { e.owner = value }

// ID tells the holds of one owner apart; "" for plain locks.
func (e *Lease) ID() string { return e.id }

// QueuedOn returns the masters that may have the Locker in their queues because of this lease or of its predecessors.
func (e *Lease) QueuedOn() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.queuedOnLocked()
}

func (e *Lease) queuedOnLocked() (masters uint64) {
	for i := range e.states {
		if s := &e.states[i]; s.queued || s.last != nil && e.waiterID != "" {
			masters |= 1 << i
		}
	}
	return masters
}

// QueueOn notes that these masters may have the waiter in their queues; inherited if others of the process may have
// entered it in more.
func (e *Lease) QueueOn(waiterID string, masters uint64, inherited bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiterID, e.queued = waiterID, e.queued || inherited
	e.queueOnLocked(masters)
}

func (e *Lease) queueOnLocked(masters uint64) {
	for i := range e.states {
		e.states[i].queued = e.states[i].queued || masters&(1<<i) != 0
	}
}

// Follow makes calls, one for each master, follow the operations of its holds that are under way there.
func (e *Lease) Follow(calls []lane.Call, timeout time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range calls {
		if c, last := &calls[i], e.states[i].last; last != nil {
			c.After, c.Deadline = last, c.Deadline.Add(max(timeout, e.present.env.Lanes[i].Patience()))
		}
	}
}
