package clients

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/internal/machine"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Members gives clients other masters while they hold locks and wait for others, as a program does that reloads its
// Configuration. A hold stays with the Locker that took it. Waiters continue with the new Locker. The old Locker is
// closed when it has no holds left. Across clients the rule of docs/operate/membership.md applies: no client gets only
// the new masters before the last Locker with only the old masters has been closed.
type Members struct {
	Open     func(ctx context.Context, client int, c Configuration) (workload.Locker, error)
	Use      func(client int, sets [][]int) (end func()) // notes the sets that a client needs majorities of
	Labelled func(ctx context.Context, f func(ctx context.Context))
	Failed   func(op string, err error)
	Ordered  bool            // no two clients may be further apart than one step
	Cut      <-chan struct{} // closed when the run is cut short

	mu      sync.Mutex
	changed chan struct{} // closed, and another one made, when a Locker was opened or closed
	clients []*member
	free    map[int]time.Time  // by generation: since when clients may have it
	setsOf  map[string][][]int // by owner: the masters of its hold
}

// Configuration is which masters a client has.
type Configuration struct {
	Generation int
	Sets       [][]int
}

// closePatience is how long a Locker may take to close.
const closePatience = 30 * time.Second

// member is a client that changes its Locker from time to time. It is a workload.Locker.
type member struct {
	all    *Members
	number int
	closes sync.WaitGroup // Lockers that are being closed

	// By all.mu: the last Locker is in use; each earlier Locker stays until it has no holds left.
	terms []*term
}

// term is the time that a client uses one Locker.
type term struct {
	Configuration
	locker   workload.Locker
	end      func()
	uses     int           // acquisitions under way, and holds
	replaced chan struct{} // closed when the client got other masters
}

// Begin opens a client with the masters that it begins with.
func (m *Members) Begin(ctx context.Context, client int, sets [][]int) (workload.Locker, error) {
	m.mu.Lock()
	if m.changed == nil {
		m.changed, m.free, m.setsOf = make(chan struct{}), make(map[int]time.Time), make(map[string][][]int)
	}
	m.mu.Unlock()
	c := &member{all: m, number: client}
	if err := c.enter(ctx, Configuration{1, sets}); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clients = append(m.clients, c)
	return c, nil
}

// Reconfigure gives clients other masters at the same time.
func (m *Members) Reconfigure(ctx context.Context, p *plan.Plan, s plan.Step) (masters.Injection, error) {
	chosen := plan.OrAll(s.Clients, p.Clients)
	errs := make([]error, len(chosen))
	var group sync.WaitGroup
	for i, c := range chosen {
		to := Configuration{p.Generation(s, c), s.Sets}
		group.Go(func() { errs[i] = m.change(ctx, c, to, p.Since(s, c)) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return masters.Injection{}, err
	}
	return masters.Injection{
		Observed: fmt.Sprintf("clients %v have a new client of the lock", chosen),
		Heal:     func(context.Context) error { return nil },
	}, nil
}

// change gives a client other masters. It waits until since has passed after the last client that
// must not overlap with the change has ended.
func (m *Members) change(ctx context.Context, client int, to Configuration, since time.Duration) error {
	m.mu.Lock()
	c := m.clients[slices.IndexFunc(m.clients, func(c *member) bool { return c.number == client })]
	for m.mustWaitLocked(c, to.Generation) {
		changed := m.changed
		m.mu.Unlock()
		select {
		case <-changed:
		case <-m.Cut:
			return errors.New("the run was cut short")
		case <-ctx.Done():
			return fmt.Errorf("client %d waited in vain for clients that hold something with older masters: %w", client,
				ctx.Err())
		}
		m.mu.Lock()
	}
	if m.free[to.Generation].IsZero() {
		m.free[to.Generation] = time.Now()
	}
	at := m.free[to.Generation].Add(since)
	m.mu.Unlock()
	if !machine.SleepUntil(ctx, at) {
		return fmt.Errorf("client %d is late: %w", client, ctx.Err())
	}
	if err := c.announce(ctx, to); err != nil {
		return err
	}
	return c.enter(ctx, to)
}

// announce tells the masters the client's new generation, if the client has only the new masters. It repeats this until
// ctx is done: a minority of the masters may be out of reach, and the machine busy.
func (c *member) announce(ctx context.Context, to Configuration) error {
	t := c.borrow()
	defer c.giveBack(t)
	a, ok := t.locker.(workload.Announcer)
	if !ok || len(to.Sets) > 1 || len(t.Sets) == 1 {
		return nil
	}
	for {
		err := a.Announce(ctx, uint64(to.Generation))
		if err == nil {
			return nil
		}
		if !machine.SleepUntil(ctx, time.Now().Add(100*time.Millisecond)) {
			return fmt.Errorf("client %d announces generation %d: %w", c.number, to.Generation, err)
		}
	}
}

func (m *Members) mustWaitLocked(c *member, generation int) bool {
	if c.terms[len(c.terms)-1].Generation != generation-1 {
		return true
	}
	return m.Ordered && slices.ContainsFunc(m.clients, func(other *member) bool {
		return other.terms[0].Generation < generation-1
	})
}

// broadcastLocked wakes who waits for a change.
func (m *Members) broadcastLocked() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// HadBy are the masters of a hold.
func (m *Members) HadBy(owner string) [][]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.setsOf[owner]
}

// enter opens the Locker of another term, and ends the term before.
func (c *member) enter(ctx context.Context, to Configuration) error {
	m := c.all
	t := &term{Configuration: to, end: m.Use(c.number, to.Sets), replaced: make(chan struct{})}
	var err error
	m.Labelled(ctx, func(ctx context.Context) { t.locker, err = m.Open(ctx, c.number, to) })
	if err != nil {
		t.end()
		return fmt.Errorf("client %d with the masters %v: %w", c.number, to.Sets, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c.terms = append(c.terms, t)
	if len(c.terms) > 1 {
		before := c.terms[len(c.terms)-2]
		close(before.replaced)
		c.endIfIdleLocked(before)
	}
	m.broadcastLocked()
	return nil
}

// endIfIdleLocked closes the Locker of a term that is over, if nothing of it is held.
func (c *member) endIfIdleLocked(t *term) {
	if t.uses > 0 || t == c.terms[len(c.terms)-1] {
		return
	}
	m := c.all
	c.closes.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closePatience)
		defer cancel()
		m.Labelled(ctx, func(ctx context.Context) {
			if err := t.locker.Close(ctx); err != nil {
				m.Failed(fmt.Sprintf("close of client %d with the masters %v", c.number, t.Sets), err)
			}
		})
		t.end()
		m.mu.Lock()
		defer m.mu.Unlock()
		c.terms = slices.DeleteFunc(c.terms, func(other *term) bool { return other == t })
		m.broadcastLocked()
	})
}

// Acquire implements workload.Locker. Who waits while the client gets other masters goes on to wait with those.
func (c *member) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	for {
		t := c.borrow()
		hold, err := t.acquire(ctx, r)
		if err == nil {
			c.took(hold.Owner(), t)
			return &memberHold{Hold: hold, member: c, term: t}, nil
		}
		c.giveBack(t)
		if ctx.Err() != nil || !t.isOver() || !errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
}

func (c *member) borrow() *term {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	t := c.terms[len(c.terms)-1]
	t.uses++
	return t
}

func (c *member) giveBack(t *term) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	t.uses--
	c.endIfIdleLocked(t)
}

func (c *member) took(owner string, t *term) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.all.setsOf[owner] = t.Sets
}

func (t *term) isOver() bool {
	select {
	case <-t.replaced:
		return true
	default:
		return false
	}
}

// acquire is the Locker's acquire, but stops waiting when the term is over.
func (t *term) acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	if r.Once {
		return t.locker.Acquire(ctx, r)
	}
	waiting, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		select {
		case <-t.replaced:
			cancel()
		case <-waiting.Done():
		}
	})
	defer group.Wait()
	defer cancel()
	return t.locker.Acquire(waiting, r)
}

// Close implements workload.Locker. It is for when nothing is held any more.
func (c *member) Close(ctx context.Context) error {
	c.closes.Wait()
	last := c.borrow()
	defer last.end()
	return last.locker.Close(ctx)
}

// memberHold is a hold that keeps its Locker open until it was given back.
type memberHold struct {
	workload.Hold
	member *member
	term   *term
	once   sync.Once
}

func (h *memberHold) Release(ctx context.Context) error {
	defer h.once.Do(func() { h.member.giveBack(h.term) })
	return h.Hold.Release(ctx)
}
