package waitqueue

import (
	"slices"
	"time"
)

const (
	// fadeAfter is for how long at least a rival and a favour are remembered; the longest of them is over by then.
	fadeAfter = 2 * time.Second
	// overdue is how long an entry for several keys has waited when it is favoured.
	overdue = 100 * time.Millisecond
	// firstFavour and maxFavour bound a favour; the next one of the same entry is twice as long.
	firstFavour = 8 * time.Millisecond
	maxFavour   = 256 * time.Millisecond
	// favourRest is for how many times as long afterwards nobody is favoured with the same keys.
	favourRest = 4
)

// rival is a waiter of another process that a release of ours has notified.
type rival struct {
	ahead time.Duration // until then it is left alone with the masters
	until time.Duration // until then it is left what it has been notified of
}

// favour keeps a key for one entry.
type favour struct {
	seq   uint64        // whose it is: younger entries leave the key alone
	until time.Duration // as long as this
	rest  time.Duration // until then nobody else is favoured with it
}

// Rival notes that a release of ours has notified a waiter of another process of the keys. Until ahead it is left alone
// with the masters: whatever we asked them meanwhile would be refused, and slow it down. Attempts before until are polite.
// Both must be less than two seconds from now.
func (q *Queue) Rival(keys []string, ahead, until time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		put(q, &q.rivals, key, rival{ahead, until})
	}
}

// Yield reports whether e is the first of its queue, and for how long it should let others go first all the same: a rival,
// unless masters have notified this process, an older entry that is favoured, or one of this process that has the key and passes it on. It is
// woken when that ends early. The clock is read only where there is somebody to let go first: most waits never meet anyone.
func (q *Queue) Yield(e *Entry, now func() time.Duration) (turn bool, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := e.in
	turn = l == nil || l.first == e
	if l == nil || q.rivals.empty() && q.favours.empty() && q.ours.empty() {
		return turn, 0
	}
	at := now()
	if ours := q.ours.get(l.key); e.want.Patient && len(e.want.Keys) == 1 && ours.class == e.want.Class {
		d = max(0, ours.until-at)
	}
	for _, key := range e.want.Keys {
		if l.notified == 0 {
			d = max(d, q.rivals.get(key).ahead-at)
		}
		d = max(d, q.favoursLocked(key, e)-at)
	}
	return turn, d
}

// favoursLocked is until when somebody older than e is favoured with key.
func (q *Queue) favoursLocked(key string, e *Entry) time.Duration {
	if f := q.favours.get(key); f.seq < e.seq {
		return f.until
	}
	return 0
}

// grantLocked favours e if it is overdue and nobody is, or has lately been, favoured with one of its keys.
func (q *Queue) grantLocked(e *Entry, now time.Duration) {
	if now-e.want.Since < overdue || slices.ContainsFunc(e.want.Keys, func(key string) bool { return now < q.favours.get(key).rest }) {
		return
	}
	e.favour = min(max(firstFavour, 2*e.favour), maxFavour)
	for _, key := range e.want.Keys {
		put(q, &q.favours, key, favour{seq: e.seq, until: now + e.favour, rest: now + (1+favourRest)*e.favour})
	}
}

// endFavourLocked ends the favour that e has, and wakes those who have yielded to it.
func (q *Queue) endFavourLocked(e *Entry, now time.Duration) {
	for _, key := range e.want.Keys {
		f := q.favours.get(key)
		if f.seq != e.seq || f.until <= now {
			continue
		}
		f.until = now
		put(q, &q.favours, key, f)
		if l := q.queues[key]; l != nil {
			l.first.wake(Company)
		}
	}
}

// fading remembers a value a key for one to two times fadeAfter: those of an earlier time are forgotten together, so that
// nothing is ever searched for what is over.
type fading[V any] struct {
	young, old map[string]V
	armed      bool
}

func (f *fading[V]) get(key string) (v V) {
	if v, ok := f.young[key]; ok {
		return v
	}
	return f.old[key]
}

func (f *fading[V]) empty() bool { return len(f.young)+len(f.old) == 0 }

// put notes a value. The caller holds q's mutex.
func put[V any](q *Queue, f *fading[V], key string, v V) {
	if f.young == nil {
		f.young = make(map[string]V)
	}
	f.young[key] = v
	if !f.armed {
		f.armed = true
		q.after(fadeAfter, func() { fade(q, f) })
	}
}

// fade forgets what is old.
func fade[V any](q *Queue, f *fading[V]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f.old, f.young = f.young, nil
	if f.armed = len(f.old) > 0; f.armed {
		q.after(fadeAfter, func() { fade(q, f) })
	}
}
