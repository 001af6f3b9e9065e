// Package demo shows a lock at work while its masters fail. Several workers want one lock. Masters are stopped and come
// back, and one is replaced. The show checks the results instead of asserting them. `redlock demo` runs it.
//
// Run plays a [Show] once. During the play any goroutine may call Snapshot for the current state, and events arrive one
// after another. The [Report] at the end lists each expectation and whether it was met.
package demo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock"
)

// Config has the settings of a show. The zero value is the whole show on masters that it starts.
type Config struct {
	URLs []string // the masters; default: five inside this process, which the show can stop
	// Workers is the number of workers that want the lock, from 2 to 16. Default: 5. Each has a separate Locker and
	// separate connections, like a separate process.
	Workers int
	// Act is the least duration of each part. A part lasts longer only if it has not shown its point yet. The last part
	// replaces a master. Its steps take half of Act, except one, which takes the locks' ttl. Default: 2 s.
	Act  time.Duration
	Hold time.Duration // about how long a worker keeps the lock; default: 70 ms
}

// options let masters on a busy machine not count as down.
var options = redlock.Options{RequestTimeout: ttl / 4}

const (
	// ttl is the lock's ttl: long compared with a hold, and so short that the show would notice a key left behind.
	ttl = 2 * time.Second
	// actLimit is how much longer than Config.Act an act may take to show its point.
	actLimit = 5 * time.Second
	// closeLimit limits the clean-up. Keys that are not removed by then have expired.
	closeLimit = 2*ttl + time.Second
	// observeEvery is the interval at which the observer takes and releases a lock that no one else wants.
	observeEvery = 20 * time.Millisecond
	// With these suffixes the lock's key becomes the observer's keys: one that no one else wants, and one that it finds
	// held.
	freeSuffix, heldSuffix = ":free", ":held"
)

func (c Config) withDefaults() (Config, error) {
	c.Workers, c.Act, c.Hold = cmp.Or(c.Workers, 5), cmp.Or(c.Act, 2*time.Second), cmp.Or(c.Hold, 70*time.Millisecond)
	if c.Workers < 2 || c.Workers > 16 {
		return c, fmt.Errorf("%d workers: must be from 2 to 16", c.Workers)
	}
	if c.Act < 0 || c.Hold < 0 {
		return c, errors.New("negative duration")
	}
	return c, nil
}

// Show is one run. New prepares it, Run plays it once; Snapshot may be called from any goroutine.
type Show struct {
	cfg      Config
	key      string                // with a random part, so that shows on the same masters do not interfere
	script   func(context.Context) // the acts
	fleet    *fleet
	workers  []*worker
	observer *observer
	resource *resource
	board    *board
	leaving  sync.WaitGroup // Lockers that close because their process has a new one
	tell     func(Event)
	checks   []Check
	refusal  string
}

// New starts masters unless the configuration has some, and prepares the workers. It sends no request to a master. The
// caller must call Run, which also ends everything.
func New(cfg Config) (*Show, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	f, err := newFleet(cfg.URLs)
	if err != nil {
		return nil, err
	}
	s := &Show{
		cfg: cfg, key: "redlock-demo:" + strings.ToLower(rand.Text()[:6]), fleet: f, resource: newResource(),
	}
	s.script = s.play
	s.board = newBoard(f.names(), cfg.Workers, s.resource)
	for i := range cfg.Workers {
		s.workers = append(s.workers, &worker{show: s, number: i})
	}
	s.observer = &observer{show: s, key: s.key + freeSuffix}
	for _, p := range s.processes() {
		locker, err := redlock.Dial(context.Background(), s.fleet.urls, options)
		if err != nil {
			return nil, errors.Join(err, s.takeDown())
		}
		p.start(locker, oldList)
	}
	return s, nil
}

func (s *Show) processes() (all []*process) {
	for _, w := range s.workers {
		all = append(all, &w.process)
	}
	return append(all, &s.observer.process)
}

// Run plays the show and ends everything that it started, even if ctx is done early; then the report says that it was
// interrupted. Run calls tell for every event, one at a time; tell may be nil.
func (s *Show) Run(ctx context.Context, tell func(Event)) Report {
	s.board.begin()
	s.tell = s.board.teller(tell)
	playing, stop := context.WithCancel(ctx)
	defer stop()
	var actors sync.WaitGroup
	actors.Go(func() { s.progress(playing) })
	if !s.fleet.ours() {
		actors.Go(func() { s.watchMasters(playing) })
	}
	for _, w := range s.workers {
		actors.Go(func() { w.work(playing) })
	}
	actors.Go(func() { s.observer.work(playing) })

	s.script(playing)
	interrupted := ctx.Err() != nil
	stop()
	actors.Wait()
	if interrupted {
		s.say("interrupted", "interrupted: releasing the locks")
	}
	s.cleanUp(interrupted)
	return s.report(interrupted)
}

// MostMasters is the greatest number of masters in a Snapshot: the masters of the show, and a replacement.
func (s *Show) MostMasters() int {
	if s.fleet.ours() {
		return s.board.members + 1
	}
	return s.board.members
}

// Snapshot returns the present state.
func (s *Show) Snapshot() Snapshot { return s.board.snapshot() }

// cleanUp closes every Locker, which releases all keys, and checks this on each master. It first restarts masters that
// the show stopped, because a key on a stopped master can't be removed.
func (s *Show) cleanUp(interrupted bool) {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if s.fleet.anyStopped() {
		s.say("master", "the stopped masters come back, to see that no key is left on them")
	}
	if err := s.fleet.restart(); err != nil {
		s.check("masters came back for the clean-up", false, err.Error())
	}
	s.board.allUp()
	closed := s.closeLockers(ctx)
	s.leaving.Wait() // no longer than closeLimit
	s.fleet.sweep(context.WithoutCancel(ctx), s.keys())
	left, unseen := s.keysLeft(context.WithoutCancel(ctx))
	detail := fmt.Sprintf("looked on %d of %d masters", len(s.fleet.urls)-unseen, len(s.fleet.urls))
	if closed != nil {
		detail += "; " + closed.Error()
	}
	if len(left) > 0 {
		detail += "; left: " + strings.Join(left, ", ")
	}
	mayMiss := 0
	if !s.fleet.ours() { // then a quorum's word has to do
		mayMiss = (len(s.fleet.urls) - 1) / 2
	}
	s.check("no key left behind", len(left) == 0 && unseen <= mayMiss, detail)
	if err := s.fleet.close(); err != nil && !interrupted {
		s.say("note", "closing: %v", err)
	}
}

// closeLockers closes the Lockers in parallel, because each may have to wait for a ttl.
func (s *Show) closeLockers(ctx context.Context) error {
	failures := make([]error, len(s.workers)+1)
	var wg sync.WaitGroup
	for i, p := range s.processes() {
		if m := p.current.Load(); m != nil { // else New has failed before
			wg.Go(func() { failures[i] = m.locker.Close(ctx) })
		}
	}
	wg.Wait()
	return errors.Join(failures...)
}

func (s *Show) keys() []string {
	return []string{s.key, s.key + freeSuffix, s.key + heldSuffix}
}

// keysLeft lists the show's keys that a master still has, and counts the masters that did not answer.
func (s *Show) keysLeft(ctx context.Context) (left []string, unseen int) {
	for i, name := range s.board.addrs {
		for _, key := range s.keys() {
			held, err := s.fleet.holds(ctx, i, key)
			if err != nil {
				unseen++
				break
			}
			if held {
				left = append(left, key+" on "+name)
			}
		}
	}
	return left, unseen
}

// takeDown ends everything that New had started when it failed halfway.
func (s *Show) takeDown() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	return errors.Join(s.closeLockers(ctx), s.fleet.close())
}
