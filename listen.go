package redlock

import (
	"math/bits"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// lingering is how long a Locker goes on listening after its last waiter has gone, so that a program that takes a
// contended lock again and again does not subscribe each time.
const lingering = 2 * time.Second

// ear listens on all masters, for all waiters of one Locker, to being called: a release names on the Locker's own
// channel the key that it may take. One connection a master, while anybody waits.
type ear struct {
	locker *Locker

	mu      sync.Mutex
	waiters int
	stops   []func() // nil while it does not listen
	ready   uint64   // a bit for each master whose subscription was made
	linger  Timer
	shutOff bool
}

func newEar(l *Locker) *ear { return &ear{locker: l} }

// open begins to listen for one more waiter.
func (e *ear) open() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiters++
	if e.stops != nil || e.shutOff {
		return
	}
	e.stops, e.ready = []func(){}, 0
	for i, m := range e.locker.masters {
		if m, ok := m.(Listener); ok {
			heard := func(key string) { e.locker.lines.called(key, i, e.locker.reserve()/2) }
			e.stops = append(e.stops, m.Listen(single.ChannelPrefix+e.locker.id, func() { e.subscribed(i) }, heard))
		}
	}
}

// subscribed has every waiter try once more when a quorum can call it: what was released before then, it has missed.
func (e *ear) subscribed(i int) {
	e.mu.Lock()
	before := e.ready
	e.ready |= 1 << i
	again := e.quorate() && e.ready != before
	e.mu.Unlock()
	if again {
		e.locker.lines.wakeAll()
	}
}

// hears reports that a quorum can call.
func (e *ear) hears() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.quorate()
}

// quorate reports that a quorum of masters has been subscribed to. One that has broken off meanwhile still counts: then
// calls may be lost, and a backoff is what that costs. The caller holds the mutex.
func (e *ear) quorate() bool { return bits.OnesCount64(e.ready) >= quorumOf(len(e.locker.masters)) }

// leave counts one waiter less; with the last one the ear closes, after a while.
func (e *ear) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiters--
	if e.waiters > 0 || e.shutOff {
		return
	}
	if e.linger == nil {
		e.linger = e.locker.clock.AfterFunc(lingering, e.expire)
		return
	}
	e.linger.Reset(lingering)
}

// expire closes the ear if nobody has come meanwhile.
func (e *ear) expire() {
	e.mu.Lock()
	var stops []func()
	if e.waiters == 0 {
		stops, e.stops, e.ready = e.stops, nil, 0
	}
	e.mu.Unlock()
	stopAll(stops)
}

// shut closes the ear for good.
func (e *ear) shut() {
	e.mu.Lock()
	e.shutOff = true
	if e.linger != nil {
		e.linger.Stop()
	}
	stops := e.stops
	e.stops, e.ready = nil, 0
	e.mu.Unlock()
	stopAll(stops)
}

// stopAll ends all subscriptions at once: one on a master that hangs takes a while.
func stopAll(stops []func()) {
	var wait sync.WaitGroup
	for _, stop := range stops {
		wait.Go(stop)
	}
	wait.Wait()
}
