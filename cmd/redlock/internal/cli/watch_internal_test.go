//go:build unix

package cli

import (
	"bytes"
	"math"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
)

func TestAWatchThatHasDoneItsWorkWasNotKilled(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watch, err := child.StartWatch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Dismiss)
	s := supervise(t, shortHold(t, time.Minute), time.Minute, &fakeProcess{})
	var out bytes.Buffer
	s.watch, s.log = watch, &journal{notes: newNotes(&out)}
	watch.Tell(child.Order{Group: cmd.Process.Pid, Deadline: child.Now()})
	_ = cmd.Wait() // killed
	<-s.watch.Ended()
	s.watchAgain()
	s.log.notes.flush()
	if said := out.String(); strings.Contains(said, "was killed") || !strings.Contains(said, "has killed the command") {
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
			usedUp: usedUp(first, ttl, c.maxHold), renewals: &renewals{},
		}
		if got := s.ending(s.bound - s.grace).Error(); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
