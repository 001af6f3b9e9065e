// Package waitqueue keeps the order in which the goroutines of one process try to get held keys. It knows keys and
// times, and masters by number. Other packages decide who holds a key.
//
// # Queues
//
// A queue holds the entries that wait for one key, in the order of their arrival. Only the first entry of a queue
// tries; the others sleep. An entry that waits for several keys is in one queue at a time: the queue of the key that
// is held.
//
//   - It begins in the first queue of its keys that has an entry. If none has, it tries at once.
//   - When an attempt finds another of its keys held, the entry moves to that key's queue, to its position by age.
//     The entry that is now first in the old queue tries at once ([Queue.Blocked]).
//
// So the first entry of a queue is held up by the queue's own key, or its next attempt shows another one. No entry
// waits for a free key behind an entry that cannot use it. A free key is tried by the first entry of its queue, which
// gets the key or makes room. An entry behind n others waits for at most n attempts while the key is free.
//
// # Attempts that reach no quorum
//
// An attempt may fail without a quorum for a reason of its entry. Its timeout is too short for the network, or the
// masters lack something that only this kind of lock needs. While such an entry is first, the entries of other
// [Class]es get a chance in turns ([Queue.StepBack]). The order within a class does not change.
//
// # Many keys at once
//
// The first entry of two busy queues needs both keys at one moment, and that moment may never come. So an entry that
// has waited for long is favoured for a short time: until the favour ends, younger entries of this process do not try
// the keys that it waits for. Keys that are released one after another are then free together.
//
// A favour lasts 8 ms. Each further favour of the same entry lasts twice as long, up to 256 ms. After a favour its
// keys are not favoured for four times as long. So a hold that does not end costs other entries at most a fifth of
// their time, and holds shorter than a favour starve no entry.
//
// # Other processes
//
// A master notifies a process that it may try a key. The notification belongs to the queue, not to an entry: when
// another entry becomes the first, it tries at once. When the queue becomes empty, its key is returned as unclaimed.
// The caller must then tell the masters that this process no longer waits, so that they notify another process.
//
// All methods are safe for concurrent use. They call no function of the caller, except the timer function given to
// [New].
package waitqueue

import (
	"slices"
	"sync"
	"time"
)

// Class separates entries that want the same keys, but may differ in how their attempts end.
type Class uint64

// Reason says why an entry was woken.
type Reason uint8

// The reasons. An entry may be woken for several at once.
const (
	// First: it has become the first of its queue.
	First Reason = 1 << iota
	// Free: its key was released, or masters have notified this process.
	Free
	// Missed: the entry may have missed something, so it should look at the masters.
	Missed
	// Company: an entry waits behind this one and would try more often than it does; or a favour has ended.
	Company
	// Enters: another lock of the same owner has the key, so an attempt would succeed although others wait in front.
	Enters
)

// Want describes one wait.
type Want struct {
	Keys []string // at least one, without duplicates
	// Class is the entry's class.
	Class Class
	// Since is when the wait began.
	Since time.Duration
	// Alone: the entry is in no queue, because it must not wait for others of this process. It always has the turn.
	Alone bool
	// Seldom: the entry tries less often than others do, and is woken when another entry waits behind it.
	Seldom bool
	// Owner identifies the owner of a reentrant lock: entries with the same Owner may hold the key together. 0: no
	// owner.
	Owner uint64
	// Reads: the entry can have the key together with other entries that set Reads.
	Reads bool
	// Patient: the entry makes no attempt while this process has the key and passes it on within its class, see
	// [Queue.LeaveQuietly].
	Patient bool
	// Waiter is the caller's value for this wait; [Queue.Take] returns it.
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
	entries    int           // how often it was woken because its owner has the key
	favour     time.Duration // how long its latest favour was to last
	reasons    Reason        // why it is woken, until it has taken notice
	inherited  bool          // the masters' queues may hold the process's position on behalf of earlier entries
	notified   bool          // a quorum had notified before the latest attempt
	stood      bool          // an attempt was refused because of its queue's key
	trying     trying        // the attempt that is under way
	taken      bool          // it is about to be passed the key
	passed     bool          // it has been passed the key
}

// Queue has the wait queues of one process, one for each key. Make it with [New].
type Queue struct {
	majority func(masters uint64) bool
	after    func(time.Duration, func())

	mu     sync.Mutex
	queues map[string]*keyQueue
	alone  alone
	// how many entries for several keys want one and have asked for it, whatever queue they are in
	roaming map[string]int
	seq     uint64
	rivals  fading[rival]
	favours fading[favour]
	ours    fading[passing]
}

// New makes an empty Queue. majority reports whether masters, a bit for each, contain a quorum. after calls a
// function once, after some time.
func New(majority func(masters uint64) bool, after func(time.Duration, func())) *Queue {
	return &Queue{
		majority: majority, after: after, queues: make(map[string]*keyQueue), alone: make(alone),
		roaming: make(map[string]int),
	}
}

// Enter adds e, which must be new, at the end of a queue.
func (q *Queue) Enter(e *Entry, w Want) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seq++
	e.want, e.seq = w, q.seq
	if w.Alone {
		e.inherited = true // it tries whether or not others wait
		q.alone.add(e)
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

// Leave ends the wait of e, which has got the keys. inherited says that the masters' queues may still hold this
// process's position on behalf of other entries.
func (q *Queue) Leave(e *Entry, now func() time.Duration) (inherited bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.endLocked(e, now, 0).entered(e.want.Owner)
	return e.inherited
}

// GiveUp ends the wait of e without the keys. The caller must take the process out of the masters' queues for the
// unclaimed keys. The process may be queued there, and no entry here waits for the key (or only readers do, and the
// process's own claim would keep readers out). If other entries wait for a key, they inherit the process's position.
// So the masters get one request, however many entries leave.
//
// latest is e's latest attempt, nil if it made none. The caller must leave the masters' queues after the attempt that
// GiveUp returns: latest, or the latest attempt of an entry that left earlier.
//
// The entry that becomes the first tries after heirAfter, or at once if the queue has news. All entries that leave
// until then cause one attempt only. An entry that has learnt nothing leaves nothing to find out, and the entries
// behind it may be about to leave, too.
func (q *Queue) GiveUp(e *Entry, now func() time.Duration, latest any, heirAfter time.Duration) (unclaimed []string,
	after any,
) {
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.endLocked(e, now, heirAfter)
	for _, key := range e.want.Keys {
		l, queued := q.queues[key], e.attempts > 0 || e.inherited && (own == nil || own.key == key)
		switch {
		case l == nil && queued && len(q.alone[key]) == 0:
			unclaimed = append(unclaimed, key)
		case l == nil:
		case (l.claimed || len(e.want.Keys) > 1 && e.attempts > 0) && l.writers == 0 && q.roaming[key] == 0:
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

// endLocked takes e out of its queue, and returns the queue. The entry that becomes the first is woken after
// heirAfter.
func (q *Queue) endLocked(e *Entry, now func() time.Duration, heirAfter time.Duration) *keyQueue {
	own := e.in
	if e.attempts > 0 {
		roam(q, e, -1)
	}
	if e.want.Alone {
		q.alone.remove(e)
	}
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

// wakeHeir makes the first entry of l try, because the entries before it have left.
func (q *Queue) wakeHeir(l *keyQueue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.heir = false
	l.remind()
}

// HandOver leaves the process's position in the masters' queues to the entries that wait for keys here. It returns
// the keys that no entry waits for.
func (q *Queue) HandOver(keys []string) (unclaimed []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys { // the keys are about to be released
		if q.ours.get(key).until > 0 {
			q.remindLocked(key)
		}
	}
	unclaimed = keys // the usual case: no entry waits for any key
	for i, key := range keys {
		l := q.queues[key]
		if l != nil {
			l.first.inherited = true
		}
		switch waited := l != nil || len(q.alone[key]) > 0; {
		case waited && len(unclaimed) == len(keys):
			unclaimed = slices.Clone(keys[:i])
		case !waited && len(unclaimed) < len(keys):
			unclaimed = append(unclaimed, key)
		}
	}
	return unclaimed
}

// trying is what kind of attempt an entry makes.
type trying uint8

const (
	idle trying = iota // none
	inTurn
	aside // out of turn
)

// mayBeQueued reports whether the masters' queues for e's keys may contain the process.
func (e *Entry) mayBeQueued() bool { return e.inherited || e.attempts > 0 || len(e.want.Keys) > 1 }

// Attempt describes an attempt that begins.
type Attempt struct {
	// Taken: e must make no attempt, because it is taken ([Queue.Take]).
	Taken bool
	// MayBeQueued: the masters' queues may already contain the process.
	MayBeQueued bool
	// Inherited: others may have left their positions in the masters' queues to e.
	Inherited bool
	// Polite: a rival may have been notified, and no quorum has notified this process.
	Polite bool
	// Followed: another entry of e's class waits behind e for the same key and no other.
	Followed bool
}

// Begin notes that e makes an attempt. The attempt ends with [Queue.End] or, if it succeeds, with [Queue.Leave].
func (q *Queue) Begin(e *Entry, now time.Duration) (a Attempt) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.taken {
		return Attempt{Taken: true}
	}
	e.trying = inTurn
	a.MayBeQueued, a.Inherited = e.mayBeQueued(), e.inherited
	a.Followed = e.next != nil && e.next.want.Class == e.want.Class && len(e.want.Keys) == 1
	if e.attempts++; e.attempts == 1 {
		roam(q, e, 1)
	}
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
	e.trying = idle
}

// Blocked notes that masters refused e's latest attempt because of keys; the key that most masters named comes first.
// If e wants several keys, e moves to the queue of the first key. The entries behind e that want this key are held up
// by it, too: they move with e and need not ask. Blocked returns the key of e's old queue if that queue is now empty
// and the masters may still queue the process for it.
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
		e.stood = true // in the queue that it moves to
	}
	q.grantLocked(e, now)
	return unclaimed
}

// goOverLocked moves e, and the entries of its queue that want key, to the queue of key. It reports whether e's old
// queue has ended.
func (q *Queue) goOverLocked(e *Entry, key string) (ended bool) {
	from := e.in
	var behind, ahead *Entry
	ended = q.removeLocked(e, 0)
	q.insertLocked(e, key, nil)
	for next := from.first; next != nil && !ended; {
		other := next
		next = other.next
		if len(other.want.Keys) > 1 && slices.Contains(other.want.Keys, key) {
			ended = q.removeLocked(other, 0)
			q.insertLocked(other, key, behind)
			if behind = other; other.in.first == other {
				ahead = other
			}
		}
	}
	if ahead != nil { // it had the turn before, stepped back, and may sleep until it has it again
		ahead.wake(First)
	}
	if !ended {
		from.first.wake(First)
	}
	return ended
}

// Held notes the owners that have e's key, as reported by the masters that refused its attempt. claimed says that
// these masters admit no new readers because of e. Held wakes one entry behind e that has such an owner: however many
// wait here, only the first asks. It reports whether readers have ever blocked the entries of this queue: readers may
// block them again.
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

// entered notes that this process now has the key for owner; 0 means no owner.
func (l *keyQueue) entered(owner uint64) {
	if l != nil && l.first != nil && owner != 0 {
		l.holders = []uint64{owner}
		l.letIn()
	}
}

// letIn wakes one entry that may enter because its owner has the key: the entry that was woken for this reason least
// often. The first entry asks anyway.
func (l *keyQueue) letIn() {
	if l.owners == 0 || len(l.holders) == 0 {
		return
	}
	var chosen *Entry
	for e := l.first.next; e != nil; e = e.next {
		if e.want.Owner != 0 && e.trying == idle && slices.Contains(l.holders, e.want.Owner) &&
			(chosen == nil || e.entries < chosen.entries) {
			chosen = e
		}
	}
	if chosen != nil {
		chosen.entries++
		chosen.wake(Enters)
	}
}

// StepBack lets an entry of another class try before e, after e's latest attempt reached no quorum. It chooses the
// first entry of the class with the fewest attempts, and does nothing if there is no other class. A timer wakes the
// chosen entry, so that the order of e's next step and the chosen entry's first step is fixed even under a clock that
// does not advance.
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

// wakeChosen wakes the entry that StepBack chose, if it is still the first.
func (q *Queue) wakeChosen(e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.in != nil && e.in.first == e {
		e.wake(First)
	}
}

// Status describes an entry.
type Status struct {
	Taken   bool // see [Queue.Take]; the other fields are then meaningless
	Turn    bool // it is the first of its queue
	Company bool // an entry waits behind it
	Why     Reason
}

// Status returns the status of e and clears the reasons why it was woken.
func (q *Queue) Status(e *Entry) Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := e.in
	return Status{Taken: e.taken, Turn: l == nil || l.first == e, Company: e.next != nil, Why: e.takeReasons()}
}

// Woken returns a channel that receives when e is woken. A wake-up that e has not noticed yet counts, too.
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
