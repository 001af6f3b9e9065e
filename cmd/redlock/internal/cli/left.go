package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
)

const (
	// leftAfter is how long redlock waits for left processes before it says so.
	leftAfter = time.Second
	// leftNames is the greatest number of left processes that the message names.
	leftNames = 4
)

// left is the state of the processes that a command has left when it ended. redlock keeps and renews the lock until
// they have ended, too.
type left struct {
	leaderOnly bool // they are not waited for
	since      bool // the command has ended
	tellAt     time.Duration
}

// commandEnded goes on with the processes that the command has left. A signal to this program has not reached those
// outside the command's group, because the process that should pass it on may have died of it.
func (s *supervisor) commandEnded() {
	s.keyboard = s.process.TakeTerminal()
	s.left.since, s.left.tellAt = true, child.Now()+leftAfter
	s.tellWatch() // of a group without its leader
	if s.received != nil && s.lost == nil {
		_ = s.process.SignalOutside(s.received) // a signal that does not arrive ends no process
	}
}

// tellOfLeft names once the processes that redlock waits for.
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
	s.say(eventLeft, "the command has ended; keeping %s until these processes have ended too: %s (-leader-only does "+
		"not wait)", s.what, who)
}
