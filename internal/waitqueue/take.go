package waitqueue

// This file takes the first of a queue out of it, to have the key passed to it without a word to the masters.

// Take takes the entry whose turn it is for key out of the queue, and returns its [Want]'s Waiter, if it makes no attempt just now and
// fits says that it may be passed the key; else nil. From then on it makes no attempt any more, and can't leave without the key:
// the caller has to call [Queue.Pass] soon.
//
// The entry that becomes the first is not woken: the key is not free. It has to be woken when it is.
func (q *Queue) Take(key string, fits func(waiter any) bool) (waiter any, e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.queues[key]
	if l == nil || l.first.trying || len(l.first.want.Keys) > 1 || !fits(l.first.want.Waiter) {
		return nil, nil
	}
	e = l.first
	q.removeLocked(e, 0)
	e.taken = true
	return e.want.Waiter, e
}

// LeaveQuietly is [Queue.Leave] of an entry that has the keys and may pass them on: the one that becomes the first is not woken, since an
// attempt would be refused, and would keep it from being passed the key. [Queue.Remind] is due when it can't be passed any more.
func (q *Queue) LeaveQuietly(e *Entry) (inherited bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.in != nil {
		q.removeLocked(e, 0)
	}
	return e.inherited
}

// Remind has the first who waits for key try, if it is not doing so, and so take its place in the masters' queues.
func (q *Queue) Remind(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
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

// Pass wakes e, which has been taken and now has what it waited for.
func (q *Queue) Pass(e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.passed = true
	e.wake(First) // a reason is kept for one that is not asleep yet
}

// Taken reports that e has been taken, and passed that it has the key. If it has not been taken, it won't be any more: its wait ends.
func (q *Queue) Taken(e *Entry) (taken, passed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.trying = e.trying || !e.taken
	return e.taken, e.passed
}
