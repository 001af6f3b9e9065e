package redlocktest

import (
	"sync"

	"github.com/seed-624411e5/redlock/single"
)

// subscription is a subscription to one channel of one master. A separate goroutine delivers its messages in order. The
// master's mutex guards made; the subscription's own mutex guards the waiting messages.
type subscription struct {
	channel  string
	ready    func()
	notified func(string)
	made     bool

	mu     sync.Mutex
	events []func()
	wake   chan struct{} // of capacity 1
	stop   chan struct{}
	ended  chan struct{}
}

// Listen implements redlock.Listener. While the master is stopped, messages are lost.
func (m *Master) Listen(channel string, ready func(), notified func(message string)) (stop func()) {
	s := &subscription{
		channel: channel, ready: ready, notified: notified,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go s.run()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.channels[s] = struct{}{}
	if !m.isStopped() {
		s.begin()
	}
	return func() {
		m.mu.Lock()
		delete(m.channels, s)
		m.mu.Unlock()
		close(s.stop)
		<-s.ended
	}
}

// listensLocked reports whether a waiter's subscription exists. The mutex is the master's.
func (m *Master) listensLocked(waiter string) bool {
	for s := range m.channels {
		if s.channel == single.ChannelPrefix+waiter && s.made {
			return true
		}
	}
	return false
}

// publishLocked sends a message to the subscriptions, with the delay of an answer. The mutex is the master's.
func (m *Master) publishLocked(channel, message string) {
	connection := m.stopped
	for s := range m.channels {
		if s.channel != channel || !s.made {
			continue
		}
		if m.latency == 0 {
			s.put(func() { s.notified(message) })
			continue
		}
		m.world.clock.AfterFunc(m.latency-m.latency/2, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if s.made && m.stopped == connection {
				s.put(func() { s.notified(message) })
			}
		})
	}
}

// begin is called when the subscription is made, breakOff when its connection breaks. The caller holds the master's
// mutex.
func (s *subscription) begin() {
	s.made = true
	s.put(s.ready)
}

func (s *subscription) breakOff() {
	s.made = false
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = nil
}

func (s *subscription) put(event func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, event)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *subscription) take() []func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.events
	s.events = nil
	return events
}

func (s *subscription) run() {
	defer close(s.ended)
	for {
		select {
		case <-s.stop:
			return
		case <-s.wake:
		}
		for _, event := range s.take() {
			select {
			case <-s.stop:
				return
			default:
				event()
			}
		}
	}
}
