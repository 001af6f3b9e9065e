package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/single"
)

// This file counts the interleavings that docs/evidence/interleavings.md has a row for.

// extending is how a key was before a request to extend it.
type extending struct {
	left    time.Duration
	counter uint64
	beside  bool // others hold it, too
}

// extending looks at a key before it is extended.
func (m *master) extending(r *single.Request) (was extending) {
	if r.Op != single.Extend {
		return was
	}
	key, now := r.Keys[0], m.time()
	switch {
	case r.Kind != single.Plain:
		was.beside = r.Repair && len(m.store.Holders(now, key)) > 0
	case r.Token > 0:
		was.counter = m.store.Counter(now, key)
	}
	if owner, left := m.store.Holder(now, key); owner == r.Owner {
		was.left = left
	}
	return was
}

// served counts a master's reply to one request of a flight.
func (c *Counts) served(f *flight, i int, was extending, reply single.Reply) {
	r, o := &f.asks[i], f.owners[i]
	refused := reply.Outcome == single.Refused
	switch r.Op {
	case single.Acquire:
		c.servedAcquire(r, o, reply)
	case single.Extend:
		switch {
		case reply.Outcome == single.Repaired:
			c.Repaired++
			add(&c.CounterRepaired, r.Token > 0 && was.counter == 0)
			add(&c.RepairedBeside, was.beside)
		case !refused:
			add(&c.Shorter, was.left > r.TTL)
		}
	case single.Raise:
		c.Raised++
		add(&c.RaiseRefused, refused)
		add(&c.SameNumber, refused && reply.Token == r.Token)
		add(&c.RaisedBoth, len(f.link.client.sets) > 1)
	case single.Leave:
		c.LeftQueue++
	}
}

func (c *Counts) servedAcquire(r *single.Request, o *owner, reply single.Reply) {
	add(&c.Polite, r.Polite)
	if reply.Outcome == single.Refused {
		c.Refused++
		add(&c.KeptOut, r.Kind == single.Shared && reply.Holder == "")
		return
	}
	add(&c.LateGrants, o.settled)
	if r.Fence {
		c.gave(o, reply.Token)
	}
}

// gave counts a token that came after its round was decided, with a smaller one.
func (c *Counts) gave(o *owner, token uint64) {
	add(&c.LateTokens, o.hold != nil && token > o.hold.lock.Token())
}

func add(n *int, really bool) {
	if really {
		*n++
	}
}

// ended counts the results of a flight's calls when its client learns them.
func (f *flight) ended(err error) {
	l := f.link
	now, counts := l.client.reading(), &l.w.counts
	for i, c := range f.batch {
		f.reads(i)
		o := f.owners[i]
		switch {
		case c.Request.Op == single.Acquire:
			add(&counts.Stragglers, o.settled)
			add(&counts.ReadLate, err == nil && l.w.now-f.begun > int64(l.client.plan.timeout(c.Request.TTL)))
		case c.Request.Op != single.Extend || o.hold == nil:
		default:
			add(&counts.RepairSilent, c.Request.Repair && err != nil)
			until, sent := o.hold.until, now-time.Duration(l.w.now-f.begun)
			add(&counts.AtBound, sent < until && until <= now)
			add(&counts.WonInGrace, o.hold.over && now < until && c.Err == nil && c.Reply.Outcome == single.Granted)
		}
	}
}

// leaving counts the cases that a request belongs to when it leaves now. first: it is its owner's first request.
func (l *link) leaving(f *flight, r *single.Request, first bool) {
	switch {
	case r.Op == single.Extend:
		late := f.begun - 8*int64(l.w.plan.Net.MaxDelay)
		add(&l.w.counts.Overtook,
			slices.ContainsFunc(l.open, func(o *flight) bool { return o != f && !o.returned && o.begun < late }))
	case r.Op != single.Acquire || !first || r.Kind != single.Plain:
	default:
		l.client.round(r)
	}
}

// round counts the rounds of attempts that do not wait. Which one it belongs to is clear as long as only one asks for
// the key.
func (c *client) round(r *single.Request) {
	var asks *hold
	for _, t := range c.tasks {
		if h := t.acquiring; h != nil && firstOf(h.keys) == r.Keys[0] {
			if asks != nil {
				return
			}
			asks = h
		}
	}
	if asks != nil && asks.tries {
		add(&c.w.counts.TriedAgain, asks.rounds > 0)
		asks.rounds++
	}
}

// underWay reports whether a matching request of this client is in flight.
func (c *client) underWay(is func(*single.Request) bool) bool {
	for _, l := range c.links {
		for _, f := range l.open {
			if f.returned {
				continue
			}
			for _, call := range f.batch {
				if is(call.Request) {
					return true
				}
			}
		}
	}
	return false
}

// cutShort counts an acquisition that was cancelled while one of its requests was in flight.
func (t *task) cutShort(h *hold) {
	if t.acquiring == h && !t.c.dead {
		add(&t.c.w.counts.CutShort,
			t.c.underWay(func(r *single.Request) bool {
				return r.Op == single.Acquire && r.Keys[0] == firstOf(h.keys)
			}))
	}
}

// firstOf returns the key that identifies a request for these keys. Requests hold their keys in sorted order.
func firstOf(keys []string) string {
	first := keys[0]
	for _, k := range keys {
		first = min(first, k)
	}
	return first
}

// beginning counts an acquisition by a client that has just notified another client with a release.
func (t *task) beginning(h *hold) {
	w := t.c.w
	near := int64(time.Millisecond) + 4*int64(w.plan.Net.MaxDelay)
	at, notified := t.c.gaveTo[h.keys[0]]
	add(&w.counts.GaveWay, notified && w.now-at <= near)
}

// missed counts an attempt that was granted with less validity than its grace left.
func (h *hold) missed(s *Session, err error) {
	c := h.task.c
	if errors.Is(err, redlock.ErrExpired) {
		allowance := s.TTL/100 + 2*time.Millisecond
		add(&c.w.counts.Graceless, c.reading() < h.began+s.TTL-allowance)
	}
}

// extends counts an extension, asked for while a renewal or another one is under way, or by less than a renewal.
func (h *hold) extends(ttl time.Duration) {
	add(&h.task.c.w.counts.PutOff, h.renewed && ttl < h.ttl)
	if h.kind == history.Plain || h.kind == history.Fenced {
		c, owner := h.task.c, h.lock.Owner()
		add(&c.w.counts.Joined,
			c.underWay(func(r *single.Request) bool { return r.Op == single.Extend && r.Owner == owner }))
	}
}

// releases counts a release while a repair is under way.
func (h *hold) releases() {
	c, owner := h.task.c, h.lock.Owner()
	add(&c.w.counts.ReleasedAmid,
		c.underWay(func(r *single.Request) bool { return r.Op == single.Extend && r.Repair && r.Owner == owner }))
}

// extended counts how an extension has failed.
func (h *hold) extended(err error) {
	now, counts := h.task.c.reading(), &h.task.c.w.counts
	var q *redlock.QuorumError
	switch errors.As(err, &q); {
	case now >= h.until:
		counts.ExtendedLate++
	case errors.Is(err, redlock.ErrNotHeld):
		counts.MajorityGone++
	case errors.Is(err, redlock.ErrNoQuorum) && now < h.until-h.grace:
		// the lock is not asked: it may end as it looks at its clock
		counts.KeptOn++
		add(&counts.PartlyGone, q != nil && votes(q, redlock.Refused) > 0)
	}
}

// done counts a hold that ended by itself: its Done closed without a release.
func (h *hold) done(now time.Duration) {
	counts := &h.task.c.w.counts
	h.over = true
	counts.Ended++
	add(&counts.Lost, h.renewed && !h.bounded)
	switch left := h.until - now; {
	case left > h.grace:
		add(&counts.MajorityGone, h.renewed)
	case left > 0:
		counts.Graced++
	}
}

// renewal counts a bound that has moved.
func (h *hold) renewal(before, now time.Duration) {
	counts := &h.task.c.w.counts
	counts.Renewed++
	h.lateFor(before, now)
	if !h.lasted && now-h.since > 100*h.ttl {
		h.lasted = true
		counts.Long++
	}
}

// lateFor counts an extension that was won when Done should have closed already.
func (h *hold) lateFor(until, now time.Duration) {
	add(&h.task.c.w.counts.LateTimer, until-h.grace <= now && now < until)
}

// division records the waiter that a master notified because of a release, and counts releases that
// made masters notify different clients.
func (w *world) division(owner, key, waiter string) {
	if w.notified == nil {
		w.notified = make(map[[2]string]string)
	}
	name := [2]string{owner, key}
	before, known := w.notified[name]
	switch {
	case !known:
		w.notified[name] = waiter
	case before != waiter && before != "":
		w.counts.Divided++
		w.notified[name] = "" // counted
	}
}
