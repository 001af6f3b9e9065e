package waitqueue

import "slices"

// keyQueue is the queue of one key. It is in the Queue's map while it has entries.
type keyQueue struct {
	key         string
	first, last *Entry
	notified    uint64   // a bit for each master that has notified since the latest attempt
	news        Reason   // what its first entry was told since then; the next first entry learns it, too
	holders     []uint64 // the owners that have the key, as far as is known
	owners      int      // entries that have an owner
	writers     int      // entries that are not readers
	heir        bool     // its first entry is going to be woken, because the entries before it have left
	claimed     bool     // masters may admit no new reader because of an entry that waits or waited here
	latest      any      // the latest attempt of the entries that have left
}

// count notes that n more entries like e are in the queue.
func (l *keyQueue) count(e *Entry, n int) {
	if e.want.Owner != 0 {
		l.owners += n
	}
	if !e.want.Reads {
		l.writers += n
	}
}

// insertLocked puts e into the queue of key, at its position by age. behind is an entry that e is known to be behind,
// which shortens the search; it may be nil.
func (q *Queue) insertLocked(e *Entry, key string, behind *Entry) {
	l := q.queues[key]
	if l == nil {
		if l = &e.own; l.key != "" { // another queue began as e's own
			l = new(keyQueue)
		}
		l.key, l.first, l.last = key, e, e
		e.in, q.queues[key] = l, l
		l.count(e, 1)
		return
	}
	e.in, e.inherited = l, true
	before := l.last
	if before.seq > e.seq { // it comes from another queue, and is older than the last entry
		if behind != nil && behind.seq > e.seq { // one of them has stepped back
			behind = nil
		}
		before = behind
		next := l.first
		if behind != nil {
			next = behind.next
		}
		for ; next.seq < e.seq; next = next.next {
			before = next
		}
	}
	l.link(e, before)
	l.count(e, 1)
	switch {
	case l.first == e && l.news != 0:
		e.wake(l.news) // the entry that was told leaves the news to the first
	case l.first == e:
	case slices.Contains(l.holders, e.want.Owner):
		e.wake(Enters)
	case l.first.want.Seldom:
		l.first.wake(Company)
	}
}

// link puts e behind before; nil puts it at the front.
func (l *keyQueue) link(e, before *Entry) {
	e.prev = before
	if before == nil {
		e.next, l.first = l.first, e
	} else {
		e.next, before.next = before.next, e
	}
	if e.next == nil {
		l.last = e
	} else {
		e.next.prev = e
	}
}

// unlink takes e out of the list. The links of e itself stay as they were.
func (l *keyQueue) unlink(e *Entry) {
	if e.prev == nil {
		l.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.last = e.prev
	} else {
		e.next.prev = e.prev
	}
}

// removeLocked takes e out of its queue, and reports whether the queue has ended. The entry that becomes the first
// inherits the process's position; it is woken if why is not 0.
func (q *Queue) removeLocked(e *Entry, why Reason) (ended bool) {
	l := e.in
	wasFirst := l.first == e
	l.unlink(e)
	l.count(e, -1)
	e.in, e.prev, e.next = nil, nil, nil
	if l.first == nil {
		delete(q.queues, l.key)
		return true
	}
	if wasFirst {
		l.first.inherited = true
		if why != 0 {
			l.first.wake(why)
		}
	}
	return false
}

func (e *Entry) wake(why Reason) {
	e.reasons |= why
	if e.signal == nil {
		return
	}
	select {
	case e.signal <- struct{}{}:
	default: // it is being woken
	}
}

// wakeFirst wakes the first entry. The reason stays with the queue until the next attempt.
func (l *keyQueue) wakeFirst(why Reason) {
	l.news |= why
	if why == Free {
		l.holders = nil
	}
	l.first.wake(why)
}

// takeReasons returns the reasons why e was woken, and clears them.
func (e *Entry) takeReasons() Reason {
	why := e.reasons
	e.reasons = 0
	if e.signal != nil {
		select {
		case <-e.signal:
		default:
		}
	}
	return why
}

// roam notes that n more entries like e have asked. An entry for several keys is in one queue at a time, and wants its
// other keys, too. The queue's mutex is held.
func roam(q *Queue, e *Entry, n int) {
	if len(e.want.Keys) == 1 {
		return
	}
	for _, key := range e.want.Keys {
		if q.roaming[key] += n; q.roaming[key] == 0 {
			delete(q.roaming, key)
		}
	}
}

// Unclaimed returns those of keys that no entry waits for.
func (q *Queue) Unclaimed(keys []string) (unclaimed []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		if q.queues[key] == nil && q.roaming[key] == 0 && len(q.alone[key]) == 0 {
			unclaimed = append(unclaimed, key)
		}
	}
	return unclaimed
}

// Roaming divides keys in two. An entry for several keys wants some of them, so its claims on them are in use. No such
// entry wants the others.
func (q *Queue) Roaming(keys []string) (nobodys, somebodys []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.roaming) == 0 {
		return keys, nil
	}
	for _, key := range keys {
		if q.roaming[key] > 0 {
			somebodys = append(somebodys, key)
		} else {
			nobodys = append(nobodys, key)
		}
	}
	return nobodys, somebodys
}
