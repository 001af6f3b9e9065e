package waitqueue

import "time"

// This file takes the first entry out of a queue, to pass it the key without a request to the masters.

// Take takes the first entry out of the queue for key and returns its [Want]'s Waiter. It returns nil if that entry
// is making an attempt, if an older entry is favoured with the key, or if fits rejects the entry. A taken entry makes
// no more attempts and cannot leave without the key: the caller must soon call [Queue.Pass].
//
// Take does not wake the entry that becomes the first, because the key is not free. [Queue.Remind] wakes it when the
// key is not passed on any more.
func (q *Queue) Take(key string, now time.Duration, fits func(waiter any) bool) (waiter any, e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.queues[key]
	if l == nil || l.first.trying != idle || len(l.first.want.Keys) > 1 || q.favoursLocked(key, l.first) > now ||
		!fits(l.first.want.Waiter) {
		return nil, nil
	}
	e = l.first
	q.removeLocked(e, 0)
	e.taken = true
	return e.want.Waiter, e
}

// passing is a key that this process has and passes on.
type passing struct {
	until time.Duration
	class Class // passed on to entries of this class
}

// LeaveQuietly is [Queue.Leave] for an entry that has the key and may pass it on before until; 0 means that it
// cannot. It does not wake the entry that becomes the first: an attempt would be refused, and the key cannot be
// passed to an entry during its attempt. For the same reason the patient entries of the class that wait for this key
// only make no attempt before until, whatever wakes them.
//
// Call [Queue.Remind] when the key cannot be passed any more, at until or before, and [Queue.HandOver] when it is
// released.
//
// An entry that was passed the key has it until the same time as its predecessor. If the reminder for that time has
// already come, other entries are not patient.
func (q *Queue) LeaveQuietly(e *Entry, until time.Duration) (inherited bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := e.want.Keys[0]
	if e.in != nil {
		q.removeLocked(e, 0)
	}
	ours, p := q.ours.get(key), passing{until, e.want.Class}
	switch {
	case until <= 0:
		q.remindLocked(key)
	case ours != p && (!e.taken || ours.until > 0):
		put(q, &q.ours, key, p)
	}
	return e.inherited
}

// Remind makes the first entry that waits for key try, unless it is already trying, so that it takes its place in the
// masters' queues. Call it when a key that could be passed on until then is not passed on any more. It does nothing
// if the key can now be passed on for longer: that time has its own reminder.
func (q *Queue) Remind(key string, until time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ours.get(key).until <= until {
		q.remindLocked(key)
	}
}

func (q *Queue) remindLocked(key string) {
	if q.ours.get(key).until > 0 {
		put(q, &q.ours, key, passing{})
	}
	if l := q.queues[key]; l != nil {
		l.remind()
	}
}

// remind makes the first entry try, unless it is trying. An attempt out of turn does not count: nothing is planned
// after it.
func (l *keyQueue) remind() {
	if l.first != nil && l.first.trying != inTurn {
		l.first.wake(First)
	}
}

// Start notes that e makes an attempt, even if it does not have the turn. It reports false if e must not, because it
// is taken.
func (q *Queue) Start(e *Entry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !e.taken {
		e.trying = aside
	}
	return !e.taken
}

// Pass wakes e, which was taken and now has the key. A reminder that came between Take and Pass goes to the entry
// that is now first.
func (q *Queue) Pass(e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.passed = true
	e.wake(First) // the reason is kept if e is not asleep yet
	if key := e.want.Keys[0]; q.ours.get(key).until <= 0 {
		q.remindLocked(key)
	}
}

// Taken reports whether e has been taken, and whether it has been passed the key. If it has not been taken, it never
// will be: its wait ends.
func (q *Queue) Taken(e *Entry) (taken, passed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !e.taken {
		e.trying = inTurn
	}
	return e.taken, e.passed
}
