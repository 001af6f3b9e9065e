package waitqueue

import (
	"slices"
	"time"
)

const (
	// fadeAfter is how long rivals and favours are remembered at least. The longest of both is over by then.
	fadeAfter = 2 * time.Second
	// overdue is how long an entry for several keys waits before it is favoured.
	overdue = 100 * time.Millisecond
	// firstFavour and maxFavour bound a favour. The next favour of the same entry lasts twice as long.
	firstFavour = 8 * time.Millisecond
	maxFavour   = 256 * time.Millisecond
	// favourRest: after a favour its keys are not favoured for so many times its length.
	favourRest = 4
)

// rival is a waiter of another process that a release of this process has notified.
type rival struct {
	ahead time.Duration // until then this process does not ask the masters for the key
	until time.Duration // until then attempts of this process are polite
}

// favour keeps a key for one entry.
type favour struct {
	seq   uint64        // the favoured entry: younger entries leave the key alone
	until time.Duration // until when
	rest  time.Duration // until then no other entry is favoured with the key
}

// Rival notes that a release of this process has notified a waiter of another process of the keys. Until ahead this
// process does not ask the masters: its requests would be refused and would slow the other process down. Attempts
// before until are polite. Both must be less than two seconds from now.
func (q *Queue) Rival(keys []string, ahead, until time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		put(q, &q.rivals, key, rival{ahead, until})
	}
}

// Yield reports whether e is the first of its queue, and for how long it should let others go first all the same.
// These others are:
//
//   - a rival, unless masters have notified this process;
//   - an older entry that is favoured;
//   - an entry of this process that has the key and passes it on.
//
// e is woken if that ends early. Yield reads the clock only if there is something to yield to, because most waits
// meet no other.
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

// favoursLocked returns until when an entry older than e is favoured with key.
func (q *Queue) favoursLocked(key string, e *Entry) time.Duration {
	if f := q.favours.get(key); f.seq < e.seq {
		return f.until
	}
	return 0
}

// grantLocked favours e if it is overdue and none of its keys is favoured or has lately been.
func (q *Queue) grantLocked(e *Entry, now time.Duration) {
	if now-e.want.Since < overdue ||
		slices.ContainsFunc(e.want.Keys, func(key string) bool { return now < q.favours.get(key).rest }) {
		return
	}
	e.favour = min(max(firstFavour, 2*e.favour), maxFavour)
	for _, key := range e.want.Keys {
		put(q, &q.favours, key, favour{seq: e.seq, until: now + e.favour, rest: now + (1+favourRest)*e.favour})
	}
}

// endFavourLocked ends e's favour, and wakes the entries that have yielded to it.
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

// fading remembers one value per key for one to two times fadeAfter. Old values are forgotten all together, so
// nothing is ever searched for expired values.
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

// fade forgets the old values.
func fade[V any](q *Queue, f *fading[V]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f.old, f.young = f.young, nil
	if f.armed = len(f.old) > 0; f.armed {
		q.after(fadeAfter, func() { fade(q, f) })
	}
}
