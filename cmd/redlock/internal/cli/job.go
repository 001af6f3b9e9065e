package cli

import (
	"os"
	"os/signal"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
)

const (
	// wakeAfter is when this program, having asked to be stopped, finds that it was not: nobody is there to continue it.
	wakeAfter = 500 * time.Millisecond
	// inVainAtMost is how often a command that wants a terminal it can't have is continued before it is hung up on.
	inVainAtMost = 3
	// nudges is how often a command that was given the terminal is continued: one of its processes may stop itself a
	// moment after the kernel has stopped the others, which nobody tells of.
	nudges = 2
	// nudgeAfter is how long after each other, and ten times that.
	nudgeAfter = 100 * time.Millisecond
)

// job is what is known of the stops of a command. All moments are by child.Now.
type job struct {
	askedToStop bool          // by a signal to this program
	halted      os.Signal     // what stopped the command; nil while it runs
	wakeAt      time.Duration // 0 unless this program has asked to be stopped
	inVain      int           // how often it was not
	hadTerminal bool          // the command, when it was stopped
	nudges      int
	nudgeAt     time.Duration
}

// next is when something is to be done.
func (j *job) next() (time.Duration, bool) {
	switch {
	case j.wakeAt > 0:
		return j.wakeAt, true
	case j.nudges > 0:
		return j.nudgeAt, true
	}
	return 0, false
}

// pass passes a signal on to the command.
func (s *supervisor) pass(sig os.Signal) {
	switch {
	case sig == child.Continue:
		s.inVain = 0
		s.resume()
	case sig != child.Stop:
		if sig == os.Interrupt {
			s.interrupt()
		} else {
			_ = s.process.Signal(sig) // whom it does not reach, it does not end; look ends it
		}
		if child.Ends(sig) {
			s.received = sig
			s.resume() // one that is stopped would not hear of it
		}
	case s.halted != nil, s.left.since && s.wakeAt == 0: // nobody tells that all it has left have stopped
		s.askedToStop = true
		s.suspend()
	case s.wakeAt == 0:
		s.askedToStop = true
		_ = s.process.Signal(sig) // a command that does not stop has a reason, and its lock is renewed
	}
}

// stopped decides what becomes of a command that was stopped.
func (s *supervisor) stopped(sig os.Signal) {
	s.halted, s.nudges = sig, 0
	switch {
	case s.lost != nil: // it is to end
		s.resume()
	case s.wakeAt > 0: // by Suspend itself
	case child.WantsTerminal(sig) && s.process.GiveTerminal():
		s.resume()
		s.nudges, s.nudgeAt = nudges, child.Now()+nudgeAfter
	case s.askedToStop || s.process.HasTerminal():
		s.suspend()
	} // otherwise whoever stopped it continues it; its lock is renewed meanwhile
}

// suspend stops this program after its command, as a shell expects it.
func (s *supervisor) suspend() {
	s.hadTerminal = s.process.TakeTerminal()
	_ = s.process.Suspend(!s.askedToStop) // whom it does not stop goes on under a lock that watch knows the end of
	s.wakeAt = child.Now() + wakeAfter
}

// resume continues the command, if its lock is still held; otherwise it must not run another instruction. That is asked
// whether or not a stop has been heard of yet: after a pause of all processes, the signal to go on may be read first.
func (s *supervisor) resume() {
	halted := s.halted
	s.halted, s.askedToStop, s.wakeAt = nil, false, 0
	signal.Notify(s.signals, child.Forwarded()...) // Suspend has taken some away
	if err := s.lock.Err(); halted != nil && s.lost == nil && err != nil {
		s.lost = err
		s.kill()
		s.say(eventLost, "%s was lost while the command was stopped: %v", s.what, bare{err})
	} else {
		s.look()
	}
	if s.kills > 0 {
		return
	}
	if s.hadTerminal {
		s.hadTerminal = false
		s.process.GiveTerminal()
	}
	_ = s.process.Signal(child.Continue) // one that does not hear it is stopped, and harms nobody
}

// nudge does what is due for a command that may be stopped.
func (s *supervisor) nudge() {
	now := child.Now()
	if at, ok := s.job.next(); !ok || now < at {
		return
	}
	if s.wakeAt == 0 {
		s.nudges--
		s.nudgeAt = now + 10*nudgeAfter
		s.resume()
		return
	}
	if s.inVain++; child.WantsTerminal(s.halted) && s.inVain > inVainAtMost {
		_ = s.process.Signal(child.Hangup) // as the kernel does to a stopped group which nobody can continue
	}
	s.resume()
}
