package chaos_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// leaky is this library plus one leaked goroutine for each acquisition, which ends when the test allows it.
type leaky struct {
	workload.Subject
	end chan struct{}
}

func (s leaky) Open(ctx context.Context, addrs []string) (workload.Locker, error) {
	l, err := s.Subject.Open(ctx, addrs)
	return leakyLocker{l, s.end}, err
}

type leakyLocker struct {
	workload.Locker
	end chan struct{}
}

func (l leakyLocker) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	h, err := l.Locker.Acquire(ctx, r)
	if err == nil {
		go l.linger()
	}
	return h, err
}

func (l leakyLocker) linger() { <-l.end }

// TestLeakedGoroutinesAreFound runs a leaking subject and a clean one at the same time in this
// process. Only the leaking run reports the leak.
func TestLeakedGoroutinesAreFound(t *testing.T) {
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	limits := quick
	limits.Goroutines = 300 * time.Millisecond
	t.Run("leaking", func(t *testing.T) {
		rep := run(t, chaos.Config{
			Subject: leaky{chaos.Redlock(), end}, Scenario: "calm", Duration: 2 * time.Second, Limits: limits,
		})
		if rep.Verdict != report.Violation || rep.GoroutinesLeft != rep.Acquisitions || rep.Acquisitions == 0 {
			t.Errorf("verdict %s with %d goroutines left of %d acquisitions", rep.Verdict, rep.GoroutinesLeft,
				rep.Acquisitions)
		}
		reasons := strings.Join(rep.Reasons, "\n")
		if !strings.Contains(reasons, oracle.NameLeak) ||
			!strings.Contains(reasons, "leakyLocker.linger (leaks_test.go:") {
			t.Errorf("the reasons do not say where: %s", reasons)
		}
	})
	t.Run("clean", func(t *testing.T) {
		rep := run(t, chaos.Config{Scenario: "calm", Duration: 2 * time.Second, Limits: limits})
		mustPass(t, rep)
		if rep.GoroutinesLeft != 0 || rep.Acquisitions == 0 {
			t.Errorf("%d goroutines left of %d acquisitions", rep.GoroutinesLeft, rep.Acquisitions)
		}
	})
}
