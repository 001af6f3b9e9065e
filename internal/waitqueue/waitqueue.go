// Package waitqueue keeps the order in which the goroutines of one process try to get keys that somebody holds. It knows
// keys, masters by number and times; who holds a key is decided elsewhere.
//
// # Queues
//
// A queue is what waits for one key: entries in the order in which they came. Only the first of a queue tries; the others
// sleep. What waits for several keys is in one queue at a time, that of the key which is in its way:
//
//   - it begins in the first of its keys' queues in which somebody waits, or tries at once if nobody does;
//   - when an attempt finds another of its keys held, it goes over to that key's queue, to its position by age, and the entry that is
//     first in the queue that it has left tries at once ([Queue.Blocked]).
//
// So the first in the queue of a key is held up by that key, or does not know better until it tries; nobody waits for a
// free key behind another one which can't use it. A key that is free and wanted is tried by the first in its queue, which gets it
// or makes room: an entry that waits for key k behind n others waits for n attempts at the most while k is free.
//
// # Attempts that reach no quorum
//
// An attempt may fail without a quorum for reasons of its own: its timeout is shorter than the way to the masters, or they
// lack something that only its kind of lock needs. While such an entry is first, those of another [Class] get a chance in
// turns ([Queue.StepBack]). Within a class the order stays.
//
// # Many keys at once
//
// The first of two queues that are both in constant use would need both keys at one moment, which may never come. An entry
// that has waited for long is therefore favoured, for a little: younger entries of this process leave the keys that it
// waits for alone while its favour lasts, so that keys which are given back one after the other are free together. A
// favour lasts 8 ms, each further one of the entry twice as long, a quarter of a second at the most; after it the keys
// are nobody's favour for four times as long. So a hold that does not end costs others a fifth of their time at the most,
// and holds that are shorter than a favour starve nobody.
//
// # Other processes
//
// Masters notify a process that a key is its own to try. That is noted with the queue, not with an entry, so it is not lost
// when the first in the queue changes; the one that becomes first tries at once. If the queue becomes empty, its key is returned as
// unclaimed: the masters have to be told that this process does not wait any more, so that they notify another one.
//
// All methods are safe for concurrent use. None of them calls back, except that timers are set with the function given to
// [New].
package waitqueue

import (
	"slices"
	"sync"
	"time"
)

// Class tells entries apart whose attempts may end differently although they want the same keys.
type Class uint64

// Reason says why an entry was woken.
type Reason uint8

// The reasons. An entry may be woken for several at once.
const (
	// First: it has become the first of its queue.
	First Reason = 1 << iota
	// Free: its key was released, or masters have notified this process.
	Free
	// Missed: something may have been missed, so it is worth looking.
	Missed
	// Company: somebody waits behind it now who would try more often than it does; or a favour has ended.
	Company
	// Enters: its owner has the key. So it would be let in, although others wait before it.
	Enters
)

// Want is what an entry waits for.
type Want struct {
	Keys []string // at least one, without duplicates
	// Class: see there.
	Class Class
	// Since is when the wait began.
	Since time.Duration
	// Alone: it stands in no queue, because it must not wait for others of this process. It always has the turn.
	Alone bool
	// Seldom: it tries less often than others do, and wants to be told when another one waits behind it.
	Seldom bool
	// Owner is who it is to others of the same owner, of a lock that one who has it may enter again; 0: nobody.
	Owner uint64
	// Reads: several like it can have the key.
	Reads bool
	// Patient: it makes no attempt while this process has the key and passes it on to those of its class, see [Queue.LeaveQuietly].
	Patient bool
	// Waiter is what waits, for [Queue.Take].
	Waiter any
}

// Entry is one wait. Its Queue's mutex guards it. The zero value is ready for [Queue.Enter]; it must not be copied.
type Entry struct {
	want       Want
	seq        uint64    // by age: the smaller one came first
	in         *keyQueue // nil: in none
	prev, next *Entry
	own        keyQueue      // the queue that it began, if it began one
	signal     chan struct{} // of capacity 1, made when first needed
	attempts   int
	entries    int           // how often it was told that it would be let in
	favour     time.Duration // how long its latest one was to last
	reasons    Reason        // why it is woken, until it has taken notice
	inherited  bool          // others may have left the process's position in the masters' queues to it
	notified   bool          // a quorum had notified before the latest attempt
	stood      bool          // an attempt was refused because of its queue's key
	trying     bool          // an attempt is under way
	taken      bool          // what it waits for is going to be passed to it
	passed     bool          // and has been
}

// Queue is the queues of one process, one a key. Make it with [New].
type Queue struct {
	majority func(masters uint64) bool
	after    func(time.Duration, func())

	mu      sync.Mutex
	queues  map[string]*keyQueue
	seq     uint64
	rivals  fading[rival]
	favours fading[favour]
	ours    fading[passing]
}

// New makes an empty Queue. majority reports whether masters, a bit for each, contain a quorum; after calls a function once,
// after some time.
func New(majority func(masters uint64) bool, after func(time.Duration, func())) *Queue {
	return &Queue{majority: majority, after: after, queues: make(map[string]*keyQueue)}
}

// Enter adds e, which must be new, at the end of a queue.
func (q *Queue) Enter(e *Entry, w Want) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seq++
	e.want, e.seq = w, q.seq
	if w.Alone {
		e.inherited = true // it is not looked at whether others wait
		return
	}
	key := w.Keys[0]
	for _, k := range w.Keys {
		if q.queues[k] != nil {
			key = k
			break
		}
	}
	q.insertLocked(e, key, nil)
}

// Leave ends the wait of e, which has got the keys. inherited says that the masters may still have this process in their
// queues on account of others.
func (q *Queue) Leave(e *Entry, now func() time.Duration) (inherited bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.endLocked(e, now, 0).entered(e.want.Owner)
	return e.inherited
}

// GiveUp ends the wait of e, which has not got the keys. unclaimed are those whose queues on the masters the process has to leave: it may stand in
// them, and nobody here waits, or only readers, whom it keeps out; somebody else who waits inherits the position. So however many
// give up, the masters are told once. latest is e's latest attempt, nil if it has made none; leaving has to follow after: that one, or
// one of another that has given up before.
//
// The entry that becomes the first tries after heirAfter, once for all who give up until then, or at once where there is news. One that has learnt
// nothing leaves nothing to be found out, and those behind it may be about to give up, too.
func (q *Queue) GiveUp(e *Entry, now func() time.Duration, latest any, heirAfter time.Duration) (unclaimed []string, after any) {
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.endLocked(e, now, heirAfter)
	for _, key := range e.want.Keys {
		l, queued := q.queues[key], e.attempts > 0 || e.inherited && (own == nil || own.key == key)
		switch {
		case l == nil && queued:
			unclaimed = append(unclaimed, key)
		case l == nil:
		case l.claimed && l.writers == 0:
			l.claimed = false
			unclaimed = append(unclaimed, key)
		case queued:
			l.first.inherited = true
		}
	}
	if own == nil {
		return unclaimed, latest
	}
	if latest != nil {
		own.latest = latest
	}
	return unclaimed, own.latest
}

// endLocked takes e out of its queue, which it returns. The one that becomes the first is woken after heirAfter.
func (q *Queue) endLocked(e *Entry, now func() time.Duration, heirAfter time.Duration) *keyQueue {
	own := e.in
	switch {
	case own == nil:
	case own.first != e || own.news != 0 || heirAfter <= 0:
		q.removeLocked(e, First)
	case !q.removeLocked(e, 0) && !own.heir:
		own.heir = true
		q.after(heirAfter, func() { q.wakeHeir(own) })
	}
	if e.favour > 0 {
		q.endFavourLocked(e, now())
	}
	return own
}

// wakeHeir wakes the first of l, since those before it have given up, unless it is trying.
func (q *Queue) wakeHeir(l *keyQueue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.heir = false
	if l.first != nil && !l.first.trying {
		l.first.wake(First)
	}
}

// HandOver leaves the process's position in the masters' queues to those who wait for keys here, and returns the keys for
// which nobody does.
func (q *Queue) HandOver(keys []string) (unclaimed []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys { // they are about to be released
		if q.ours.get(key).until > 0 {
			q.remindLocked(key)
		}
	}
	unclaimed = keys // as is, where nobody waits for any
	for i, key := range keys {
		l := q.queues[key]
		if l != nil {
			l.first.inherited = true
		}
		switch {
		case l != nil && len(unclaimed) == len(keys):
			unclaimed = slices.Clone(keys[:i])
		case l == nil && len(unclaimed) < len(keys):
			unclaimed = append(unclaimed, key)
		}
	}
	return unclaimed
}

// mayBeQueued reports that the process may stand in masters' queues for e's keys.
func (e *Entry) mayBeQueued() bool { return e.inherited || e.attempts > 0 || len(e.want.Keys) > 1 }

// Attempt says how it stands with an attempt that begins.
type Attempt struct {
	// Taken: there is to be no attempt, because e is taken ([Queue.Take]).
	Taken bool
	// MayBeQueued: the process may stand in the masters' queues already.
	MayBeQueued bool
	// Polite: a rival may have been notified, and e has not been by a quorum.
	Polite bool
	// Followed: another entry of e's class waits behind it for the same key, and for no other.
	Followed bool
}

// Begin notes that e makes an attempt, which ends with [Queue.End] or, if it succeeds, with [Queue.Leave].
func (q *Queue) Begin(e *Entry, now time.Duration) (a Attempt) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.taken {
		return Attempt{Taken: true}
	}
	e.trying = true
	a.MayBeQueued = e.mayBeQueued()
	a.Followed = e.next != nil && e.next.want.Class == e.want.Class && len(e.want.Keys) == 1
	e.attempts++
	e.takeReasons()
	e.notified = false
	if l := e.in; l != nil {
		e.notified = q.majority(l.notified)
		l.notified, l.news = 0, 0
	}
	if !e.notified {
		a.Polite = slices.ContainsFunc(e.want.Keys, func(key string) bool { return now < q.rivals.get(key).until })
	}
	return a
}

// End notes that e's attempt has failed.
func (q *Queue) End(e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.trying = false
}

// Blocked notes that e's latest attempt was refused because of keys, the one that most masters named first. Of an entry
// for several keys it returns the key whose queue has become empty, if the process may stand in its queue on the masters. Whoever waits
// behind e and wants the key that was named first is held up by it, too, and goes over with e, so that it need not ask.
func (q *Queue) Blocked(e *Entry, keys []string, now time.Duration) (unclaimed []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.in == nil || len(e.want.Keys) == 1 || len(keys) == 0 || !slices.Contains(e.want.Keys, keys[0]) {
		return nil
	}
	from := e.in
	e.stood = e.stood || e.inherited || slices.Contains(keys, from.key)
	if keys[0] != from.key {
		if q.goOverLocked(e, keys[0]) && e.stood {
			unclaimed = []string{from.key}
		}
		e.stood = true // in the one that it goes to
	}
	q.grantLocked(e, now)
	return unclaimed
}

// goOverLocked puts e, and those of its queue who want key, into the queue of key, and reports that its own has ended.
func (q *Queue) goOverLocked(e *Entry, key string) (ended bool) {
	from := e.in
	var behind *Entry
	ended = q.removeLocked(e, 0)
	q.insertLocked(e, key, nil)
	for next := from.first; next != nil && !ended; {
		other := next
		next = other.next
		if len(other.want.Keys) > 1 && slices.Contains(other.want.Keys, key) {
			ended = q.removeLocked(other, 0)
			q.insertLocked(other, key, behind)
			behind = other
		}
	}
	if !ended {
		from.first.wake(First)
	}
	return ended
}

// Held notes which owners have e's key, as the masters said that refused its attempt, and that these let no new readers in, on its account. One
// that waits behind it for the same key, and has such an owner, is told: however many wait here, only the first asks. It reports whether
// readers have been in the way of those who wait here, now or before: they may be again.
func (q *Queue) Held(e *Entry, owners []uint64, claimed bool) (readers bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range e.want.Keys {
		if l := q.queues[key]; l != nil && claimed {
			l.claimed = true
		}
	}
	l := e.in
	if l == nil {
		return claimed
	}
	l.holders = owners
	l.letIn()
	return l.claimed
}

// entered notes that this process has the key for owner, who may be nobody.
func (l *keyQueue) entered(owner uint64) {
	if l != nil && l.first != nil && owner != 0 {
		l.holders = []uint64{owner}
		l.letIn()
	}
}

// letIn wakes one whose owner has the key: the one that has been told so least often. The first asks anyway.
func (l *keyQueue) letIn() {
	if l.owners == 0 || len(l.holders) == 0 {
		return
	}
	var chosen *Entry
	for e := l.first.next; e != nil; e = e.next {
		if e.want.Owner != 0 && !e.trying && slices.Contains(l.holders, e.want.Owner) && (chosen == nil || e.entries < chosen.entries) {
			chosen = e
		}
	}
	if chosen != nil {
		chosen.entries++
		chosen.wake(Enters)
	}
}

// StepBack lets an entry of another class try before e, whose latest attempt reached no quorum: the first of the class
// that has had the fewest attempts. It does nothing if there is none. The one that is chosen is woken by a timer, so that what e does next and
// what that one does have an order also where time stands still meanwhile.
func (q *Queue) StepBack(e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.in == nil || e.in.first != e {
		return
	}
	var chosen *Entry
	seen := map[Class]bool{e.want.Class: true}
	for other := e.next; other != nil; other = other.next {
		if seen[other.want.Class] {
			continue
		}
		seen[other.want.Class] = true
		if chosen == nil || other.attempts < chosen.attempts {
			chosen = other
		}
	}
	if chosen == nil {
		return
	}
	l := e.in
	l.unlink(chosen)
	l.link(chosen, nil)
	q.after(0, func() { q.wakeChosen(chosen) })
}

// wakeChosen wakes an entry that another one has stepped back for, if it still is the first.
func (q *Queue) wakeChosen(e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.in != nil && e.in.first == e {
		e.wake(First)
	}
}

// Status says how it stands with an entry.
type Status struct {
	Taken   bool // see [Queue.Take]; the rest says nothing then
	Turn    bool // it is the first of its queue
	Company bool // somebody waits behind it
	Why     Reason
}

// Status returns how it stands with e, and takes notice of why it was woken.
func (q *Queue) Status(e *Entry) Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := e.in
	return Status{Taken: e.taken, Turn: l == nil || l.first == e, Company: e.next != nil, Why: e.takeReasons()}
}

// Woken returns a channel that is sent to when e is woken, also if it has been since it last took notice.
func (q *Queue) Woken(e *Entry) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.signal == nil {
		e.signal = make(chan struct{}, 1)
		if e.reasons != 0 {
			e.signal <- struct{}{}
		}
	}
	return e.signal
}
