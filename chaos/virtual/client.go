package virtual

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// client is one process.
type client struct {
	w      *world
	number int
	locker workload.Locker
	links  []*link
	gate   workload.Gate // stops its workers
	stop   context.CancelFunc
	dead   bool
	open   map[uint64]bool // attempts that have begun and not ended
}

// newClient adds a client, with its paths to the masters.
func (w *world) newClient(n int) *client {
	c := &client{w: w, number: n, open: make(map[uint64]bool), stop: func() {}}
	for _, m := range w.masters {
		c.links = append(c.links, &link{w: w, client: c, master: m, conns: make(map[*conn]bool)})
	}
	w.clients = append(w.clients, c)
	return c
}

// endpoints are the masters, as the client reaches them.
func (c *client) endpoints() (all []endpoint.Endpoint) {
	for i, l := range c.links {
		all = append(all, endpoint.Endpoint{Addr: address(i), Dialer: l.dial})
	}
	return all
}

func (c *client) plan() *Process { return &c.w.plan.Clients[c.number] }

// work is one worker. Workers begin at different moments.
func (c *client) work(number int, sessions []Session) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c.w.mu.Lock()
	before := c.stop
	c.stop = func() { before(); stop() }
	dead := c.dead
	c.w.mu.Unlock()
	if dead {
		return
	}
	seed := c.w.plan.Seed
	w := &workload.Worker{
		Client: c.number, Number: number, Locker: c.locker, Sink: sink{c}, Gate: &c.gate,
		Rand:   rand.New(rand.NewPCG(seed, uint64(c.number)<<16+uint64(number))),
		Fenced: c.w.subject.Supports(history.Fenced) == nil,
	}
	_, renews := c.w.subject.(workload.Renewer)
	workload.Pause(ctx, time.Duration(c.number*97+number*13)*time.Microsecond)
	for i := range sessions {
		x := &sessions[i]
		workload.Pause(ctx, x.Pause)
		if ctx.Err() != nil {
			return
		}
		w.Profile = x.profile(renews)
		w.Cycle(ctx, []string{keyName(x.Key)})
	}
}

// profile is a session in the words of the workload, of a lock that renews holds or does not.
func (x *Session) profile(renews bool) workload.Profile {
	p := workload.Profile{
		Keys: 1, TTL: x.TTL, Wait: x.Wait, Renew: x.Renew && renews, Hold: workload.Span{Min: x.Hold, Max: x.Hold},
	}
	if x.Extend {
		p.Extend = 1
	}
	if x.Fenced {
		p.Kind = history.Fenced
	}
	return p
}

// sink records the events of a client's workers until the client is killed.
type sink struct{ c *client }

func (s sink) Now() int64 { return s.c.w.now() }

func (s sink) NextAttempt() uint64 {
	s.c.w.mu.Lock()
	defer s.c.w.mu.Unlock()
	s.c.w.attempt++
	return s.c.w.attempt
}

func (s sink) Record(e history.Event) int64 {
	w := s.c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.c.dead {
		return w.now()
	}
	switch e.Type {
	case history.AcquireCall:
		s.c.open[e.Attempt] = true
	case history.AcquireReturn:
		w.counts.returned(&e)
		if e.Outcome != history.Acquired {
			delete(s.c.open, e.Attempt)
		} else {
			w.owners[e.Owner] = s.c.number
		}
	case history.ReleaseReturn:
		delete(s.c.open, e.Attempt)
	}
	w.recordLocked(e)
	return w.latest
}

// kill ends a client: from now on nothing of it reaches a master, and nothing of it is recorded.
func (c *client) kill() {
	c.w.mu.Lock()
	for _, id := range slices.Sorted(maps.Keys(c.open)) {
		c.w.recordLocked(history.Event{Type: history.Stopped, Client: c.number, Attempt: id, Note: "killed"})
	}
	c.dead = true
	stop := c.stop
	c.w.mu.Unlock()
	for _, l := range c.links {
		l.closeAll()
	}
	stop()
}
