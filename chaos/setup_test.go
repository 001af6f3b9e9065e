package chaos_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// counted counts its open clients. The client with the number in lacks fails the set-up of the run.
type counted struct {
	workload.Subject
	open  *atomic.Int32
	lacks int32
}

func (s counted) Open(ctx context.Context, addrs []string) (workload.Locker, error) {
	l, err := s.Subject.Open(ctx, addrs)
	if err != nil {
		return nil, err
	}
	return countedLocker{l, s.open, s.open.Add(1) == s.lacks}, nil
}

type countedLocker struct {
	workload.Locker
	open  *atomic.Int32
	lacks bool
}

func (l countedLocker) Close(ctx context.Context) error {
	l.open.Add(-1)
	return l.Locker.Close(ctx)
}

func (l countedLocker) Lacks(workload.Profile) error {
	if l.lacks {
		return workload.ErrUnsupported
	}
	return nil
}

func TestASetUpThatFailsLeavesNoClientOpen(t *testing.T) {
	var open atomic.Int32
	_, err := chaos.Run(t.Context(), chaos.Config{
		Backend: "embedded", Scenario: "calm", Subject: counted{chaos.Redlock(), &open, 2},
	})
	if !errors.Is(err, chaos.ErrSetup) || !errors.Is(err, workload.ErrUnsupported) {
		t.Fatalf("error %v", err)
	}
	if n := open.Load(); n != 0 {
		t.Errorf("%d clients are open", n)
	}
}
