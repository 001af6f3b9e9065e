package waitqueue

import (
	"math/bits"
	"slices"
	"time"
)

// This file tells the first entry of a queue that its key may be free.

// Wake makes the first entry of each key's queue try: the keys have become free.
func (q *Queue) Wake(keys []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		if l := q.queues[key]; l != nil {
			l.wakeFirst(Free)
		}
		q.alone.wake(key)
	}
}

// LookAt makes the first entry of each key's queue look at the masters: the keys have changed, but they are not free.
// Or this process has asked masters to remove it from their queues for keys: the entry's attempt may have come before
// the removal, which then removed its position, too; or it was refused because of an entry that has left since.
func (q *Queue) LookAt(keys []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		if l := q.queues[key]; l != nil {
			l.wakeFirst(Missed)
		}
		q.alone.wake(key)
	}
}

// Look makes the first entry of every queue look whether it has missed something.
func (q *Queue) Look() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.queues {
		l.wakeFirst(Missed)
	}
	for key := range q.alone {
		q.alone.wake(key)
	}
}

// alone has the entries in no queue, by key.
type alone map[string][]*Entry

func (a alone) add(e *Entry) {
	for _, key := range e.want.Keys {
		a[key] = append(a[key], e)
	}
}

func (a alone) remove(e *Entry) {
	for _, key := range e.want.Keys {
		if a[key] = slices.DeleteFunc(a[key], func(other *Entry) bool { return other == e }); len(a[key]) == 0 {
			delete(a, key)
		}
	}
}

// wake makes the entries that want key look at the masters.
func (a alone) wake(key string) {
	for _, e := range a[key] {
		e.wake(Missed)
	}
}

// Notify notes that a release on master i named this process as the next to have key. When a quorum of masters has
// notified, the first entry in the queue tries: the key is free on all of these masters. The masters' queues may
// differ, and then they notify different processes. So a process that only some masters have notified tries after
// patience.
func (q *Queue) Notify(key string, i int, patience time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.alone.wake(key)
	l := q.queues[key]
	if l == nil {
		return
	}
	l.notified |= 1 << i
	switch {
	case q.majority(l.notified):
		l.wakeFirst(Free)
	case bits.OnesCount64(l.notified) == 1:
		q.after(patience, func() { q.notifiedBySome(l) })
	}
}

// notifiedBySome makes the first entry of l try if too few masters have notified and no entry has tried since.
func (q *Queue) notifiedBySome(l *keyQueue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.first != nil && l.notified != 0 {
		l.wakeFirst(Free)
	}
}
