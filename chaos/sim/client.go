package sim

import (
	"strconv"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock"
)

// client is one process: a Locker, and tasks that use it.
type client struct {
	w      *world
	number int
	name   string // in the history, and in the masters' queues
	plan   *Client
	locker *redlock.Locker
	links  []*link // to every master, also those that its Locker does not have
	sets   [][]int // the numbers of the masters of each set that its Locker has
	tasks  []*task

	steps    int      // that it has begun
	atStep   []*Fault // faults that begin at a step
	stopped  int64    // it is paused until then
	late     int64    // until when its actions may be late because of the pause
	dead     bool
	died     int64
	flushing bool
	gaveTo   map[string]int64 // when a release of this client notified another, by the key

	jitterMu sync.Mutex
	jitter   chance
}

// newClient makes a client and its Locker.
func newClient(w *world, number int) (*client, error) {
	c := &client{w: w, number: number, name: "c" + strconv.Itoa(number), plan: &w.plan.Clients[number]}
	c.jitter = chanceOf(w.plan.Seed, ofJitter, uint64(number))
	for i, m := range w.masters {
		name := "m" + strconv.Itoa(i)
		c.links = append(c.links, &link{w: w, client: c, master: m, name: name, gate: make(chan struct{})})
	}
	locker, err := c.open(redlock.Options{Clock: clientClock{c}, Jitter: c.draw, RequestTimeout: c.plan.Timeout})
	if err != nil {
		return nil, err
	}
	c.locker = locker
	for i, sessions := range c.plan.all() {
		c.tasks = append(c.tasks, newTask(c, i, sessions))
	}
	return c, nil
}

// draw is the engine's jitter.
func (c *client) draw(d time.Duration) time.Duration {
	c.jitterMu.Lock()
	defer c.jitterMu.Unlock()
	return time.Duration(c.jitter.below(int64(d)))
}

// pause stops the client for d: its timers, the replies to it and its own steps wait until the pause ends.
func (c *client) pause(d time.Duration) {
	c.stopped = max(c.stopped, c.w.now+int64(d))
}

// gathered plans when the waiting lanes take their batches: right after the current event, or, if
// sends are staggered, each at another time.
func (c *client) gathered(l *link) {
	w := c.w
	if spread := int64(w.plan.Net.Stagger); spread > 0 {
		draw := chanceOf(w.plan.Seed, ofStagger, uint64(c.number), uint64(l.master.number), uint64(w.now))
		w.mu.Lock()
		defer w.mu.Unlock()
		w.pending.push(event{at: w.now + 1 + draw.below(spread), kind: flush, client: c.number, l: l, tie: draw.next()})
		return
	}
	if c.flushing {
		return
	}
	c.flushing = true
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending.push(event{at: w.now + 1, kind: flush, client: c.number})
}

// flush makes the lanes take their batches: all lanes, or only l.
func (c *client) flush(l *link) {
	if l != nil {
		l.openGate()
		return
	}
	c.flushing = false
	for _, l := range c.links {
		l.openGate()
	}
}

// openGate lets the waiting workers pass. The first takes all pending requests.
func (l *link) openGate() {
	l.w.mu.Lock()
	n := l.waiting
	l.waiting = 0
	l.w.mu.Unlock()
	for range n {
		l.gate <- struct{}{}
	}
}
