package cli

import (
	"os"
	"os/signal"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
)

const (
	// wakeAfter is how long this program waits, after it asked to be stopped, before it concludes that it was not: no
	// parent could continue it.
	wakeAfter = 500 * time.Millisecond
	// inVainAtMost is how often a command that can't get the terminal is continued before it gets a SIGHUP.
	inVainAtMost = 3
	// nudges is how often redlock continues a command that got the terminal. One of the command's processes may stop
	// itself a moment after the kernel has stopped the others, and redlock gets no notice of that.
	nudges = 2
	// nudgeAfter is the time before the first nudge; the next one waits ten times that.
	nudgeAfter = 100 * time.Millisecond
)

// job is the state of a command's stops. All times are by child.Now.
type job struct {
	askedToStop bool          // a signal to this program asked for it
	halted      os.Signal     // the signal that stopped the command; nil while it runs
	wakeAt      time.Duration // 0 unless this program has asked to be stopped
	inVain      int           // how often this program was not stopped
	hadTerminal bool          // the command had the terminal when it was stopped, and has not got it again
	nudges      int
	nudgeAt     time.Duration
}

// next returns when nudge must run again.
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
			_ = s.process.Signal(sig) // if the signal does not arrive, look ends the command
		}
		if child.Ends(sig) {
			s.received = sig
			s.resume() // a stopped command would not get the signal
		}
	case s.halted != nil, s.left.since && s.wakeAt == 0: // there is no notice that all left processes have stopped
		s.askedToStop = true
		s.suspend()
	case s.wakeAt == 0:
		s.askedToStop = true
		_ = s.process.Signal(sig) // the command has a reason not to stop, and its lock is renewed
	}
}

// stopped decides what to do with a command that was stopped.
func (s *supervisor) stopped(sig os.Signal) {
	s.halted, s.nudges = sig, 0
	switch {
	case s.lost != nil: // the command must end
		s.resume()
	case s.wakeAt > 0: // by Suspend itself
	case child.WantsTerminal(sig) && s.process.GiveTerminal():
		s.resume()
		s.nudges, s.nudgeAt = nudges, child.Now()+nudgeAfter
	case s.askedToStop || s.process.HasTerminal():
		s.suspend()
	} // otherwise its stopper continues it; its lock is renewed until then
}

// suspend stops this program after its command, as a shell expects.
func (s *supervisor) suspend() {
	s.hadTerminal = s.process.TakeTerminal() || s.hadTerminal // it may have stopped again in the background
	// Watch kills a process that does not stop when the validity ends.
	_ = s.process.Suspend(!s.askedToStop)
	s.wakeAt = child.Now() + wakeAfter
}

// resume continues the command if its lock is still held. Otherwise the command must not run another instruction.
// resume checks the lock even if no stop was noticed: after a pause of all processes, the signal to continue may arrive
// first.
func (s *supervisor) resume() {
	halted := s.halted
	s.halted, s.askedToStop, s.wakeAt = nil, false, 0
	signal.Notify(s.signals, child.Forwarded()...) // Suspend has removed some handlers
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
	if s.hadTerminal && s.process.GiveTerminal() { // not after the shell's bg
		s.hadTerminal = false
	}
	_ = s.process.Signal(child.Continue) // a process that it does not reach stays stopped and harms no one
}

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
		_ = s.process.Signal(child.Hangup) // as the kernel does to a stopped group without a parent to continue it
	}
	s.resume()
}
