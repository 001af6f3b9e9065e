package redlock

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/internal/contend"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/waitqueue"
	"github.com/seed-624411e5/redlock/single"
)

// This file decides which errors end a wait. Package single says of each error how long it lasts ([single.Faults]); a wait ends for
// complaints of masters, which are the errors that do not pass by themselves, when so many complain that no quorum is left:
//
//   - at once for what is final: the client is closed, or the keys of the request can't be together;
//   - after [MendTime], or MaxOutage, for what somebody may mend meanwhile;
//   - never for what a credentials provider renews.

// MendTime is for how long Acquire goes on while so many masters complain that no quorum is left: of a wrong password, a missing right,
// a certificate, a replica's address, a key of another type. Then the wait ends with [ErrMisconfigured]. [MaxOutage] takes its place.
const MendTime = 10 * time.Second

// spellLasts is for how long masters count as complaining after the latest attempt that met it.
const spellLasts = 2 * contend.MaxComplainingPause

// complaints are what the latest request has met at each master that does not pass by itself. They outlive a round: it is lost as soon
// as too many masters fail for any reason, so the complaints of slower ones come after that.
type complaints struct{ list atomic.Pointer[complaintList] } // nil while there was none

type complaintList struct {
	mu  sync.Mutex
	met []complaint
}

type complaint struct {
	err   error
	lasts single.Lasting
	sent  time.Time // when the request was; zero: none has ended
	again bool      // the one before it met a complaint, too
}

// note takes note of how a call of l has ended, which was sent when its timeout began, or by now: one that had to wait for another
// has a later deadline, from which that time comes.
func (m *complaints) note(l *Locker, c *lane.Call, timeout time.Duration) {
	list, err := m.list.Load(), c.Err
	if list == nil && err == nil {
		return
	}
	lasts := single.Lasts(err)
	if lasts == single.Passing {
		err = nil
	}
	if list == nil && err != nil {
		m.list.CompareAndSwap(nil, &complaintList{met: make([]complaint, len(l.lanes))})
		list = m.list.Load()
	}
	if list == nil {
		return
	}
	i, sent := c.Index, c.Deadline.Add(-timeout)
	if now := time.Now(); now.Before(sent) {
		sent = now
	}
	list.mu.Lock()
	defer list.mu.Unlock()
	if !sent.Before(list.met[i].sent) {
		list.met[i] = complaint{err, lasts, sent, err != nil && list.met[i].err != nil}
	}
}

// counts reports that a complaint still holds. What a master that is down had before may have been mended. What was met a single time
// before the latest request, sent at own, may have been, too. A client of a cluster closes those of its nodes that have gone, so a closed
// client counts the second time.
func (c *complaint) counts(since, own time.Time) bool {
	fresh := !c.sent.Before(own) && c.lasts != single.Closed
	return c.err != nil && (c.again || fresh) && !c.sent.Before(since) && !lane.Outdated(c.err, since)
}

// blocking finds a set of masters of which so many complain that no quorum is left, by requests sent since then; nil if there is none.
// lasts is how long that lasts at least, and errs what each master complains of.
func (m *complaints) blocking(sets electorates, since, own time.Time) (blocked *electorate, lasts single.Lasting, errs map[int]error) {
	list := m.list.Load()
	if list == nil {
		return nil, single.Passing, nil
	}
	list.mu.Lock()
	defer list.mu.Unlock()
	errs = make(map[int]error)
	for lasts = single.Closed; lasts > single.Passing; lasts-- {
		var masters uint64
		for i := range list.met {
			if c := &list.met[i]; c.lasts >= lasts && c.counts(since, own) {
				errs[i] = c.err
				masters |= 1 << i
			}
		}
		for i := range sets {
			if set := &sets[i]; set.of(masters) > set.spare() {
				return set, lasts, errs
			}
		}
	}
	return nil, single.Passing, nil
}

// blame makes e, an error of this set, say what its masters complain of.
func (e *QuorumError) blame(set *electorate, lasts single.Lasting, errs map[int]error) *QuorumError {
	e.lasts = lasts
	switch lasts {
	case single.Closed:
		e.Reason = errClientsClosed
	case single.Final, single.Mendable:
		e.Reason = ErrMisconfigured
	default: // no quorum for now
	}
	node := 0
	for i := range maxMasters {
		if set.members&(1<<i) == 0 {
			continue
		}
		if err := errs[i]; err != nil {
			e.Nodes[node].Vote, e.Nodes[node].Err = Unknown, err
		}
		node++
	}
	return e
}

// lastingOf is for how long what has failed an acquisition lasts.
func lastingOf(err error) single.Lasting {
	if q, ok := errors.AsType[*QuorumError](err); ok {
		return q.lasts
	}
	return single.Final
}

// matter is what masters complain of: they may serve one kind of acquisition of a key and refuse another.
type matter struct {
	keys  string
	class waitqueue.Class
}

func (s *spec) matter() matter { return matter{strings.Join(s.keys, ","), s.class()} }

// complaining remembers since when the acquisitions of a Locker meet complaints and nothing else, so that those who wait behind each
// other in a queue wait for one time, and cost masters as much as one. It is safe for concurrent use.
type complaining struct {
	some atomic.Bool // there may be a spell

	mu sync.Mutex
	of map[matter]spell
}

// spell is a time in which masters complain.
type spell struct {
	began, latest time.Duration
	err           error // of the latest attempt
}

// met notes an attempt that has met complaints, and returns since when they do. It reports whether that begins now.
func (c *complaining) met(s *spec, err error, now time.Duration) (began time.Duration, begins bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[matter]spell)
	}
	for m, old := range c.of { // nobody else removes those that no success has ended
		if now-old.latest > spellLasts {
			delete(c.of, m)
		}
	}
	m := s.matter()
	found, goesOn := c.of[m]
	if !goesOn {
		found.began = now
	}
	found.latest, found.err = now, err
	c.of[m] = found
	c.some.Store(true)
	return found.began, !goesOn
}

// spell returns the one that s is in, if there is one.
func (c *complaining) spell(s *spec, now time.Duration) (found spell, ok bool) {
	if !c.some.Load() {
		return spell{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok = c.of[s.matter()]
	return found, ok && now-found.latest <= spellLasts
}

// end ends the spell that s is in: a quorum has answered.
func (c *complaining) end(s *spec) {
	if !c.some.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, s.matter())
	c.some.Store(len(c.of) > 0)
}

// complained takes note of how an attempt of w has failed.
func (w *waiting) complained(err error) {
	now, lasts := w.locker.clock.Now(), lastingOf(err)
	if lasts == single.Passing {
		w.ComplainedOf = 0
		return
	}
	began, begins := w.locker.complaining.met(w.spec, err, now)
	if begins {
		w.locker.observeComplaint(w.spec, err)
	}
	if w.ComplainedOf == 0 { // otherwise it was the latest attempt that met them, which may be longer ago than others remember
		w.ComplainedOf = max(1, began)
	}
}

// unmended is the complaint for which the wait has to end: its own, or what others have met who stood before it in the queue.
func (w *waiting) unmended() error {
	now := w.locker.clock.Now()
	s, ok := w.locker.complaining.spell(w.spec, now)
	if !ok {
		return nil
	}
	if w.ComplainedOf > 0 {
		s.began = w.ComplainedOf
	}
	if by := w.MendBy(&w.spec.Policy, s.began); lastingOf(s.err) != single.Mendable || by == 0 || now < by {
		return nil
	}
	return s.err
}
