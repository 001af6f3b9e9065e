package cli

import (
	"syscall"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
)

// interruptsWithin is how long a Ctrl-C counts towards the next one. Some commands handle Ctrl-C, for example by ending
// a task and going on. After that time such a command gets each Ctrl-C as a first one.
const interruptsWithin = 10 * time.Second

// interrupts counts Ctrl-Cs that come soon after each other.
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

// interrupt passes a SIGINT on to the command. If it comes from a keyboard again and again, the command ignores it. The
// second Ctrl-C then sends SIGTERM, and the third one SIGKILL, because the user at the keyboard can't send these. A
// command that has the terminal to itself is not concerned, because its keys do not come here. A program that sends
// SIGINT can send other signals too, and its command may be made for many SIGINTs, so those do not count.
func (s *supervisor) interrupt() {
	_ = s.process.Signal(syscall.SIGINT) // a signal that does not arrive does not end the command
	if !s.fromKeyboard() {
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

// interruptedBy reports whether sig, which ended the command, was the answer to several Ctrl-Cs.
func (s *supervisor) interruptedBy(sig syscall.Signal) bool {
	return s.interrupts.n > 1 && (sig == syscall.SIGTERM || sig == syscall.SIGKILL)
}
