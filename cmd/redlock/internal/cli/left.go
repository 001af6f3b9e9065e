package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
)

const (
	// leftAfter is for how long what a command leaves is waited for without a word.
	leftAfter = time.Second
	// leftNames of the processes that are waited for stand in the message.
	leftNames = 4
)

// left is what is known of the processes that a command has left when it ended. The lock is kept, and renewed, until they have ended, too.
type left struct {
	leaderOnly bool // they are not waited for
	since      bool // the command has ended
	tellAt     time.Duration
}

// commandEnded goes on with what the command has left. A signal that this program was sent has not reached what is outside of the command's
// group: whoever was to pass it on there may have died of it.
func (s *supervisor) commandEnded() {
	s.keyboard = s.process.TakeTerminal()
	s.left.since, s.left.tellAt = true, child.Now()+leftAfter
	s.tellWatch() // of a group without its leader
	if s.received != nil && s.lost == nil {
		_ = s.process.SignalOutside(s.received) // whom it does not reach, it does not end
	}
}

// tellOfLeft says once who is waited for.
func (s *supervisor) tellOfLeft() {
	if s.left.tellAt == 0 || child.Now() < s.left.tellAt || s.lost != nil {
		return
	}
	s.left.tellAt = 0
	names, n := s.process.Left(leftNames)
	if n == 0 {
		return
	}
	who := strings.Join(names, ", ")
	switch more := n - len(names); {
	case len(names) == 0:
		who = "what it has started"
	case more > 0:
		who += fmt.Sprintf(" and %d more", more)
	}
	s.say(eventLeft, "the command has ended; keeping %s until these processes have ended too: %s (-leader-only does not wait)", s.what, who)
}
