package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/bench/internal/rivals"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestMain(m *testing.M) {
	zerolog.SetGlobalLevel(zerolog.Disabled)
	workload.Main(rivals.EtcdMutex(), rivals.Advisory())
	goleak.VerifyTestMain(m)
}

// opened starts a lock's servers and two clients.
func opened(t *testing.T, s workload.Subject, open masters.Factory, n int) (fleet *masters.Fleet,
	a, b workload.Locker,
) {
	t.Helper()
	fleet, err := open(t.Context(), masters.Options{N: n})
	if errors.Is(err, masters.ErrUnavailable) {
		redistest.NothingTested(t, err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, fleet.Close()) })
	var lockers []workload.Locker
	for range 2 {
		l, err := s.Open(t.Context(), fleet.Addrs())
		must(t, err)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			must(t, l.Close(ctx))
		})
		lockers = append(lockers, l)
	}
	return fleet, lockers[0], lockers[1]
}

func TestEachLockExcludesIsObservedAndSurvivesARestartIfItClaimsTo(t *testing.T) {
	for _, x := range []struct {
		subject workload.Subject
		open    masters.Factory
		servers int
		// kept: its locks live on when all servers are killed and started again.
		kept bool
	}{
		{rivals.EtcdMutex(), openEtcd, 3, true},
		{rivals.Advisory(), openPostgres, 1, false},
	} {
		t.Run(x.subject.Name(), func(t *testing.T) {
			fleet, a, b := opened(t, x.subject, x.open, x.servers)
			request := workload.Request{Key: "key", TTL: 60 * time.Second}
			once := request
			once.Once = true
			hold, err := a.Acquire(t.Context(), request)
			must(t, err)
			if _, err := b.Acquire(t.Context(), once); !errors.Is(err, workload.ErrHeld) {
				t.Errorf("a second one: %v, want ErrHeld", err)
			}
			keys, err := fleet.Masters[0].Look(t.Context(), []string{"key"})
			if err != nil || len(keys) != 1 || !strings.HasPrefix(hold.Owner(), keys[0].Owners[0]) {
				t.Errorf("on the server there is %v, %v; want %s", keys, err, hold.Owner())
			}
			if err := hold.Release(t.Context()); err != nil {
				t.Errorf("release: %v", err)
			}
			if hold, err = b.Acquire(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			killAll(t, fleet)
			second, err := a.Acquire(t.Context(), once)
			for errors.Is(err, workload.ErrNoQuorum) && t.Context().Err() == nil { // a connection from before
				second, err = a.Acquire(t.Context(), once)
			}
			if kept := errors.Is(err, workload.ErrHeld); kept != x.kept {
				t.Errorf("after a restart: %v; want that it is held %t", err, x.kept)
			}
			if err == nil {
				must(t, second.Release(t.Context()))
			}
			_ = hold.Release(t.Context()) // it may be lost
		})
	}
}

func killAll(t *testing.T, fleet *masters.Fleet) {
	t.Helper()
	var killed []masters.Injection
	for _, m := range fleet.Masters {
		on, err := m.Inject(t.Context(), masters.Kill, masters.Params{})
		must(t, err)
		killed = append(killed, on)
	}
	healed := make(chan error, len(killed))
	for _, on := range killed { // members of a cluster wait for each other
		go func() { healed <- on.Heal(t.Context()) }()
	}
	for range killed {
		must(t, <-healed)
	}
}

func TestALockWhoseServerIsMissingIsLeftOut(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out bytes.Buffer
	must(t, run(t.Context(), []string{"-scenarios", "calm", "-locks", "etcd-mutex"}, &out, &out))
	if !strings.Contains(out.String(), "etcd-mutex is left out") ||
		!strings.Contains(out.String(), "apt-get install etcd-server") {
		t.Errorf("it says %s", out.String())
	}
}

func TestThePlansAreCompleteAndWithoutConflicts(t *testing.T) {
	for _, n := range []int{1, 3} {
		for _, p := range plans(n) {
			if err := p.Complete(); err != nil || len(p.Conflicts()) != 0 {
				t.Errorf("%s on %d servers: %v, conflicts %v", p.Scenario, n, err, p.Conflicts())
			}
		}
	}
}
