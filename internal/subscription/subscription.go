// Package subscription listens on masters for all waiters of one process: a release names on the process's own channel the
// key that it may take. It keeps one subscription a master, while there are waiters and a little longer.
package subscription

import (
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/internal/schedule"
)

// Linger is for how long a Subscription goes on after the last waiter has gone, so that a program that takes a contended
// lock again and again does not subscribe each time.
const Linger = 2 * time.Second

// Gather is for how long reconnections are gathered before Ready is called for them: what breaks one subscription often breaks all.
const Gather = 20 * time.Millisecond

// Listen begins to listen on one master. It calls ready each time the subscription has been made and notified with every
// message, possibly before it returns; stop returns when neither will be called any more.
type Listen func(ready func(), notified func(key string)) (stop func())

// Config is what a Subscription works with.
type Config struct {
	// Masters listen; nil for one that can't.
	Masters []Listen
	// Majority reports whether so many are ready, a bit for each, that waiters can depend on it.
	Majority func(masters uint64) bool
	// After calls a function once a time has passed.
	After func(time.Duration, func()) schedule.Timer
	// Notified is told of every message, with the number of its master.
	Notified func(key string, master int)
	// Ready is called when a quorum has become ready, and soon after a master has become ready again: what was published before then
	// was missed. That may be what nobody else has published, so it does not matter how many of them were away.
	Ready func()
}

// Subscription is safe for concurrent use. Masters are called without its mutex, and may call back before they return. Make
// it with [New].
type Subscription struct {
	Config

	mu      sync.Mutex
	waiters int
	current *listening // nil while it does not listen
	linger  schedule.Timer
	again   schedule.Timer // calls Ready for masters that are ready again
	looks   bool           // and is going to
	closed  bool
	endings sync.WaitGroup // what ends a listening after it has lingered
}

// listening is one time of listening.
type listening struct {
	ready uint64        // a bit for each master whose subscription was made
	stops []func()      // once all have been asked
	asked chan struct{} // closed then
}

// New makes a Subscription that does not listen yet.
func New(c Config) *Subscription { return &Subscription{Config: c} }

// Enter listens on account of one waiter more.
func (s *Subscription) Enter() {
	l := s.begin()
	if l == nil {
		return
	}
	for i, listen := range s.Masters {
		if listen != nil {
			l.stops = append(l.stops, listen(func() { s.ready(l, i) }, func(key string) { s.Notified(key, i) }))
		}
	}
	close(l.asked)
}

// begin counts one waiter more, and returns what is to be begun, nil if nothing is.
func (s *Subscription) begin() *listening {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters++
	if s.current != nil || s.closed {
		return nil
	}
	s.current = &listening{asked: make(chan struct{})}
	return s.current
}

// ready notes that master i can notify.
func (s *Subscription) ready(l *listening, i int) {
	s.mu.Lock()
	before := s.readyLocked()
	if l.ready>>i&1 == 1 && l == s.current {
		s.lookLocked()
	}
	l.ready |= 1 << i
	became := !before && s.readyLocked()
	s.mu.Unlock()
	if became {
		s.Ready()
	}
}

// lookLocked has Ready be called soon.
func (s *Subscription) lookLocked() {
	switch {
	case s.looks:
	case s.again == nil:
		s.again = s.After(Gather, s.look)
	default:
		s.again.Reset(Gather)
	}
	s.looks = true
}

func (s *Subscription) look() {
	s.mu.Lock()
	s.looks = false
	s.mu.Unlock()
	s.Ready()
}

// Subscribed reports that a quorum can notify. A master that has broken off meanwhile still counts: then notifications may
// be lost, and a backoff is what that costs.
func (s *Subscription) Subscribed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readyLocked()
}

func (s *Subscription) readyLocked() bool {
	return s.current != nil && s.Majority(s.current.ready)
}

// Leave counts one waiter less; with the last one the subscription ends, after a while.
func (s *Subscription) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters--
	if s.waiters > 0 || s.closed {
		return
	}
	if s.linger == nil {
		s.linger = s.After(Linger, s.expire)
		return
	}
	s.linger.Reset(Linger)
}

// expire ends the subscription if nobody has come meanwhile.
func (s *Subscription) expire() {
	s.mu.Lock()
	var ended *listening
	if s.waiters == 0 && !s.closed {
		ended, s.current = s.current, nil
		s.endings.Add(1)
		defer s.endings.Done()
	}
	s.mu.Unlock()
	ended.stop()
}

// Close ends the subscription for good, and returns when no master is listened to any more.
func (s *Subscription) Close() {
	s.mu.Lock()
	s.closed = true
	for _, timer := range []schedule.Timer{s.linger, s.again} {
		if timer != nil {
			timer.Stop()
		}
	}
	ended := s.current
	s.current = nil
	s.mu.Unlock()
	ended.stop()
	s.endings.Wait()
}

// stop ends the subscriptions on all masters at once: one on a master that hangs takes a while.
func (l *listening) stop() {
	if l == nil {
		return
	}
	<-l.asked
	stopAll(l.stops)
}

// stopAll calls all of them at once, and waits for them.
func stopAll(stops []func()) {
	var all sync.WaitGroup
	for _, stop := range stops {
		all.Go(stop)
	}
	all.Wait()
}
