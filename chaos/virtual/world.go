package virtual

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/seedrun"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Result is the result of a run.
type Result struct {
	// History is what clients, masters and faults did.
	History []history.Event
	// Violations break a promise of the lock. Allowed would, if all faults were within its assumptions.
	Violations, Allowed []oracle.Violation
	Counts              Counts

	trace []line
}

// world is one run. mu guards everything; it is never held while other code runs.
type world struct {
	plan    *Schedule
	subject workload.Subject
	keys    []string
	began   time.Time
	ended   atomic.Bool // all was done and recorded
	stuck   bool        // workers did not end
	endless int         // keys without a ttl that the lock has left on a master

	mu      sync.Mutex
	agenda  agenda
	masters []*master
	clients []*client
	owners  map[string]int // which client has had an owner value
	events  []history.Event
	attempt uint64
	counts  Counts
	traced  bool
	trace   []line
	latest  int64 // the time of the latest event of the history
}

// Run performs a schedule with a subject and judges it. It returns an error if the schedule makes no sense, if the
// subject cannot be opened, or if the run does not end. Run may be called concurrently.
func Run(subject workload.Subject, s *Schedule) (*Result, error) { return run(subject, s, false) }

func run(subject workload.Subject, s *Schedule, traced bool) (*Result, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if _, ok := subject.(workload.Secured); !ok {
		return nil, fmt.Errorf("virtual: %s opens masters by their addresses, and must dial by "+
			"endpoint.Endpoint.Options here: implement workload.Secured", subject.Name())
	}
	w := newWorld(s, subject)
	w.traced = traced
	var (
		res *Result
		err error
	)
	if !seedrun.Ends(func() { res, err = w.run() }) {
		return nil, fmt.Errorf("virtual: the run of seed %d stands still. It has too much to do for a "+
			"minute, or a goroutine of %s waits for a mutex whose owner waits for the network: then virtual time "+
			"cannot move on", s.Seed, subject.Name())
	}
	return res, err
}

func newWorld(s *Schedule, subject workload.Subject) *world {
	return &world{plan: s, subject: subject, owners: make(map[string]int), keys: s.keys()}
}

func (w *world) run() (res *Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			res, err = w.left(r)
		}
	}()
	synctest.Test(new(testing.T), func(*testing.T) { err = w.play() })
	if err != nil {
		return nil, err
	}
	return w.judge()
}

// left turns the end of a bubble with goroutines in it into a violation. It returns an error for any other panic.
func (w *world) left(r any) (*Result, error) {
	text := fmt.Sprint(r)
	if !w.ended.Load() {
		return nil, fmt.Errorf("virtual: the run of seed %d ended badly: %s", w.plan.Seed, text)
	}
	res, err := w.judge()
	if err == nil {
		res.Violations = append(res.Violations, oracle.Violation{
			Oracle: oracle.NameLeak, At: w.latest,
			Text: fmt.Sprintf("a minute after its clients were closed, goroutines of %s were left: %s",
				w.subject.Name(), text),
		})
	}
	return res, err
}

// start begins the time of the run, in the bubble.
func (w *world) start() {
	w.began = time.Now()
	w.agenda = agenda{taken: make(map[int64]bool), sooner: make(chan struct{}, 1), over: make(chan struct{})}
	go w.loop()
}

// play is the run.
func (w *world) play() error {
	w.start()
	defer w.shut()
	if err := w.openMasters(); err != nil {
		return err
	}
	for n := range w.plan.Clients {
		w.newClient(n)
	}
	w.arm() // faults may meet clients that are being opened
	if err := w.openClients(); err != nil {
		return err
	}
	if !w.waits(func(c *client) {
		var workers sync.WaitGroup
		for n, sessions := range c.plan().Workers {
			workers.Go(func() { c.work(n, sessions) })
		}
		workers.Wait()
	}) {
		return nil
	}
	if rest := w.healed() - w.now(); rest > 0 {
		<-time.After(time.Duration(rest))
	}
	w.record(history.Event{Type: history.Healed, Client: history.Everyone, Master: history.Everyone})
	if !w.waits(func(c *client) { c.work(len(c.plan().Workers), []Session{w.last(c)}) }) {
		return nil
	}
	w.closeClients()
	<-time.After(w.orphanGrace() + time.Millisecond)
	w.look()
	w.ended.Store(true)
	return nil
}

// last is the session of a client after all faults: it must get a key that it asks for.
func (w *world) last(c *client) Session {
	return Session{
		Key: c.number % len(w.keys), TTL: w.plan.ttl(), Wait: 2 * (w.plan.ttl() + stray), Hold: time.Millisecond,
	}
}

// stray is how long it may take, apart from a ttl, until a free key is acquired, or a released one gone.
const stray = 3 * time.Second

// runsFor is how long a run may take. Its sessions are over long before: none waits for longer than longest.
const runsFor = 10 * 24 * time.Hour

// waits has all clients do something, and reports that they have ended.
func (w *world) waits(do func(*client)) bool {
	var clients sync.WaitGroup
	for _, c := range w.clients {
		clients.Go(func() { do(c) })
	}
	ended := make(chan struct{})
	go func() { clients.Wait(); close(ended) }()
	select {
	case <-ended:
		return true
	case <-time.After(runsFor):
		w.stuck = true
		w.ended.Store(true)
		return false
	}
}

// shut ends the connections and the masters, so that no call of the library still waits for one.
func (w *world) shut() {
	for _, c := range w.clients {
		c.stop()
		for _, l := range c.links {
			l.breakAll(true)
		}
	}
	<-time.After(time.Minute)
	close(w.agenda.over)
	for _, m := range w.masters {
		m.engine.Disconnect()
		m.engine.Close()
	}
}

func (w *world) openClients() error {
	for _, c := range w.clients {
		subject := w.subject
		if v, ok := subject.(workload.Virtual); ok {
			subject = v.InVirtualTime()
		}
		var err error
		if c.locker, err = workload.Open(context.Background(), subject, c.endpoints()); err != nil {
			return fmt.Errorf("virtual: opening client %d: %w", c.number, err)
		}
	}
	return nil
}

// address is a master's address for clients. It is no name: goroutines outside the bubble look names up.
func address(master int) string { return fmt.Sprintf("10.0.0.%d:6379", master) }

// closePatience is how long closing a client may take.
const closePatience = 10 * time.Second

func (w *world) closeClients() {
	var all sync.WaitGroup
	for _, c := range w.clients {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), closePatience)
			defer cancel()
			_ = c.locker.Close(ctx) // a client that cannot clean up leaves keys, which are judged
		})
	}
	all.Wait()
}

// now is the reference time.
func (w *world) now() int64 { return int64(time.Since(w.began)) }

// record adds an event of the harness itself.
func (w *world) record(e history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recordLocked(e)
}

// recordLocked adds an event. No two have the same time, because oracles compare times.
func (w *world) recordLocked(e history.Event) {
	w.latest = max(w.now(), w.latest+1)
	e.At = w.latest
	w.events = append(w.events, e)
}

// look records the keys that are on the masters at the end.
func (w *world) look() {
	for _, m := range w.masters {
		m.engine.Advance()
		owners := m.owners()
		for i, key := range w.keys {
			if owner := owners[i]; owner != "" {
				ttl := m.engine.TTL(key)
				w.record(history.Event{
					Type: history.KeyFound, Client: history.Everyone, Master: m.number, Key: key, Owner: owner,
					Value: int64(ttl),
				})
			}
		}
		w.endless = max(w.endless, m.engine.Endless())
	}
}

var (
	errDead    = errors.New("virtual: the client was killed")
	errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	errReset   = &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}
)
