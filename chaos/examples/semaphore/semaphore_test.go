// Package semaphore_test runs package semaphore on real masters under faults, and checks that it
// never has more holders than permits. It also runs broken semaphores, which an oracle must
// convict. Any semaphore can be judged in this way: write an adapter like semaphores below.
package semaphore_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/rs/zerolog"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/patient"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/soak"
	"github.com/seed-624411e5/redlock/semaphore"
)

var (
	seeds   = flag.Uint64("seeds", 1, "how many runs of each scenario")
	lasts   = flag.Duration("lasts", 4*time.Second, "how long a run lasts")
	reports = flag.String("reports", "", "keep the reports in this folder")
)

// TestMain silences the logs of other packages about broken connections.
func TestMain(m *testing.M) {
	zerolog.SetGlobalLevel(zerolog.Disabled)
	logging.Disable()
	workload.Main()
	redistest.AtOnce(4) // runs mostly wait
	m.Run()
}

// permits is how many there are.
const permits = 2

// counted is the oracle: at most so many holders at a time, each within its validity.
var counted = chaos.Oracle{
	Name: "permits", Text: fmt.Sprintf("more than %d holders of a semaphore of %d", permits, permits),
	Judge: func(v *history.View) []oracle.Violation { return oracle.AtMost(v, permits) },
}

// under is a run of a scenario's faults, with a workload that asks for permits.
func under(tb testing.TB, subject workload.Subject, scenario string, seed uint64, lasts time.Duration) chaos.Config {
	tb.Helper()
	faults, err := plan.FindScenario(scenario)
	if err != nil {
		tb.Fatal(err)
	}
	drawn, err := faults.Draw(seed, plan.Size{Masters: 5, Clients: 5, Duration: lasts})
	if err != nil {
		tb.Fatal(err)
	}
	// One acquisition is enough: the tests check that a run shows something, and renewed permits are held for seconds.
	limits := chaos.Limits{Orphan: time.Second, Tail: 300 * time.Millisecond, Enough: 1}
	return chaos.Config{
		Subject: subject, Backend: "process", Plan: drawn, Oracles: []chaos.Oracle{counted}, Limits: limits,
		Dir: filepath.Join(cmp.Or(*reports, tb.TempDir()), tb.Name(), strconv.FormatUint(seed, 10)),
	}
}

// inVain is how many more seeds are run if the earlier ones have shown too little: in a few seconds
// all holders may be paused.
const inVain = 4

// The network breaks, masters are killed and come back with their data, or restart one after the
// other, and holders pause for longer than their permits last. Renewed permits outlive their ttl several times. Their
// clients do not pause; docs/evidence/chaos.md says why. Without time half of these pairs run.
func TestNeverMoreHoldersThanPermits(t *testing.T) {
	for i, workload := range []string{"permits", "renewed-permits"} {
		for j, scenario := range []string{"broken-network", "master-outage", "rolling-restart", "paused-clients"} {
			renewed := workload == "renewed-permits"
			if renewed && scenario == "paused-clients" || !soak.Share(i+j, 2) {
				continue
			}
			t.Run(workload+"/"+scenario, func(t *testing.T) {
				t.Parallel()      // a run mostly waits
				full := uint64(0) // runs with all permits held, and renewed
				for seed := uint64(0); seed < *seeds || full < *seeds && seed < *seeds+inVain; seed++ {
					cfg := under(t, semaphores{name: "semaphore", permits: permits}, scenario, seed+1, *lasts)
					cfg.Plan.Workload = workload
					rep := patient.Run(t, cfg)
					v, renewals := history.NewView(rep.History), 0
					for i := range v.Attempts {
						renewals += len(v.Attempts[i].Extensions)
					}
					most := mostAtATime(v)
					if most >= permits && (renewals > 0 || !renewed) {
						full++
					}
					t.Logf("seed %d: %s, %d acquisitions, at most %d held at a time, %d renewals, faults %v", seed+1,
						rep.Verdict, rep.Acquisitions, most, renewals, rep.Faults)
					if rep.Verdict != report.Pass {
						t.Errorf("seed %d: verdict %s: %v", seed+1, rep.Verdict, rep.Reasons)
					}
				}
				if full < *seeds {
					t.Errorf("in %d runs were %d permits held at a time, want %d: that shows little", full, permits,
						*seeds)
				}
			})
		}
	}
}

// mostAtATime is how many were held at a time.
func mostAtATime(v *history.View) int {
	n := 0
	for len(oracle.AtMost(v, n)) > 0 {
		n++
	}
	return n
}

// Each of these allows more holders than permits, and the oracle has to find it.
func TestTooManyHoldersAreConvicted(t *testing.T) {
	more := semaphores{name: "one-permit-more", permits: permits + 1} // one process has another number than is promised
	for _, broken := range []struct {
		workload.Subject
		workload string
	}{{more, "permits"}, {more, "renewed-permits"}, {counters{}, "permits"}} {
		t.Run(broken.Name()+"/"+broken.workload, func(t *testing.T) {
			t.Parallel()
			cfg := under(t, broken.Subject, "calm", 1, 2*time.Second)
			cfg.Plan.Workload = broken.workload
			rep := patient.Caught(t, cfg, patient.By(counted.Name))
			t.Logf("%d acquisitions: %v", rep.Acquisitions, rep.Reasons)
		})
	}
}

// semaphores adapts package semaphore to the harness: each key is a semaphore. A permit is a shared hold of that key,
// because several clients may have one; the oracle judges whether there are too many.
type semaphores struct {
	name    string
	permits int
}

func (s semaphores) Name() string { return s.name }

// RenewsHolds implements workload.Renewer.
func (semaphores) RenewsHolds() {}

func (semaphores) Supports(kind history.Kind) error { return onlyShared(kind) }

func onlyShared(kind history.Kind) error {
	if kind != history.Shared {
		return fmt.Errorf("%w: only permits, which are shared holds", workload.ErrUnsupported)
	}
	return nil
}

func (s semaphores) Open(ctx context.Context, addrs []string) (workload.Locker, error) {
	l, err := redlock.Dial(ctx, urls(addrs), redlock.Options{})
	if err != nil {
		return nil, err
	}
	return slots{l, s.permits}, nil
}

func urls(addrs []string) []string {
	out := make([]string, len(addrs))
	for i, addr := range addrs {
		out[i] = "redis://" + addr
	}
	return out
}

type slots struct {
	*redlock.Locker
	permits int
}

func (s slots) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	sem, err := semaphore.New(s.Locker, r.Key, s.permits)
	if err != nil {
		return nil, err
	}
	var opts []redlock.Option
	if r.Renew {
		opts = append(opts, redlock.AutoRenew())
	}
	acquire := sem.Acquire
	if r.Once {
		acquire = sem.TryAcquire
	}
	permit, err := acquire(ctx, r.TTL, opts...)
	if err != nil {
		return nil, translate(err)
	}
	return slot{permit}, nil
}

type slot struct{ *semaphore.Permit }

func (s slot) Extend(ctx context.Context, ttl time.Duration) error {
	return translate(s.Permit.Extend(ctx, ttl))
}

func (s slot) Release(ctx context.Context) error { return translate(s.Permit.Release(ctx)) }

// translate puts the library's errors into the harness's words.
func translate(err error) error {
	for _, word := range []struct{ own, word error }{
		{redlock.ErrHeld, workload.ErrHeld},
		{redlock.ErrNoQuorum, workload.ErrNoQuorum},
		{redlock.ErrExpired, workload.ErrExpired},
		{redlock.ErrNotHeld, workload.ErrLost},
	} {
		if errors.Is(err, word.own) {
			return fmt.Errorf("%w: %w", word.word, err)
		}
	}
	return err
}
