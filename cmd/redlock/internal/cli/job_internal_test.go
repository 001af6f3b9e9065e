//go:build unix

package cli

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// A program that draws on the whole terminal, such as top, stops itself by SIGSTOP in the background. So redlock does
// not see that it wants the terminal.
func TestACommandThatStopsInTheBackgroundGetsTheTerminalWithTheNextForeground(t *testing.T) {
	p := &fakeProcess{terminal: true, has: true}
	s := supervise(t, shortHold(t, time.Minute), time.Minute, p)
	s.stopped(syscall.SIGSTOP) // Ctrl-Z
	for range 2 {              // bg, twice
		p.terminal = false
		s.pass(child.Continue)
		s.stopped(syscall.SIGSTOP)
	}
	if p.has {
		t.Fatal("it has the terminal in the background")
	}
	p.terminal = true
	if s.pass(child.Continue); !p.has { // fg
		t.Error("it does not get the terminal back in the foreground")
	}
}

// A command that was killed before it began has the end of its lock as the reason, and no pipe.
func TestACommandThatCantBeginHasOneReason(t *testing.T) {
	const noReader = "broken pipe"
	for name, ttl := range map[string]time.Duration{
		"the lock is over": 10 * time.Millisecond, "the command is gone": time.Minute,
	} {
		p := &fakeProcess{begin: errors.New(noReader), gone: make(chan struct{})}
		lock, over := shortHold(t, ttl), ttl < time.Minute
		if over {
			redistest.Eventually(t, time.Minute, func() bool { return lock.Err() != nil }, "the end of the validity")
		} else {
			close(p.gone)
		}
		var said bytes.Buffer
		s := supervise(t, lock, ttl, p)
		s.log = &journal{notes: newNotes(&said)}
		s.guard()
		s.log.notes.flush()
		if got := strings.Contains(said.String(), noReader); got == over {
			t.Errorf("%s: it says %q", name, said.String())
		}
	}
}
