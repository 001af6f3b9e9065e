package chaos_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

func TestNeighboursAreJudgedBesideAWorkload(t *testing.T) {
	enough := func(rep *chaos.Report) bool { return rep.Neighbours.Holds > 0 && rep.Neighbours.Free > 0 }
	rep := run(t, chaos.Config{
		Scenario: "master-outage", Duration: 12 * time.Second, TTL: 5 * time.Second, Neighbours: true, Limits: quick,
	}, enough)
	q := rep.Neighbours
	if slices.ContainsFunc(rep.Violations, isVictim) || !enough(rep) || q.P50 <= 0 {
		t.Errorf("%s, %v, %+v", rep.Verdict, rep.Reasons, q)
	}
	if !slices.ContainsFunc(rep.Notes, func(s string) bool { return strings.HasPrefix(s, "neighbours: of ") }) ||
		!strings.Contains(rep.Replay, " -neighbours") {
		t.Errorf("notes %q, replay %q", rep.Notes, rep.Replay)
	}
}

// queueing is a lock that serves one acquisition of a client at a time, even while that acquisition
// waits for a key of another client.
type queueing struct{ workload.Subject }

func (s queueing) Name() string { return "queueing" }

func (s queueing) Open(ctx context.Context, addrs []string) (workload.Locker, error) {
	l, err := s.Subject.Open(ctx, addrs)
	return &queueingLocker{Locker: l}, err
}

type queueingLocker struct {
	workload.Locker
	mu sync.Mutex
}

func (l *queueingLocker) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Locker.Acquire(ctx, r)
}

// The control, with a subject that does not say that it renews.
func TestALockThatHarmsNeighboursIsCaught(t *testing.T) {
	long := &plan.Plan{
		Scenario: "long-waits", Inside: true, Hold: plan.Duration(2 * time.Second),
		Duration: plan.Duration(6 * time.Second),
	}
	rep := catch(t, chaos.Config{
		Subject: queueing{chaos.Redlock()}, Plan: long, Neighbours: true, Limits: quick,
	}, func(rep *chaos.Report) bool { return slices.ContainsFunc(rep.Violations, isVictim) })
	if rep.Neighbours.Late == 0 || rep.Neighbours.Holds > 0 {
		t.Errorf("%s, %+v, %v", rep.Verdict, rep.Neighbours, rep.Reasons)
	}
}

func isVictim(v oracle.Violation) bool { return v.Oracle == oracle.NameVictims }
