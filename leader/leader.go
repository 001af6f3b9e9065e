// Package leader elects leaders. An [Election] is a lock whose holder leads. A [Candidate] takes part in one, and adds
// two things: followers can observe who leads, and a leader can report its health.
//
//	candidate, err := leader.New(locker, leader.Config{Key: "leader", TTL: 10 * time.Second, Value: "10.0.0.1:8080"})
//	…
//	go candidate.Run(ctx, lead)
//	http.Handle("/healthz", candidate)
//	for term, err := range candidate.Observe(ctx, 0) {
//		…
//	}
//
// The value that takes the election's key on the masters contains the leader's value, such as its address, and the
// fencing token of its term ([redlock.Published]). Both appear on a quorum with the election and disappear with the
// key. No leader can overwrite another's value, and no write of it can be late or lost.
package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock"
)

// Config configures a Candidate.
type Config struct {
	// Key is the election's key. All candidates and observers use the same one.
	Key string
	// TTL is how long the others wait after a leader has died; see [NewElection].
	TTL time.Duration
	// Value is the value that observers see while this candidate leads; see [redlock.Published]. It may be empty.
	Value string
	// Tolerance is how long a fault may last before [Candidate.Healthy] reports it. Default: TTL.
	Tolerance time.Duration
	// Options are the options of the election.
	Options []redlock.Option
}

// Candidate takes part in one election and knows its own state. It is safe for concurrent use and need not be closed.
type Candidate struct {
	election  *Election
	key       string
	tolerance time.Duration
	suspect   chan struct{}        // has an element when a look found no leader
	term      atomic.Pointer[Term] // while the candidate leads it

	mu      sync.Mutex
	began   bool // Run was called
	running bool
	ended   error     // error of the last Run
	over    time.Time // when the candidate learned that the term it still leads is over
	vacant  vacancy
}

// New returns a candidate. It sends nothing yet. The error matches [redlock.ErrInvalid].
func New(locker *redlock.Locker, cfg Config) (*Candidate, error) {
	if cfg.Tolerance < 0 {
		return nil, fmt.Errorf("%w: leader.Config.Tolerance is negative: %v", redlock.ErrInvalid, cfg.Tolerance)
	}
	opts := append([]redlock.Option{redlock.Published(cfg.Value)}, cfg.Options...)
	election, err := NewElection(locker, cfg.Key, cfg.TTL, opts...)
	if err != nil {
		return nil, err
	}
	if cfg.Tolerance == 0 {
		cfg.Tolerance = cfg.TTL
	}
	return &Candidate{election: election, key: cfg.Key, tolerance: cfg.Tolerance, suspect: make(chan struct{}, 1)}, nil
}

// ErrRunning is Run's error while another Run of the same Candidate has not returned.
var ErrRunning = errors.New("leader: the candidate is running already")

// Run is [Election.Run]: it campaigns and calls lead when elected, until ctx is done. One Run at a time.
func (c *Candidate) Run(ctx context.Context,
	lead func(ctx context.Context, term *Term) error,
) (err error) {
	if lead == nil {
		return errNoFunction
	}
	if ctx == nil {
		return errNoContext
	}
	if err := c.begin(); err != nil {
		return err
	}
	err = errPanicked
	defer func() { c.end(err) }()
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { c.watch(watching) })
	defer watch.Wait()
	defer stop()
	err = c.election.Run(ctx, func(ctx context.Context, term *Term) error {
		c.leads(term)
		defer c.leads(nil) // before Run resigns
		return lead(ctx, term)
	})
	return err
}

var errPanicked = errors.New("leader: the function that leads has panicked")

func (c *Candidate) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running {
		return ErrRunning
	}
	c.began, c.running, c.vacant = true, true, vacancy{}
	return nil
}

func (c *Candidate) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running, c.ended = false, err
}

// leads notes the term that the candidate leads from now on; nil: none.
func (c *Candidate) leads(term *Term) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.term.Store(term)
	c.over, c.vacant = time.Time{}, vacancy{}
}

// IsLeader reports whether this candidate leads now: its term is valid and lead has not returned. It asks no master. It
// compares the clock with the end of the term, so it notices an end at once. The answer may be out of date when the
// caller acts on it: work that two leaders must not do needs the token of [Candidate.Term].
func (c *Candidate) IsLeader() bool { return c.term.Load().Err() == nil }

// Term returns the term that this candidate leads. If it leads none, the result is a term that is over, never nil.
// Keep the result for work that begins under it: its token stays the same when another term has begun.
func (c *Candidate) Term() *Term {
	if term := c.term.Load(); term != nil {
		return term
	}
	return new(Term)
}
