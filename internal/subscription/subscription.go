// Package subscription listens on masters for all waiters of one process. A release publishes, on the process's own
// channel, the key that the process may take. There is one subscription per master, kept while there are waiters and
// a little longer.
package subscription

import (
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/internal/schedule"
)

// Linger is for how long a Subscription goes on after the last waiter has gone. So a program that takes a contended
// lock again and again does not subscribe each time.
const Linger = 2 * time.Second

// Gather is for how long reconnections are gathered before one Ready call: a fault that breaks one subscription often
// breaks all.
const Gather = 20 * time.Millisecond

// Listen begins to listen on one master. It calls ready each time the subscription has been made, and notified with
// every message, possibly before it returns. stop returns when neither will be called any more.
type Listen func(ready func(), notified func(key string)) (stop func())

// Config is the environment of a Subscription.
type Config struct {
	// Masters listen; nil for a master that cannot.
	Masters []Listen
	// Majority reports whether the ready masters, a bit for each, are enough for waiters to depend on.
	Majority func(masters uint64) bool
	// After calls a function after some time.
	After func(time.Duration, func()) schedule.Timer
	// Notified receives every message, with the number of its master.
	Notified func(key string, master int)
	// Ready is called when a quorum has become ready, and soon after a master has become ready again: earlier
	// publications were missed. Possibly no other master has published the missed message, so Ready is called even
	// for a single master.
	Ready func()
}

// Subscription is safe for concurrent use. It calls masters without holding its mutex, and they may call back before
// they return. Make it with [New].
type Subscription struct {
	Config

	mu      sync.Mutex
	waiters int
	current *listening // nil while it does not listen
	linger  schedule.Timer
	again   schedule.Timer // calls Ready for masters that are ready again
	looks   bool           // Ready is going to be called
	closed  bool
	endings sync.WaitGroup // goroutines that end a listening after it has lingered
}

// listening is one period of listening, on all masters.
type listening struct {
	ready uint64        // a bit for each subscribed master
	stops []func()      // complete when all masters have been asked
	asked chan struct{} // closed then
}

// New makes a Subscription that does not listen yet.
func New(c Config) *Subscription { return &Subscription{Config: c} }

// Enter adds a waiter, and begins to listen for the first one.
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

// begin counts one more waiter. It returns the listening to begin; nil if there is nothing to begin.
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

// lookLocked arranges for Ready to be called soon.
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

// Subscribed reports that a quorum can notify. A master that has broken off since then still counts. Its
// notifications may be lost; the waiter then waits for its backoff.
func (s *Subscription) Subscribed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readyLocked()
}

func (s *Subscription) readyLocked() bool {
	return s.current != nil && s.Majority(s.current.ready)
}

// Leave removes a waiter. After the last one the subscription ends, after a while.
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

// expire ends the subscription if no waiter has come in the meantime.
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

// Close ends the subscription permanently. It returns when no master listens any more.
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

// stop ends the subscriptions on all masters at once, because one on a hanging master takes a while.
func (l *listening) stop() {
	if l == nil {
		return
	}
	<-l.asked
	var all sync.WaitGroup
	for _, stop := range l.stops {
		all.Go(stop)
	}
	all.Wait()
}
