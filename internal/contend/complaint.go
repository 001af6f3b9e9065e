package contend

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/waitqueue"
	"github.com/seed-624411e5/redlock/single"
)

// This file decides which complaints end a wait. A complaint is an error of a master that does not pass by itself;
// package single classifies errors ([single.Faults]). A wait ends when so many masters complain that no quorum is
// left:
//
//   - at once if the error is final: the client is closed, or the keys can't be locked together;
//   - after [Policy].MendTime if an operator can mend it;
//   - never if a credentials provider renews it.

// spellLasts is the length of a spell after the latest attempt that met complaints.
const spellLasts = 2 * MaxComplainingPause

// complaints has the latest complaint of each master about one acquisition. It outlives a round: failures of any kind
// can lose a round early, and slower masters complain later.
type complaints struct{ list atomic.Pointer[complaintList] } // nil while there was none

type complaintList struct {
	mu  sync.Mutex
	met []complaint
}

type complaint struct {
	err   error
	lasts single.Lasting
	sent  time.Time // when the request was sent; zero: none has ended
	again bool      // the request before met a complaint, too
}

// note records how a call ended. The call was sent one timeout before its deadline, or now if that is earlier: a call
// that waited in a queue has a later deadline.
func (m *complaints) note(masters int, c *lane.Call, timeout time.Duration) {
	list, err := m.list.Load(), c.Err
	if list == nil && err == nil {
		return
	}
	lasts := single.Lasts(err)
	if lasts == single.Passing {
		err = nil
	}
	if list == nil && err != nil {
		m.list.CompareAndSwap(nil, &complaintList{met: make([]complaint, masters)})
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

// counts reports whether the complaint still holds: its request was sent after since, and its cause can't have been
// mended by now. An operator may have mended it while the master was down, or after a single complaint that came before
// own, when the latest request was sent. A Cluster client closes the clients of nodes that have left, so a closed
// client counts the second time.
func (c *complaint) counts(since, own time.Time) bool {
	fresh := !c.sent.Before(own) && c.lasts != single.Closed
	return c.err != nil && (c.again || fresh) && !c.sent.Before(since) && !lane.Outdated(c.err, since)
}

// blame looks for a set in which too many masters complain for a quorum, and enters it in f. It counts complaints about
// requests that were sent after since. It reports whether there is such a set; otherwise f stays as it is.
func (m *complaints) blame(f *Failure, sets []hold.Set, since, own time.Time) bool {
	list := m.list.Load()
	if list == nil {
		return false
	}
	list.mu.Lock()
	defer list.mu.Unlock()
	errs := make(map[int]error)
	for lasts := single.Closed; lasts > single.Passing; lasts-- {
		var masters uint64
		for i := range list.met {
			if c := &list.met[i]; c.lasts >= lasts && c.counts(since, own) {
				errs[i] = c.err
				masters |= 1 << i
			}
		}
		for i := range sets {
			if set := &sets[i]; set.Of(masters) > set.Spare() {
				f.Set, f.Lasts, f.Complaints = i, lasts, errs
				return true
			}
		}
	}
	return false
}

// matter is the subject of complaints: masters may serve one kind of acquisition of a key and refuse another.
type matter struct {
	keys  string
	class waitqueue.Class
}

func (a *Acquisition) matter() matter { return matter{strings.Join(a.Keys, ","), a.class()} }

// complaining remembers for each matter since when a Locker's attempts meet nothing but complaints. Waiters of one
// queue share that time: they end together, and cost the masters as much as one waiter. It is safe for concurrent use.
type complaining struct {
	some atomic.Bool // there may be a spell

	mu sync.Mutex
	of map[matter]spell
}

// spell is a period of complaints about one matter.
type spell struct {
	began, latest time.Duration
	failure       *Failure // of the latest attempt
}

// met records an attempt that met complaints. It returns when the spell began, and whether this attempt began it.
func (c *complaining) met(a *Acquisition, f *Failure, now time.Duration) (began time.Duration, begins bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[matter]spell)
	}
	m := a.matter()
	found, goesOn := c.of[m]
	if !goesOn || now-found.latest > spellLasts {
		// nobody else removes those that no success has ended
		maps.DeleteFunc(c.of, func(_ matter, old spell) bool { return now-old.latest > spellLasts })
		found.began, goesOn = now, false
	}
	found.latest, found.failure = now, f
	c.of[m] = found
	c.some.Store(true)
	return found.began, !goesOn
}

// spell returns the present spell of a's matter, if there is one.
func (c *complaining) spell(a *Acquisition, now time.Duration) (found spell, ok bool) {
	if !c.some.Load() {
		return spell{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok = c.of[a.matter()]
	return found, ok && now-found.latest <= spellLasts
}

// end ends the spell of a's matter: a quorum has answered.
func (c *complaining) end(a *Acquisition) {
	if !c.some.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, a.matter())
	c.some.Store(len(c.of) > 0)
}

// complained records how an attempt of w failed.
func (w *waiting) complained(f *Failure) {
	if f.Lasts == single.Passing {
		w.ComplainedOf = 0
		return
	}
	began, begins := w.crowd.complaining.met(w.of, f, w.crowd.env.Now())
	if begins {
		w.locks.Complains(f)
	}
	// otherwise the spell of w began earlier, perhaps before the one that complaining remembers
	if w.ComplainedOf == 0 {
		w.ComplainedOf = max(1, began)
	}
}

// unmended returns the complaint that ends the wait of w, or nil. It may come from a waiter that stood before w in the
// queue.
func (w *waiting) unmended() *Failure {
	now := w.crowd.env.Now()
	s, ok := w.crowd.complaining.spell(w.of, now)
	if !ok {
		return nil
	}
	if w.ComplainedOf > 0 {
		s.began = w.ComplainedOf
	}
	if by := w.MendBy(&w.of.Policy, s.began); s.failure.Lasts != single.Mendable || by == 0 || now < by {
		return nil
	}
	return s.failure
}
