package redlock

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/single"
)

// Generations stop a forgotten process from taking locks with an old list of masters. Old and new sets need not share
// a quorum. So a process that has missed both steps of an exchange could hold a lock at the same time as a process
// that has made both. Therefore masters keep the greatest generation that they have received. A Locker takes and
// extends locks only under two conditions. It has asked a quorum of each of its sets for the generation, at most
// freshFor ago, and no answer was two or more ahead.
//
// Why that is enough: let a quorum of the old set have received n+2 by the time T ([Locker.Announce]). After T, every
// question of a Locker with generation n to a quorum of that set reaches one of these masters, and the Locker learns
// the new generation. So it asked for its last good answer before T, and its last round that takes or extends a lock
// begins before T+freshFor. Its locks are over after the longest ttl has passed as well. Clocks matter only because
// the Locker measures freshFor by its own clock: the drift allowance applies.
//
// These failures are possible:
//
//   - An answer comes late. It describes the time when the master gave it, which is after the question. So freshness
//     counts from before the first byte was sent.
//   - The process stops after it has found its configuration current and before it sends the round. So the validity
//     of such a round counts from the clock reading of that check.
//   - A master does not return from a call. It is no more waited for than in a round, and the next question does not
//     wait for the end of the last one.
//   - A master restarts without its data. It has forgotten the generation too, until a process that asks it tells it
//     again. If the new set does not contain this master, it is unknown which process does that and when. The restart
//     guard does not help, since locks end and a forgotten process does not. So while an old process may still run,
//     no master of the quorum that received the generation may come back empty.

const (
	// freshFor is how long an answer holds. After askAgain the Locker asks again, so that a Locker in use does not
	// wait for the answer.
	freshFor = 10 * time.Second
	askAgain = 5 * time.Second
)

// currency holds a Locker's knowledge about the generation of its configuration.
type currency struct {
	complaints complaints // that announcements met

	mu     sync.Mutex
	fresh  time.Duration // until when the last answer holds, by the Locker's clock; 0: none came
	err    error         // the configuration is out of date; stays set
	asking *announcement // the latest; nil if there was none
}

// announcement sends a generation to every master, and receives the greatest generation that each master knows.
type announcement struct {
	locker  *Locker
	request single.Request
	start   time.Duration // the clock before the first byte was sent
	sent    time.Time

	mu       sync.Mutex
	calls    []lane.Call
	votes    tally         // a master that has answered has granted
	greatest uint64        // that any master knows
	name     string        // of that one
	settled  bool          // a quorum of every set has answered, or none can any more
	decided  chan struct{} // closed then
}

// isCurrent reports that the Locker may take and extend locks now. If that is unknown, it asks the masters in the
// background. A round that relies on the answer counts from asOf.
func (l *Locker) isCurrent() (asOf time.Duration, current bool) {
	if l.opts.Generation == 0 {
		return math.MaxInt64, true
	}
	now := l.clock.Now()
	fresh, _, err := l.askCurrent(now)
	return now, fresh && err == nil
}

// awaitCurrent waits until the Locker knows that it may take and extend locks. It waits no longer than for one
// request, and no longer than until closing is closed; closing may be nil. A round that relies on the answer counts
// from asOf. If sent is zero because nothing was sent before, awaitCurrent sets it to the time of the first request.
func (l *Locker) awaitCurrent(ctx context.Context, timeout time.Duration, sent *time.Time,
	closing <-chan struct{},
) (asOf time.Duration, err error) {
	if l.opts.Generation == 0 {
		return math.MaxInt64, nil
	}
	now := l.clock.Now()
	fresh, a, err := l.askCurrent(now)
	if fresh || err != nil {
		return now, err
	}
	if sent.IsZero() {
		*sent = a.sent
	}
	if err := l.await(ctx, a, timeout, closing); err != nil {
		return 0, fmt.Errorf("redlock: asking masters for their generation: %w", err)
	}
	now = l.clock.Now()
	if fresh, err = l.current.state(now); fresh || err != nil {
		return now, err
	}
	err = a.failure(*sent)
	l.reached(nil, err, a.start)
	return 0, err
}

// state reports whether the last answer still holds, and returns the error of the configuration.
func (c *currency) state(now time.Duration) (fresh bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && now < c.fresh, c.err
}

// outdated returns the known error of the configuration, or nil.
func (c *currency) outdated() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// askCurrent reports whether the last answer still holds. It returns the next question if that is under way or due.
func (l *Locker) askCurrent(now time.Duration) (fresh bool, asking *announcement, err error) {
	c := &l.current
	c.mu.Lock()
	fresh = c.err == nil && now < c.fresh
	if c.err != nil || c.fresh > 0 && now < c.fresh-freshFor+askAgain || c.asking != nil && !c.asking.over(now) {
		defer c.mu.Unlock()
		return fresh, c.asking, c.err
	}
	a := l.newAnnouncement(l.opts.Generation)
	c.asking = a
	c.mu.Unlock()
	a.send()
	return fresh, a, nil
}

// over reports that the announcement is decided, or will not be in time: masters that have not answered are not waited
// for.
func (a *announcement) over(now time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.settled || now >= later(a.start, a.locker.announceTimeout())
}

// await waits until the announcement is decided.
func (l *Locker) await(ctx context.Context, a *announcement, timeout time.Duration, closing <-chan struct{}) error {
	late := make(chan struct{})
	defer l.clock.AfterFunc(timeout, func() { close(late) }).Stop()
	select {
	case <-a.decided:
		return nil
	case <-late:
		return nil // undecided counts as failed
	case <-closing:
		return ErrClosed
	case <-ctx.Done():
		return ended(ctx)
	}
}

// Announce tells the masters that a configuration of this generation is in use, or soon will be. It returns nil once
// a quorum keeps the number, with [NewJoint] a quorum of each set. Lockers whose [Options].Generation is two or
// more behind then take no locks. Announce before the last step of an exchange of masters ([NewJoint]): a
// process that still has the old set then learns from it that its configuration is out of date.
//
// A Locker with a generation can't announce a number that is two or more ahead of it, since that would stop the
// Locker itself.
//
// A Locker that is two ahead takes locks at once, even before the announcement, and Lockers behind it may hold locks
// at the same time. Start it only after the announcement and a wait: an earlier answer holds for ten seconds, and a
// lock for its ttl.
//
// The error matches [ErrInvalid], [ErrNoQuorum] (and [ErrMisconfigured] where asking again can't help), [ErrOutdated]
// if a master knows a greater generation, [ErrClosed], or ctx's error. Some masters may have the number then.
// Announce takes at most a second, or [Options].RequestTimeout.
func (l *Locker) Announce(ctx context.Context, generation uint64) error {
	if err := l.check(); err != nil {
		return err
	}
	switch {
	case ctx == nil:
		return invalid("nil context")
	case generation == 0 || generation > single.MaxToken:
		return invalid("generation %d, and it must be from 1 to %d", generation, uint64(single.MaxToken))
	case l.opts.Generation > 0 && generation > l.opts.Generation+1:
		return invalid("generation %d is two or more ahead of this Locker's, %d: it would stop everybody who has "+
			"that one", generation, l.opts.Generation)
	case l.isClosing():
		return ErrClosed
	}
	a := l.newAnnouncement(generation)
	a.send()
	if err := l.await(ctx, a, l.announceTimeout(), l.closing); err != nil {
		return fmt.Errorf("redlock: announce generation %d: %w", generation, err)
	}
	a.mu.Lock()
	won, greatest, name := a.wonLocked(), a.greatest, a.name
	a.mu.Unlock()
	switch {
	case greatest > generation:
		return outdated(name, greatest, generation)
	case !won:
		return a.failure(a.sent)
	}
	return nil
}

// isClosing reports that Close has begun.
func (l *Locker) isClosing() bool {
	select {
	case <-l.closing:
		return true
	default:
		return false
	}
}

func (l *Locker) announceTimeout() time.Duration {
	return l.opts.requestTimeout(maxRequestTimeout * timeoutShare)
}

func outdated(master string, known, own uint64) error {
	return fmt.Errorf("%w: generation %d is in use, says %s, and this is generation %d", ErrOutdated, known, master,
		own)
}

// newAnnouncement prepares an announcement, and makes Close wait for it.
func (l *Locker) newAnnouncement(generation uint64) *announcement {
	l.busy.Add(1)
	a := &announcement{
		locker:  l,
		request: single.Request{Op: single.Announce, Keys: []string{single.GenerationKey}, Token: generation},
		start:   l.clock.Now(),
		sent:    time.Now(),
		calls:   make([]lane.Call, len(l.lanes)),
		decided: make(chan struct{}),
	}
	for _, p := range l.preparers {
		p.Prepare(&a.request)
	}
	deadline := a.sent.Add(l.announceTimeout())
	for i := range a.calls {
		c := &a.calls[i]
		c.Request, c.Index, c.To, c.Deadline = &a.request, i, a, deadline
	}
	return a
}

func (a *announcement) send() {
	for i := range a.calls {
		a.locker.lanes[i].Send(&a.calls[i])
	}
}

// Ended implements [lane.Receiver].
func (a *announcement) Ended(c *lane.Call) {
	l := a.locker
	l.current.complaints.note(l, c, l.announceTimeout()) // before it counts: whoever is told of the decision looks
	a.mu.Lock()
	if c.Err != nil {
		a.votes.add(c.Index, Unknown)
	} else if a.votes.add(c.Index, Granted); c.Reply.Token > a.greatest {
		a.greatest, a.name = c.Reply.Token, l.names[c.Index]
	}
	wins, last := a.wonLocked(), a.endedLocked() == everyMaster>>(maxMasters-len(a.calls))
	decides := !a.settled && l.sets.acquired(&a.votes) != open
	a.settled = a.settled || decides
	own := a.request.Token
	greatest, name := a.greatest, a.name
	a.mu.Unlock()
	if c.Err == nil && own == l.opts.Generation {
		l.learn(a.start, wins, greatest, name)
	}
	if decides {
		close(a.decided)
	}
	if last {
		l.notBusy()
	}
}

// wonLocked reports that a quorum of every set has answered.
func (a *announcement) wonLocked() bool { return a.locker.sets.majority(a.votes.granted) }

// endedLocked returns a bit for each master that has answered or failed.
func (a *announcement) endedLocked() uint64 { return a.votes.granted | a.votes.unknown }

// learn records the answers of masters that were asked at start. wins reports that a quorum answered.
func (l *Locker) learn(start time.Duration, wins bool, greatest uint64, name string) {
	c := &l.current
	c.mu.Lock()
	defer c.mu.Unlock()
	switch own := l.opts.Generation; {
	case c.err != nil:
	case greatest > own+1:
		c.err = outdated(name, greatest, own)
	case wins:
		c.fresh = max(c.fresh, later(start, freshFor))
	}
}
