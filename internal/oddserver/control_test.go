package oddserver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/oddserver"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// Cases that end a process, use much memory, leak or give wrong results are found, each with its cause, and the other
// cases are played all the same.
func TestControlEveryFaultOfAChildIsFound(t *testing.T) {
	addrs := servers(t)
	found, _ := inChildren(t, addrs, []int{panics, 0, bloats, fails}, allowedResident/4)
	for n, want := range map[int]string{
		panics: "panic: runtime error", bloats: "MiB resident", fails: "control", 0: "",
	} {
		if got := found[n]; !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("case %d: %q, want %q", n, got, want)
		}
	}
	found, _ = inChildren(t, addrs, []int{leaks, 0}, allowedResident)
	if !strings.Contains(found[noCase], "goroutine") || found[0] != "" {
		t.Errorf("a goroutine that is left: %v", found)
	}
	found, peak := inChildren(t, addrs, []int{0}, allowedResident)
	if len(found) > 0 || peak < 1<<20 {
		t.Errorf("a good case: %v, %d bytes resident", found, peak)
	}
}

// liars claim that they have done commands that they have not done, which no client can know.
var liars = oddserver.FirstOf(oddserver.At("SET", oddserver.Say("+OK\r\n")),
	oddserver.At("EVALSHA", oddserver.Say(":1\r\n")))

// A majority claims to have granted a lock and has not. Looking at the servers shows it.
func TestControlALockThatTheServersDidNotGrantIsFound(t *testing.T) {
	w := newWorld(servers(t))
	defer w.close()
	s, err := w.stand(liars, 3, 0, false, false)
	must(t, err)
	defer s.close()
	if err := s.unfounded(t.Context(), "lie"); !errors.Is(err, errUnfounded) {
		t.Errorf("a lock that two of five have given: %v", err)
	}
	minority, err := w.stand(liars, 2, 0, false, false)
	must(t, err)
	defer minority.close()
	if err := minority.quorum("lie:2", longTTL, nil, "", true); err != nil {
		t.Errorf("with two liars of five: %v", err)
	}
}

var errUnfounded = errors.New("not given by a majority")

// unfounded takes a lock and reports whether it was granted, without waiting for long.
func (s *stand) unfounded(ctx context.Context, key string) error {
	lock, err := s.first.TryAcquire(ctx, key, longTTL)
	if lock == nil {
		return fmt.Errorf("liars enough, and no lock: %w", err)
	}
	if n := s.holders(ctx, key, lock.Owner()); n <= len(s.addrs)/2 {
		return errUnfounded
	}
	return nil
}

// A false answer about an event that did not happen is found.
func TestControlAFalseAnswerIsFound(t *testing.T) {
	server := redistest.Start(t)
	look := server.Client()
	odd := oddserver.Start(t, server.Addr(), nil)
	client := redis.NewClient(&redis.Options{Addr: odd.Addr()})
	defer client.Close()
	if err := client.Get(t.Context(), "got").Err(); !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	for name, c := range map[string]*single.Call{
		"a grant of what was not sent": {
			Request: ask(single.Acquire, "other"), Reply: single.Reply{Outcome: single.Granted}, Sent: true,
		},
		"a refusal of what was not sent": {Request: ask(single.Release, "other"), Sent: true},
		"a refusal of what is free":      {Request: ask(single.Acquire, "got"), Sent: true},
		"a grant of what was not done": {
			Request: ask(single.Acquire, "got"), Reply: single.Reply{Outcome: single.Granted}, Sent: true,
		},
		"not sent, though the server got it": {Request: ask(single.Acquire, "got"), Err: errors.New("no")},
		"an inspection that names another": {
			Request: ask(single.Inspect, "got"), Reply: single.Reply{Outcome: single.Granted, Holder: "x", Key: "got"},
		},
		"an inspection that tells of another": {
			Request: ask(single.Inspect, "got"), Reply: single.Reply{Outcome: single.Granted, Holder: "me", Key: "x"},
		},
	} {
		op := operations[0]
		if c.Request.Op == single.Inspect {
			op.done = func(*redis.Client, string, string) bool { return true }
		}
		if judge(odd, look, op, c, "me") == nil {
			t.Errorf("%s passes", name)
		}
	}
	if err := judge(odd, look, operations[0],
		&single.Call{Request: ask(single.Acquire, "other"), Err: errors.New("no")}, "me"); err != nil {
		t.Errorf("an error of an unsent request: %v", err)
	}
}

func ask(op single.Op, key string) *single.Request {
	return &single.Request{Op: op, Keys: []string{key}, Owner: "me"}
}

// grantsAll is a client that takes an unread reply for a grant, as happened once after a failed set-up.
type grantsAll struct{ redlock.Master }

func (g grantsAll) Do(_ context.Context, batch []*single.Call) {
	for _, c := range batch {
		c.Reply, c.Err, c.Sent = single.Reply{Outcome: single.Granted}, nil, true
	}
}

// Two Lockers overlap when their masters grant everything, and the overlap is counted.
func TestControlOverlapsAreCounted(t *testing.T) {
	var lockers []*redlock.Locker
	for range 2 {
		m, err := single.Dial("redis://127.0.0.1:1", single.Options{})
		must(t, err)
		l, err := redlock.New([]redlock.Master{grantsAll{m}}, redlock.Options{})
		must(t, err)
		t.Cleanup(func() { _ = l.Close(bg) })
		lockers = append(lockers, l)
	}
	var h tally
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	h.contend(ctx, "key", lockers, 64)
	if h.overlaps.Load() == 0 {
		t.Errorf("%d locks, and no overlap", h.locks.Load())
	}
}

// An error must name its reason, and must not be too long.
func TestControlUnclearErrorsAreFound(t *testing.T) {
	for _, err := range []error{
		errors.New("no"), errors.Join(redlock.ErrNoQuorum, errors.New(strings.Repeat("x", longestError))),
	} {
		if unclear(err) == nil {
			t.Errorf("%.80v passes", err)
		}
	}
	if err := unclear(redlock.ErrNoQuorum); err != nil {
		t.Error(err)
	}
}
