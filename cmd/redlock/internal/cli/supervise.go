package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
)

const (
	// looks is how often during a ttl the supervisor checks its lock, at least.
	looks = 6
	// extend ignores changes of the bound below ttl / boundSlack. usedUp is that imprecise.
	boundSlack = 50
	// killAgain is the interval between kills of a command that does not end.
	killAgain = time.Second
	// watchesAtMost is how many times a watch is restarted.
	watchesAtMost = 10
	// stuckAfter is the number of kills after which a command counts as running on.
	stuckAfter = 3
)

// process has the methods of [child.Process]; its signals reach the whole group.
type process interface {
	Begin(deadline time.Duration) error
	Done() <-chan struct{}
	Gone() <-chan struct{}
	Stopped() <-chan os.Signal
	Status() child.Status
	Group() int
	Left(atMost int) (names []string, n int)
	Signal(sig os.Signal) error
	SignalOutside(sig os.Signal) error
	Terminate() error
	Kill() error
	HasTerminal() bool
	GiveTerminal() bool
	TakeTerminal() bool
	RestoreTerminal()
	Suspend(all bool) error
}

// supervisor ends a command before its lock ends. Package child describes the other processes. After every event, look
// compares the clock with the lock. It sends a signal first and prints the message afterwards.
type supervisor struct {
	what                string // names the lock: "the lock on …"
	lock                *redlock.Lock
	ttl, grace, maxHold time.Duration
	process             process
	watch               *child.Watch
	orphanGrace         time.Duration // of the command, when this program is gone
	signals             chan os.Signal
	log                 *journal
	renewals            *renewals // why they fail

	usedUp  time.Duration // when -max-hold is over, about; by child.Now, like the times below
	bound   time.Duration // the known end of the lock's validity
	lost    error         // the reason to end the command; nil: none
	killAt  time.Duration // time of the next kill
	kills   int
	refused error // why a kill reached no process
	watches int   // how many were restarted
	job
	left
	interrupts
	fromKeyboard func() bool // reports whether a SIGINT may be

	received os.Signal // would have ended this program; passed on
	keyboard bool      // the command had the terminal when it ended
}

// guard returns when the command has ended, and with it all processes that it waits for.
func (s *supervisor) guard() {
	signal.Notify(s.signals, child.Forwarded()...)
	over, done, gone := s.lock.Done(), s.process.Done(), s.process.Gone()
	s.look()
	if err := s.process.Begin(s.bound); err != nil && s.lost == nil { // the process has ended already
		s.say(eventLost, "the command can't begin: %v", err)
	}
	timer := time.NewTimer(s.pause())
	defer timer.Stop()
	for {
		select {
		case <-done:
			done = nil
			s.commandEnded()
		case <-gone:
		case sig := <-s.signals:
			s.pass(sig)
		case sig := <-s.process.Stopped():
			s.stopped(sig)
		case <-s.watch.Ended():
			s.watchAgain()
		case <-over:
			over = nil
		case <-timer.C:
		}
		if isClosed(gone) || s.left.since && s.leaderOnly {
			break
		}
		s.settle()
		timer.Reset(s.pause())
	}
	if !s.left.since { // both at once
		s.commandEnded()
	}
	s.ended()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// settle does everything that is due after an event.
func (s *supervisor) settle() {
	s.look()
	s.nudge()
	s.tellOfLeft()
}

// ended runs when there is nothing left to wait for.
func (s *supervisor) ended() {
	if s.lost != nil { // the command's processes run without a lock
		if s.kills == 0 && s.process.Status().Signal == int(syscall.SIGKILL) {
			s.say(eventKilling, "the command was killed") // by the watch, which has the same bound
		}
		s.refused = cmp.Or(s.process.Kill(), s.refused)
	}
	s.watch.Dismiss()
	if s.process.Status().Signal != 0 {
		s.process.RestoreTerminal()
	}
}

func (s *supervisor) look() {
	now := child.Now() // read before the lock is checked, so the bound can only be too early
	err := s.lock.Err()
	if err == nil && s.lost == nil {
		s.extend(now + s.lock.Remaining())
	}
	// This program may have been stopped during the check, and stop would continue a stopped command.
	now = child.Now()
	switch {
	case s.lost != nil && now >= s.killAt:
		s.kill()
	case s.lost != nil:
	case now >= s.bound: // there is no time left for the command to end by itself
		s.lost = cmp.Or(err, redlock.ErrNotHeld)
		s.kill()
		why := s.renewals.why()
		if errors.Is(s.lost, redlock.ErrOutdated) { // which is said
			why = ""
		}
		s.say(eventLost, "%s has ended: %v%s", s.what, bare{s.lost}, why)
	case err != nil: // lost at once, for example deleted
		s.stop(err, min(now+s.grace, s.bound))
	case s.bound-now <= s.grace:
		s.stop(s.ending(now), s.bound)
	}
}

// extend notes that the lock is valid for longer. The clocks of two processes may differ a little.
func (s *supervisor) extend(bound time.Duration) {
	if bound-s.bound < s.ttl/100 {
		return
	}
	s.bound = bound
	s.tellWatch()
}

func (s *supervisor) tellWatch() {
	s.watch.Tell(child.Order{Group: s.process.Group(), Deadline: s.bound, Grace: s.orphanGrace, Mark: mark(s.lock)})
}

// watchAgain replaces a watch that was killed. A watch that has ended by itself has killed the command.
func (s *supervisor) watchAgain() {
	if s.watch.Worked() {
		s.watch = &child.Watch{}
		if s.look(); s.lost == nil {
			s.say(eventWatch, "the process that watches over this one did not hear in time that %s is valid for "+
				"longer, and has killed the command", s.what)
		}
		return
	}
	watch, err := child.StartWatch()
	if s.watches++; err != nil || s.watches > watchesAtMost {
		s.say(eventWatch, "the process that watches over this one is gone, and there is no new one: %v",
			cmp.Or(err, errors.New("they all end at once")))
		s.watch = &child.Watch{}
		return
	}
	s.watch = watch
	s.tellWatch()
	s.say(eventWatch, "the process that watches over this one was killed; there is a new one")
}

// pause returns how long there is nothing to do.
func (s *supervisor) pause() time.Duration {
	next := s.bound - s.grace
	if s.lost != nil {
		next = s.killAt
	}
	if at, ok := s.job.next(); ok {
		next = min(next, at)
	}
	if s.left.tellAt > 0 {
		next = min(next, s.left.tellAt)
	}
	return max(0, min(next-child.Now(), s.ttl/looks))
}

// usedUp returns when a lock with this first bound has been held for maxHold, counted from the beginning of its
// acquisition. That beginning is a validity before the first bound, unless maxHold limits the first bound.
func usedUp(first, ttl, maxHold time.Duration) time.Duration {
	validity := ttl - time.Duration(float64(ttl)*redlock.DefaultDriftFactor)
	return first + min(max(0, maxHold-validity), math.MaxInt64-first)
}

// ending explains why so little time is left: -max-hold, if it ends the validity, or failed renewals.
func (s *supervisor) ending(now time.Duration) error {
	why := "it was not renewed" + s.renewals.why()
	if s.maxHold > 0 && s.bound >= s.usedUp-s.ttl/boundSlack {
		why = fmt.Sprintf("it may be held for %v (-max-hold)", s.maxHold)
	}
	return fmt.Errorf("%s, and ends in %v", why, (s.bound - now).Round(time.Millisecond))
}

// stop sends the command the signal to end, and sets the time of the kill.
func (s *supervisor) stop(why error, killAt time.Duration) {
	err := s.process.Terminate()
	s.lost, s.killAt = why, killAt
	s.say(eventLosing, "losing %s: %v; stopping the command", s.what, bare{why})
	if err != nil {
		s.say(eventLosing, "it does not hear: %v", err)
	}
}

// kill kills the command, and again until it has ended.
func (s *supervisor) kill() {
	err := s.process.Kill()
	s.kills++
	s.killAt = child.Now() + killAgain // to kill takes its time on a busy machine
	switch {
	case err != nil && s.refused == nil:
		s.say(eventRunsOn, "can't kill the command: %v; it RUNS ON WITHOUT %s; trying again", err, s.what)
	case s.kills == 1:
		s.say(eventKilling, "killing the command")
	case s.kills == stuckAfter && s.refused == nil:
		s.say(eventRunsOn, "the command was killed and has not ended: it RUNS ON WITHOUT %s; trying again", s.what)
	}
	s.refused = cmp.Or(s.refused, err)
}

// outcome returns the error for the end of the command and its lock; released is the result of the release.
func (s *supervisor) outcome(released error) error {
	ended := s.process.Status()
	switch {
	case s.refused != nil || s.kills >= stuckAfter:
		why := cmp.Or(s.refused, fmt.Errorf("killed %d times", s.kills))
		return exit(statusRanOn, "%s was lost, and the command RAN ON WITHOUT IT: %w", s.what, why)
	case s.lost != nil && s.log.quiet:
		return exit(statusLost, "%s was lost while the command ran: %w", s.what, bare{s.lost})
	case s.lost != nil: // the note has said why
		return exit(statusLost, "%s was lost while the command ran", s.what)
	case isNotHeld(released):
		return exit(statusLost, "%s was lost before the command had ended: %w", s.what, bare{released})
	case ended.Signal != 0:
		return s.diedOf(syscall.Signal(ended.Signal))
	default:
		return silently(ended.Code) // too few confirmations do not concern the command
	}
}

// diedOf makes this program die of the same signal as its command, if this program got the signal too. It also does so
// if this program would have got the signal: from a key of a terminal that the command had to itself.
func (s *supervisor) diedOf(sig syscall.Signal) error {
	e := &statusError{status: statusSignal + int(sig)}
	switch {
	case s.received == os.Signal(sig):
		e.signal = sig
	case s.interruptedBy(sig): // a script around this one must stop as at the first Ctrl-C
		e.status, e.signal = statusSignal+int(syscall.SIGINT), syscall.SIGINT
	case s.keyboard && (sig == syscall.SIGINT || sig == syscall.SIGQUIT):
		e.signal, e.group = sig, true
	}
	return e
}

func (s *supervisor) say(event, format string, args ...any) {
	s.log.say(entry{Event: event}, format, args...)
}

// also returns err with the other error on the same line.
func also(err, other error) error {
	if other == nil {
		return err
	}
	return fmt.Errorf("%w; %w", err, other)
}
