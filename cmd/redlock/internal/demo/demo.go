// Package demo shows a lock at work while its masters fail: several workers want one lock, masters are stopped and come
// back, one is replaced, and what happened is checked rather than asserted. It is what `redlock demo` runs.
//
// A [Show] is played once by Run. While it plays, Snapshot says how things stand, from any goroutine, and events are
// told one after another. The [Report] at the end lists what was expected and whether it was so.
package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock"
)

// Config says what to show. The zero value is the whole show on masters of its own.
type Config struct {
	// URLs are the masters. Default: five inside this process, which the show can stop.
	URLs []string
	// Workers is how many want the lock, from 2 to 16. Default: 5. Each has a Locker and connections of its own, as
	// if it were another process.
	Workers int
	// Key is the lock's. Default: one with a random part, so that shows on the same masters leave each other alone.
	Key string
	// Act is how long each part lasts at least; it lasts longer only if what it shows has not happened yet. The last one,
	// in which a master is replaced, has steps of half as much, and one of the locks' ttl. Default: 2 s.
	Act time.Duration
	// Hold is about how long a worker keeps the lock. Default: 70 ms.
	Hold time.Duration
	// Options are the Lockers'. Default: a request timeout of 500 ms, so that a machine which is busy with other things
	// is not taken for masters that are down.
	Options redlock.Options
}

const (
	// ttl of the lock: long against a hold, short enough that the show would notice a key left behind.
	ttl = 2 * time.Second
	// actLimit is how much longer than Config.Act an act may take to show what it is to show.
	actLimit = 5 * time.Second
	// closeLimit bounds the clean-up: what is not removed by then has lapsed.
	closeLimit = 2*ttl + time.Second
	// observeEvery is how often the observer takes and gives back a lock that nobody else wants.
	observeEvery = 20 * time.Millisecond
	// The suffixes make of Config.Key the keys that nobody but the observer wants, and that it finds held.
	freeSuffix, heldSuffix = ":free", ":held"
)

func (c Config) withDefaults() (Config, error) {
	if c.Workers == 0 {
		c.Workers = 5
	}
	if c.Workers < 2 || c.Workers > 16 {
		return c, fmt.Errorf("%d workers: must be from 2 to 16", c.Workers)
	}
	if c.Act < 0 || c.Hold < 0 {
		return c, errors.New("negative duration")
	}
	if c.Act == 0 {
		c.Act = 2 * time.Second
	}
	if c.Hold == 0 {
		c.Hold = 70 * time.Millisecond
	}
	if c.Options.RequestTimeout == 0 {
		c.Options.RequestTimeout = ttl / 4
	}
	if c.Key == "" {
		c.Key = "redlock-demo:" + strings.ToLower(rand.Text()[:6])
	}
	return c, nil
}

// Show is one run. New prepares it, Run plays it once; Snapshot may be called from any goroutine.
type Show struct {
	cfg      Config
	script   func(context.Context) // what is played
	fleet    *fleet
	workers  []*worker
	observer *observer
	resource *resource
	board    *board
	leaving  sync.WaitGroup // Lockers that are being closed, because their process has another one
	tell     func(Event)
	checks   []Check
	refusal  string
}

// New starts masters if it was given none, and prepares the workers. Nothing is asked of a master yet. A Show that was
// made must be Run, which also takes everything down.
func New(cfg Config) (*Show, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	f, err := newFleet(cfg.URLs)
	if err != nil {
		return nil, err
	}
	s := &Show{cfg: cfg, fleet: f, resource: newResource()}
	s.script = s.play
	s.board = newBoard(f.names(), cfg.Workers, s.resource)
	for i := range cfg.Workers {
		locker, err := s.dial()
		if err != nil {
			return nil, errors.Join(err, s.takeDown())
		}
		w := &worker{show: s, number: i}
		w.start(locker, oldList)
		s.workers = append(s.workers, w)
	}
	locker, err := s.dial()
	if err != nil {
		return nil, errors.Join(err, s.takeDown())
	}
	s.observer = &observer{show: s, key: cfg.Key + freeSuffix}
	s.observer.start(locker, oldList)
	return s, nil
}

func (s *Show) dial() (*redlock.Locker, error) {
	return redlock.Dial(context.Background(), s.fleet.urls, s.cfg.Options)
}

// Run plays the show and takes everything down again, also when ctx is done before the end; then the report says that it
// was interrupted. tell is called for every event, one at a time; nil tells nobody.
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
		s.say("interrupted", "interrupted: releasing what is held")
	}
	s.cleanUp(interrupted)
	return s.report(interrupted)
}

// MostMasters is how many masters a Snapshot has at most: those of the show, and the one that takes another's place.
func (s *Show) MostMasters() int {
	if s.fleet.ours() {
		return s.board.members + 1
	}
	return s.board.members
}

// Snapshot says how things stand now.
func (s *Show) Snapshot() Snapshot { return s.board.snapshot() }

// cleanUp closes every Locker, so that all keys are released, and looks on each master whether that is so. Masters that
// the show stopped come back first: a key on a stopped one can't be removed.
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
	s.check("no key left behind", len(left) == 0 && (unseen == 0 || !s.fleet.ours()), detail)
	if err := s.fleet.close(); err != nil && !interrupted {
		s.say("note", "closing: "+err.Error())
	}
}

// closeLockers closes them side by side: each may have to wait for a ttl.
func (s *Show) closeLockers(ctx context.Context) error {
	lockers := make([]*redlock.Locker, 0, len(s.workers)+1)
	for _, w := range s.workers {
		lockers = append(lockers, w.locker())
	}
	if s.observer != nil {
		lockers = append(lockers, s.observer.locker())
	}
	failures := make([]error, len(lockers))
	var wg sync.WaitGroup
	for i, l := range lockers {
		wg.Go(func() { failures[i] = l.Close(ctx) })
	}
	wg.Wait()
	return errors.Join(failures...)
}

// keys are all that the show ever locks.
func (s *Show) keys() []string {
	return []string{s.cfg.Key, s.cfg.Key + freeSuffix, s.cfg.Key + heldSuffix}
}

// keysLeft names the keys of this show that a master still has, and counts the masters that did not answer.
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

// takeDown undoes what New had done when it failed halfway.
func (s *Show) takeDown() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	return errors.Join(s.closeLockers(ctx), s.fleet.close())
}
