package demo

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock"
)

// board records all events. All its methods may be called concurrently.
type board struct {
	resource *resource
	members  int      // masters of a list
	addrs    []string // of all masters so far; add appends

	telling sync.Mutex // held during a call of tell, so that events keep their order

	mu       sync.Mutex
	began    time.Time
	up       []bool
	workers  []workerState
	acts     []*actState
	outage   window // the time without a possible quorum
	refusal  error  // the observer's last refusal
	failures []error
}

type workerState struct {
	lock  *redlock.Lock // nil while waiting
	list  list          // of the masters that it asks
	since time.Time     // when it began to wait or to hold
	count int
}

// actState has the events of one act.
type actState struct {
	title     string
	step      string // the latest step of the exchange of masters; "" in other acts
	began     time.Time
	ended     time.Time
	winners   map[int]int     // acquisitions by worker
	lists     map[list]int    // acquisitions by the list of masters
	waits     []time.Duration // waits of the workers, except those through an outage
	through   []time.Duration // those
	free      []time.Duration // the observer's acquisitions
	refusals  int             // the observer's
	firstWin  time.Time       // the first acquisition by a worker
	lastGrant time.Time       // the last acquisition by a worker or the observer
}

// window is a period. It has begun if from is set, and ended if to is set.
type window struct{ from, to time.Time }

func (w window) touches(from, to time.Time) bool {
	return !w.from.IsZero() && to.After(w.from) && (w.to.IsZero() || from.Before(w.to))
}

func newBoard(addrs []string, workers int, r *resource) *board {
	return &board{
		resource: r, members: len(addrs), addrs: addrs, up: slices.Repeat([]bool{true}, len(addrs)),
		workers: make([]workerState, workers),
	}
}

func (b *board) locked(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do()
}

func (b *board) begin() {
	b.locked(func() {
		b.began = time.Now()
		b.acts = []*actState{newAct("", b.began)} // named by the first call of act
	})
}

func newAct(title string, now time.Time) *actState {
	return &actState{title: title, began: now, winners: make(map[int]int), lists: make(map[list]int)}
}

func (b *board) teller(tell func(Event)) func(Event) {
	return func(e Event) {
		b.telling.Lock()
		defer b.telling.Unlock()
		e.At = b.elapsed()
		if tell != nil {
			tell(e)
		}
	}
}

func (b *board) elapsed() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Since(b.began)
}

func (b *board) act(title string) *actState {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.currentLocked(); a.title == "" {
		a.title = title
		return a
	}
	now := time.Now()
	b.currentLocked().ended = now
	a := newAct(title, now)
	b.acts = append(b.acts, a)
	return a
}

func (b *board) step(text string) { b.locked(func() { b.currentLocked().step = text }) }

// soFar returns a copy of an act's events.
func (b *board) soFar(a *actState) actState {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := *a
	now.winners, now.lists = maps.Clone(a.winners), maps.Clone(a.lists)
	return now
}

// acquisitions is how often workers got the lock.
func (a *actState) acquisitions() int { return len(a.waits) + len(a.through) }

// currentLocked is the act that is on.
func (b *board) currentLocked() *actState { return b.acts[len(b.acts)-1] }

func (b *board) waiting(worker int, since time.Time, with list) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &b.workers[worker]
	w.lock, w.list, w.since = nil, with, since
}

func (b *board) acquired(worker int, lock *redlock.Lock, asked time.Time, with list) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	w := &b.workers[worker]
	w.lock, w.list, w.since = lock, with, now
	w.count++
	a := b.currentLocked()
	a.winners[worker]++
	a.lists[with]++
	a.lastGrant = now
	if a.firstWin.IsZero() {
		a.firstWin = now
	}
	if b.outage.touches(asked, now) {
		a.through = append(a.through, now.Sub(asked))
	} else {
		a.waits = append(a.waits, now.Sub(asked))
	}
}

func (b *board) released(worker int) {
	b.locked(func() { b.workers[worker].lock, b.workers[worker].since = nil, time.Now() })
}

// observed notes one acquisition by the observer that began then and ended now.
func (b *board) observed(began time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.currentLocked()
	if err == nil {
		a.free = append(a.free, time.Since(began))
		a.lastGrant = time.Now()
		return
	}
	a.refusals++
	b.refusal = err
}

// expectNone records an error, if there is one, as a failure: no part of the show expects it.
func (b *board) expectNone(err error) {
	if err != nil {
		b.locked(func() { b.failures = append(b.failures, err) })
	}
}

// add records a new master, which is up.
func (b *board) add(addr string) {
	b.locked(func() { b.addrs, b.up = append(b.addrs, addr), append(b.up, true) })
}

func (b *board) setUp(i int, up bool) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed = b.up[i] != up
	b.up[i] = up
	return changed
}

func (b *board) allUp() {
	b.locked(func() { b.up = slices.Repeat([]bool{true}, len(b.up)) })
}

// refused returns the observer's last refusal, and false if there was none.
func (b *board) refused() (*redlock.QuorumError, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.AsType[*redlock.QuorumError](b.refusal)
}

// latenciesLocked sums up how long the observer's acquisitions took, and the workers'.
func (b *board) latenciesLocked() (free, wait Latency) {
	var frees, waits []time.Duration
	for _, a := range b.acts {
		frees, waits = append(frees, a.free...), append(waits, a.waits...)
	}
	return latency(frees), latency(waits)
}

// percentile returns the p-th percentile of d by the nearest-rank method, zero of nothing.
func percentile(d []time.Duration, p int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Clone(d)
	slices.Sort(sorted)
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}
