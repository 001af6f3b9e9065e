package sim

import "github.com/seed-624411e5/redlock/single"

// subscription is one client's at one master. The world's mutex guards it.
type subscription struct {
	number   uint64
	ready    func()
	notified func(string)
	made     bool
	stopped  bool
}

// resubscribe is after how long a subscription that could not be made is tried again.
const resubscribe = 50_000_000

// Listen implements redlock.Listener. A Locker only listens to its own channel, so every notification of this client
// comes here. Messages are lost while the way back is cut.
func (l *link) Listen(_ string, ready func(), notified func(string)) (stop func()) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.listens++
	s := &subscription{number: l.listens, ready: ready, notified: notified}
	l.sub = s
	l.subscribeLocked(s, l.w.now+1)
	return func() {
		l.w.mu.Lock()
		defer l.w.mu.Unlock()
		s.stopped = true
	}
}

// subscribeLocked plans an attempt. The mutex is the world's.
func (l *link) subscribeLocked(s *subscription, from int64) {
	w := l.w
	draw := chanceOf(w.plan.Seed, ofSubscription, uint64(l.client.number), uint64(l.master.number), s.number,
		uint64(from))
	at := from + 2*draw.between(w.plan.Net.MinDelay, w.plan.Net.MaxDelay)
	w.pending.push(event{at: at, kind: visible, client: l.client.number, tie: draw.next(), do: func() {
		w.mu.Lock()
		stopped, works := s.stopped || w.over, !l.master.down && l.master.frozen == 0 && l.cutThere+l.cutBack == 0
		s.made = works && !stopped
		if !works && !stopped {
			l.subscribeLocked(s, w.now+resubscribe)
		}
		w.mu.Unlock()
		if s.made {
			s.ready()
		}
	}})
}

// unsubscribe ends the subscription when the master dies; the client tries to make it again.
func (l *link) unsubscribe() {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if s := l.sub; s != nil && s.made && !s.stopped {
		s.made = false
		l.subscribeLocked(s, l.w.now+resubscribe)
	}
}

// listens reports that a client's subscription stands, as far as the master knows.
func (m *master) listens(waiter string) bool {
	w := m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.clients {
		if c.name != waiter {
			continue
		}
		if s := c.links[m.number].sub; s != nil && s.made && !s.stopped {
			return true
		}
		w.counts.Unheard++
	}
	return false
}

// notifyWaiters sends the notifications of the release just served.
func (m *master) notifyWaiters(f *flight, r *single.Request) {
	by := f.link.client
	for i, n := range m.store.Notifications() {
		m.w.division(r.Owner, n.Key, n.Waiter)
		for _, c := range m.w.clients {
			if c.name != n.Waiter {
				continue
			}
			if c != by {
				if by.gaveTo == nil {
					by.gaveTo = make(map[string]int64)
				}
				by.gaveTo[n.Key] = m.w.now
			}
			add(&m.w.counts.NotifiedDead, c.dead)
			c.links[m.number].notify(n.Key, i)
		}
	}
}

// notify sends a notification to the client.
func (l *link) notify(key string, i int) {
	w := l.w
	w.mu.Lock()
	defer w.mu.Unlock()
	s := l.sub
	if l.cutBack > 0 {
		w.counts.Unheard++
		return
	}
	draw := chanceOf(w.plan.Seed, ofSubscription, uint64(l.client.number), uint64(l.master.number), uint64(i),
		uint64(w.now))
	at := w.now + draw.between(w.plan.Net.MinDelay, w.plan.Net.MaxDelay) + l.master.slow
	w.counts.Called++
	w.pending.push(event{at: at, kind: visible, client: l.client.number, tie: draw.next(), do: func() {
		if !s.stopped && !w.over {
			s.notified(key)
		}
	}})
}
