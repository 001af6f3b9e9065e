package waitqueue

import (
	"math/bits"
	"time"
)

// This file tells the first of a queue that its key may be free.

// Wake has those try whose turn it is for keys, which have become free.
func (q *Queue) Wake(keys []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		if l := q.queues[key]; l != nil {
			l.wakeFirst(Free)
		}
	}
}

// LookAt has the first of the queues of keys look at them: something has become of them, and they are not free.
func (q *Queue) LookAt(keys []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		if l := q.queues[key]; l != nil {
			l.wakeFirst(Missed)
		}
	}
}

// Dequeued notes that masters have been asked to take this process out of their queues for keys. Whoever waits here looks again: its
// attempt may have been before, and so for nothing, or it was behind one that has given up and kept it out.
func (q *Queue) Dequeued(keys []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		if l := q.queues[key]; l != nil {
			l.wakeFirst(Missed)
		}
	}
}

// Look has the first of every queue look whether it has missed something.
func (q *Queue) Look() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.queues {
		l.wakeFirst(Missed)
	}
}

// Notify notes that a release on master i named this process as the next to have key. When a quorum has, the first in queue
// tries: the key is free on all of these. Masters' queues may differ, so that they notify different processes; then those
// notified by some try after patience.
func (q *Queue) Notify(key string, i int, patience time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
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

// notifiedBySome has the first of l try if too few masters have notified, and nobody has tried since.
func (q *Queue) notifiedBySome(l *keyQueue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.first != nil && l.notified != 0 {
		l.wakeFirst(Free)
	}
}
