//go:build unix

package cli

import (
	"context"
	"math"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
)

// noted returns the messages of a supervisor.
func noted(s *supervisor) string {
	var said strings.Builder
	for len(s.log.notes.lines) > 0 {
		said.WriteString((<-s.log.notes.lines).text)
	}
	return said.String()
}

// watching returns the supervisor of a command; its watch has an order to kill the command now.
func watching(t *testing.T, order child.Order) *supervisor {
	t.Helper()
	watch, err := child.StartWatch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Dismiss)
	lock := shortHold(t, time.Minute)
	t.Cleanup(func() { _ = lock.Release(context.Background()) })
	s := &supervisor{
		what: "the lock", lock: lock, ttl: time.Minute, process: &fakeProcess{}, watch: watch,
		log: &journal{notes: &notes{lines: make(chan note, noteBacklog)}, keys: []string{"key"}},
	}
	watch.Tell(order)
	return s
}

func TestAWatchThatHasDoneItsWorkWasNotKilled(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := watching(t, child.Order{Group: cmd.Process.Pid, Deadline: child.Now()})
	_ = cmd.Wait() // killed
	<-s.watch.Ended()
	s.watchAgain()
	if said := noted(s); strings.Contains(said, "was killed") || !strings.Contains(said, "has killed the command") {
		t.Errorf("it says %q", said)
	}
	if s.watches != 0 {
		t.Error("there is another watch over a command that was killed")
	}
	select {
	case <-s.watch.Ended():
		t.Error("its end is told again")
	default:
	}
}

// The arguments are the first bound for usedUp, and a bound that has stopped moving for ending.
func TestTheReasonIsMaxHoldIfMaxHoldEndsTheValidity(t *testing.T) {
	const ttl, start = 10 * time.Second, time.Hour
	validity := ttl - ttl/100 - 2*time.Millisecond
	for name, c := range map[string]struct {
		maxHold, bound time.Duration // the bound is from the start
		want           string
	}{
		"none":                             {0, validity, "it was not renewed"},
		"shorter than a validity":          {time.Second, time.Second, "-max-hold"},
		"longer":                           {time.Minute, time.Minute, "-max-hold"},
		"longer, and the last bit unheard": {time.Minute, time.Minute - ttl/100, "-max-hold"},
		"not renewed before":               {time.Minute, time.Minute - time.Second, "it was not renewed"},
		"never renewed":                    {time.Minute, validity, "it was not renewed"},
		"for ever":                         {math.MaxInt64, validity, "it was not renewed"},
	} {
		first := start + validity
		if c.maxHold > 0 {
			first = start + min(c.maxHold, validity)
		}
		s := &supervisor{
			ttl: ttl, grace: time.Millisecond, maxHold: c.maxHold, bound: start + c.bound,
			usedUp: usedUp(first, ttl, c.maxHold),
		}
		if got := s.ending(s.bound - s.grace).Error(); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
