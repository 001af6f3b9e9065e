//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
)

// A program that draws on the whole terminal, such as top, stops itself by SIGSTOP in the background. So redlock does
// not see that it wants the terminal.
func TestACommandThatStopsInTheBackgroundGetsTheTerminalWithTheNextForeground(t *testing.T) {
	p := &fakeProcess{terminal: true, has: true}
	lock := shortHold(t, time.Minute)
	s := &supervisor{
		lock: lock, ttl: time.Minute, grace: time.Second, process: p, watch: &child.Watch{},
		signals: make(chan os.Signal, 1),
	}
	defer signal.Stop(s.signals)
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
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
