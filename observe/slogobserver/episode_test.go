package slogobserver_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/observe/slogobserver"
)

// outage sends the events of one round: three of five masters are silent, and the caller stops.
func outage(observe func(redlock.Event), op string) {
	for i := range 5 {
		vote := redlock.Event{Kind: redlock.EventVote, Op: op, Master: fmt.Sprint("m", i), Vote: redlock.Granted}
		if i < 3 {
			vote.Vote, vote.Err = redlock.Unknown, context.DeadlineExceeded
		}
		observe(vote)
	}
	kinds := map[string]redlock.EventKind{
		"acquire": redlock.EventAcquire, "extend": redlock.EventExtend, "release": redlock.EventRelease,
	}
	observe(redlock.Event{Kind: kinds[op], Op: op, Err: redlock.ErrNoQuorum, Granted: 2, Unknown: 3, Quorum: 3, N: 5})
	if op == "acquire" {
		observe(redlock.Event{Kind: redlock.EventReturned, Op: op, Err: redlock.ErrNoQuorum})
	}
	if op == "release" {
		observe(redlock.Event{Kind: redlock.EventPending, Op: op, Master: "m0", Err: redlock.ErrInvalid})
	}
}

// works sends the events of one round: all masters answer.
func works(observe func(redlock.Event)) {
	for i := range 5 {
		observe(redlock.Event{
			Kind: redlock.EventVote, Op: "release", Master: fmt.Sprint("m", i), Vote: redlock.Granted,
		})
	}
	observe(redlock.Event{Kind: redlock.EventRelease, Op: "release", Granted: 3, Quorum: 3, N: 5})
	observe(redlock.Event{Kind: redlock.EventSwept, Op: "release", Master: "m0"})
}

// At the level Info an outage of an hour, with a short one every few seconds in its last half, is ten lines.
func TestHazard125AnOutageIsTwoLinesForEachTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		observe := slogobserver.New(slog.New(slog.NewTextHandler(&log, nil)))
		lines := func() []string { return slices.Collect(strings.Lines(log.String())) }
		ops := []string{"acquire", "extend", "release"}
		for i := range 3600 {
			outage(observe, ops[i%3])
			if i >= 1800 && i%5 == 0 {
				works(observe)
			}
			<-time.After(time.Second)
		}
		if n := len(lines()); n != 5 {
			t.Errorf("%d lines before the end, want one of each silent master, of the quorum and of the releases:\n%s",
				n, log.String())
		}
		works(observe) // a second after the last failure
		if n := len(lines()); n != 5 {
			t.Errorf("the end was logged too soon:\n%s", log.String())
		}
		<-time.After(10 * time.Second)
		works(observe)
		works(observe)
		all := lines()
		if len(all) != 10 {
			t.Fatalf("%d lines after the end, want 10:\n%s", len(all), log.String())
		}
		ends := strings.Join(all[5:], "")
		for _, want := range []string{
			`msg="redlock master answers again" failed=3600 lasted=59m59s master=m0`,
			`msg="redlock quorum again" failed=4800 lasted=59m59s`, // 3600 rounds and 1200 calls
			`msg="redlock releases are remembered again" failed=1200 lasted=59m57s master=m0`,
		} {
			if !strings.Contains(ends, want) {
				t.Errorf("no %s in\n%s", want, ends)
			}
		}
		outage(observe, "acquire")
		if n := len(lines()); n != 14 {
			t.Errorf("the next outage has %d lines, want 4", n-10)
		}
	})
}

// The log has one line for each lost lock, and for each lock that was no longer the caller's.
func TestEachLostLockHasItsLine(t *testing.T) {
	var log bytes.Buffer
	observe := slogobserver.New(slog.New(slog.NewTextHandler(&log, nil)))
	for i := range 100 {
		observe(redlock.Event{Kind: redlock.EventLost, Key: fmt.Sprint(i), Err: redlock.ErrNoQuorum})
		observe(redlock.Event{Kind: redlock.EventRelease, Key: fmt.Sprint(i), Held: true, Err: redlock.ErrNotHeld})
	}
	if n := strings.Count(log.String(), "\n"); n != 200 {
		t.Errorf("%d lines, want 200", n)
	}
}

// The run behind the figures: one caller in Acquire while three of five masters hang. It used to take 319 lines in
// twelve seconds.
func TestHazard125AHungMajorityIsAFewLines(t *testing.T) {
	servers := redistest.StartN(t, 5)
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	var log bytes.Buffer
	locker, err := redlock.Dial(t.Context(), urls,
		redlock.Options{Observer: slogobserver.New(slog.New(slog.NewTextHandler(&log, nil)))})
	must(t, err)
	for _, s := range servers[:3] {
		must(t, s.Pause())
	}
	waits, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if _, err := locker.Acquire(waits, "a", 5*time.Second); err == nil {
		t.Fatal("acquired without a quorum")
	}
	for _, s := range servers[:3] {
		must(t, s.Resume())
	}
	closing, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	_ = locker.Close(closing)                                   // another test checks this error
	if n := strings.Count(log.String(), "\n"); n < 4 || n > 6 { // a busy machine may silence the others
		t.Errorf("%d lines, want 4:\n%s", n, log.String())
	}
}
