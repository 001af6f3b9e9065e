package waitqueue

import "time"

// This file takes the first of a queue out of it, to have the key passed to it without a word to the masters.

// Take takes the entry whose turn it is for key out of the queue, and returns its [Want]'s Waiter, if it makes no attempt just now, no older
// one is favoured with the key, and fits says that it may be passed it; else nil. From then on it makes no attempt any more, and can't leave
// without the key: the caller has to call [Queue.Pass] soon.
//
// The entry that becomes the first is not woken: the key is not free. [Queue.Remind] does that when it is not passed on any more.
func (q *Queue) Take(key string, now time.Duration, fits func(waiter any) bool) (waiter any, e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.queues[key]
	if l == nil || l.first.trying || len(l.first.want.Keys) > 1 || q.favoursLocked(key, l.first) > now || !fits(l.first.want.Waiter) {
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
	class Class // to entries of this one
}

// LeaveQuietly is [Queue.Leave] of an entry that has the key and may pass it on until then; 0: it can't. The one that becomes the first is not
// woken, since an attempt would be refused, and would keep it from being passed the key. For the same reason those of its class that wait for
// it alone and are patient make none before then, whoever wakes them. [Queue.Remind] is due when the key can't be passed any more, at that time or
// before, and [Queue.HandOver] when it is released.
//
// An entry that was passed the key has it for the time of the one before. When that was reminded of there is nothing to be patient for.
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

// Remind has the first who waits for key try, if it is not doing so, and so take its place in the masters' queues: a key that could be passed
// on until then is not passed on any more. It does nothing where one can be for longer, which is reminded of by itself.
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
	if l := q.queues[key]; l != nil && !l.first.trying {
		l.first.wake(First)
	}
}

// Start notes that e makes an attempt although it may not have the turn, and reports false if it must not, because it is taken.
func (q *Queue) Start(e *Entry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.trying = !e.taken
	return e.trying
}

// Pass wakes e, which has been taken and now has what it waited for. A reminder that has come meanwhile, to e or to nobody, is for the one that
// has become the first.
func (q *Queue) Pass(e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.passed = true
	e.wake(First) // a reason is kept for one that is not asleep yet
	if key := e.want.Keys[0]; q.ours.get(key).until <= 0 {
		q.remindLocked(key)
	}
}

// Taken reports that e has been taken, and passed that it has the key. If it has not been taken, it won't be any more: its wait ends.
func (q *Queue) Taken(e *Entry) (taken, passed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.trying = e.trying || !e.taken
	return e.taken, e.passed
}
