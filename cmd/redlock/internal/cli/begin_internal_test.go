//go:build unix

package cli

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// A command that was killed before it began has the end of its lock as the reason, and no pipe.
func TestACommandThatCantBeginHasOneReason(t *testing.T) {
	const noReader = "broken pipe"
	for name, lapsed := range map[string]bool{"the lock is over": true, "the command is gone": false} {
		ttl := time.Minute
		if lapsed {
			ttl = 10 * time.Millisecond
		}
		p := &fakeProcess{begin: errors.New(noReader), gone: make(chan struct{})}
		lock := shortHold(t, ttl)
		if lapsed {
			redistest.Eventually(t, time.Minute, func() bool { return lock.Err() != nil }, "the end of the validity")
		} else {
			close(p.gone)
		}
		var said bytes.Buffer
		s := &supervisor{
			what: "the lock", lock: lock, ttl: ttl, grace: ttl / 6, process: p, watch: &child.Watch{},
			signals: make(chan os.Signal, 1), log: &journal{notes: newNotes(&said)},
		}
		s.guard()
		signal.Stop(s.signals)
		s.log.notes.flush()
		if got := strings.Contains(said.String(), noReader); got == lapsed {
			t.Errorf("%s: it says %q", name, said.String())
		}
		_ = lock.Release(t.Context()) // one of them is over
	}
}
