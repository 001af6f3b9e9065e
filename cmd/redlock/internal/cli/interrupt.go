package cli

import (
	"syscall"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
)

// interruptsWithin is for how long a Ctrl-C counts towards the next one. A command that lives with them, such as one which ends what
// it is doing and goes on, gets each by itself after that.
const interruptsWithin = 10 * time.Second

// interrupts counts the Ctrl-C's that come soon after each other.
type interrupts struct {
	n    int
	last time.Duration // by child.Now
}

func (i *interrupts) count(now time.Duration) int {
	if now-i.last > interruptsWithin {
		i.n = 0
	}
	i.n, i.last = i.n+1, now
	return i.n
}

// interrupt passes a SIGINT on to the command. If it comes from a keyboard, again and again, the command does not heed it: it gets
// SIGTERM then, and SIGKILL, since whoever sits there can't do that. What has the terminal for itself is not meant: its keys do not
// come here. A program that sends SIGINT can send another signal, too, and a command may be made for many of them.
func (s *supervisor) interrupt() {
	_ = s.process.Signal(syscall.SIGINT) // whom it does not reach, it does not end
	fromKeyboard := s.fromKeyboard
	if fromKeyboard == nil {
		fromKeyboard = child.HearsKeyboard
	}
	if !fromKeyboard() {
		return
	}
	n := s.interrupts.count(child.Now())
	if n > 1 {
		s.log.newLine() // behind the ^C
	}
	switch n {
	case 1:
	case 2:
		_ = s.process.Signal(syscall.SIGTERM)
		s.say(eventInterrupt, "Ctrl-C again: asked the command to end (SIGTERM); the next one kills it")
	default:
		if err := s.process.Kill(); err != nil {
			s.say(eventInterrupt, "Ctrl-C once more: can't kill the command: %v", err)
			return
		}
		s.say(eventInterrupt, "Ctrl-C once more: killed the command")
	}
}

// interruptedBy reports that sig, of which the command has died, was the answer to several Ctrl-C's.
func (s *supervisor) interruptedBy(sig syscall.Signal) bool {
	return s.interrupts.n > 1 && (sig == syscall.SIGTERM || sig == syscall.SIGKILL)
}
