package chaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/controls"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/patient"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/mutant"
	"github.com/seed-624411e5/redlock/internal/mutant/mutanttest"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/soak"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/internal/toxileak"
)

var must = locktest.Must

func TestMain(m *testing.M) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // see package network
	logging.Disable()                        // clients meet broken connections by the hundred
	workload.Main(chaos.Subjects()...)
	redistest.AtOnce(atOnce * runtime.GOMAXPROCS(0)) // runs wait for most of their time
	goleak.VerifyTestMain(m, toxileak.Known()...)
}

// quick shortens the waits of a run; the bounds that it checks are unchanged. One acquisition is enough, because each
// test checks that its short run shows something.
var quick = chaos.Limits{Orphan: time.Second, Tail: 300 * time.Millisecond, Enough: 1}

// run makes one run, with files in a directory of the test's own, and checks that nothing else is left of it.
func run(t *testing.T, cfg chaos.Config, enough ...func(*chaos.Report) bool) *chaos.Report {
	t.Helper()
	t.Parallel() // a run mostly waits
	return runNow(t, cfg, enough...)
}

// catch makes runs of a broken lock as run does.
func catch(t *testing.T, cfg chaos.Config, caught func(*chaos.Report) bool) *chaos.Report {
	t.Helper()
	t.Parallel()
	return clean(t, cfg, func(cfg chaos.Config) *chaos.Report { return patient.Caught(t, cfg, caught) })
}

// besides lets a test run in parallel, unless the race detector makes the test too expensive for that.
func besides(t *testing.T) {
	t.Helper()
	if !raced {
		t.Parallel()
	}
}

// runDear is run for expensive runs.
func runDear(t *testing.T, cfg chaos.Config, enough ...func(*chaos.Report) bool) *chaos.Report {
	t.Helper()
	besides(t)
	return runNow(t, cfg, enough...)
}

// show makes runs that have to pass, each with the next seed, until something has happened in one, and returns the
// last. That a fault of a few hits a hold is a matter of chance, and of what else the machine does.
func show(t *testing.T, cfg chaos.Config, happened func(*chaos.Report) bool) *chaos.Report {
	t.Helper()
	return catch(t, cfg, func(rep *chaos.Report) bool {
		mustPass(t, rep)
		return happened(rep)
	})
}

func runNow(t *testing.T, cfg chaos.Config, enough ...func(*chaos.Report) bool) *chaos.Report {
	t.Helper()
	return clean(t, cfg, func(cfg chaos.Config) *chaos.Report { return patient.Run(t, cfg, enough...) })
}

// clean gives runs a temporary directory and this package's usual settings, and checks that they leave nothing behind.
func clean(t *testing.T, cfg chaos.Config, runs func(chaos.Config) *chaos.Report) *chaos.Report {
	t.Helper()
	tmp, err := os.MkdirTemp("", "rc-") //nolint:usetesting // a socket's path must be short
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	cfg.Options.TempDir = tmp
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Limits == (chaos.Limits{}) {
		cfg.Limits = quick
	}
	if cfg.TTL == 0 {
		cfg.TTL = 10 * time.Second // the machine may be busy with other tests
		if cfg.Scenario == "dying-clients" {
			cfg.TTL = 4 * time.Second // the others wait for the locks of dead clients
		}
	}
	rep := runs(cfg)
	if left, _ := os.ReadDir(tmp); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	check(t, rep, cfg.Limits)
	return rep
}

// check judges the history of a run by itself. It must not find anything that the run has not found.
func check(t *testing.T, rep *chaos.Report, l chaos.Limits) {
	t.Helper()
	j, err := chaos.Check(rep.History, l, rep.Inside)
	must(t, err)
	for i := range j.Violations {
		x := &j.Violations[i]
		if !x.Unknown && !slices.ContainsFunc(rep.Violations, func(y oracle.Violation) bool {
			return y.Oracle == x.Oracle && y.Key == x.Key
		}) {
			t.Errorf("the run's history alone shows %s", x)
		}
	}
}

// acquired is enough for a test that wants to see so many acquisitions.
func acquired(n int) func(*chaos.Report) bool {
	return func(rep *chaos.Report) bool { return rep.Acquisitions >= n }
}

// summary describes a report in a line.
func summary(rep *chaos.Report) string {
	return fmt.Sprintf("%d acquisitions, %d overlaps, %d orphans, %d token violations, availability %g, faults %v, "+
		"stalled for %.0f ms",
		rep.Acquisitions, rep.Overlaps, rep.Orphans, rep.TokenViolations, rep.Availability, rep.Faults, rep.StalledMS)
}

// mustPass accepts nothing but a pass.
func mustPass(t *testing.T, rep *chaos.Report) {
	t.Helper()
	if rep.Failed() {
		t.Fatalf("%s: %s\nreplay: %s", rep.Verdict, strings.Join(rep.Reasons, "\n"), rep.Replay)
	}
}

// faultsOfProcesses returns all faults but two: the fault that needs a server with an individual network, which package
// containers tests, and the fault that clients in separate processes can't have.
func faultsOfProcesses() []plan.Fault {
	return slices.DeleteFunc(plan.Faults(), func(f plan.Fault) bool {
		return f.Name == "disconnect" || f.Name == plan.Reconfigure
	})
}

// TestEveryFaultFiresOnRealServers has one step of each fault in one plan, and each must have been observed.
func TestEveryFaultFiresOnRealServers(t *testing.T) {
	p := &plan.Plan{
		Scenario: "each-once", Text: "Each fault once.", Workload: "children", Seed: 5, Clients: 4,
		TLS: true, AOF: true,
	}
	at := 100 * time.Millisecond
	for _, f := range faultsOfProcesses() {
		s := plan.Step{At: plan.Duration(at), For: plan.Duration(150 * time.Millisecond), Fault: f.Name, Masters: []int{
			len(p.Steps) % 5,
		}}
		switch f.Name {
		case "latency":
			s.Delay = plan.Duration(5 * time.Millisecond)
		case "clock-step", plan.ClientClock:
			s.Step = plan.Duration(time.Minute)
		case "clock-rate", plan.ClientRate:
			s.Rate = 1.5
		}
		p.Steps = append(p.Steps, s)
		at += 230 * time.Millisecond
	}
	p.Duration = plan.Duration(at)
	rep := run(t, chaos.Config{Backend: "process", Plan: p})
	mustPass(t, rep)
	for _, f := range faultsOfProcesses() {
		if rep.Unavailable[f.Name] != "" {
			continue
		}
		if rep.Faults[f.Name] != 1 || rep.Observed[f.Name] == "" {
			t.Errorf("%s fired %d times, observed %q", f.Name, rep.Faults[f.Name], rep.Observed[f.Name])
		}
	}
	if len(rep.Unavailable) != 0 { // clock-rate, without a C compiler
		redistest.NothingTested(t, rep.Unavailable)
	}
}

func TestThisLibraryPassesInsideTheAssumptions(t *testing.T) {
	t.Parallel()
	for _, scenario := range []string{
		"master-outage", "dying-clients", "shared", "credentials", "refused-writes", "mixed-waiters",
	} {
		t.Run(scenario, func(t *testing.T) {
			rep := run(t,
				chaos.Config{Backend: "process", Scenario: scenario, Seed: 2, Clients: 3, Duration: 8 * time.Second},
				acquired(5))
			mustPass(t, rep)
			if rep.Acquisitions < 5 || rep.Overlaps+rep.Orphans+rep.TokenViolations != 0 || rep.Availability != 1 {
				t.Error(summary(rep))
			}
		})
	}
}

// TestThisLibraryPassesWhileNoClientCanConnect runs scenarios that make every client dial all the
// time, hence few clients.
func TestThisLibraryPassesWhileNoClientCanConnect(t *testing.T) {
	besides(t)
	for _, scenario := range []string{"expired-certificates", "unresolved-names"} {
		t.Run(scenario, func(t *testing.T) {
			rep := runDear(t, chaos.Config{
				Backend: "process", Scenario: scenario, Seed: 2, Masters: 3, Clients: 2, Duration: 8 * time.Second,
			}, acquired(3))
			mustPass(t, rep)
			if rep.Acquisitions < 3 || rep.Overlaps+rep.Orphans+rep.TokenViolations != 0 || rep.Availability != 1 {
				t.Error(summary(rep))
			}
		})
	}
}

// TestAProcessThatWasStoppedWritesTooLateAndIsRefused has clients that are stopped while they hold a lock, and write
// when they go on.
func TestAProcessThatWasStoppedWritesTooLateAndIsRefused(t *testing.T) {
	rep := show(t, chaos.Config{
		Backend: "process", Scenario: "stopped-writers", Seed: 3, TTL: time.Second, Duration: 10 * time.Second,
	},
		func(rep *chaos.Report) bool { return rep.StaleWrites > 0 })
	if rep.Faults["child-pause"] == 0 {
		t.Errorf("%d writes were refused after no stop", rep.StaleWrites)
	}
}

// TestAGuardKeepsHoldsApartWhereTheLastWritesAreLost: a majority of masters loses the writes of its
// last seconds, by a loss of power or by a failover to replicas that were behind. Without a guard
// two clients can then hold a key. With a guard longer than the lock's life none does.
func TestAGuardKeepsHoldsApartWhereTheLastWritesAreLost(t *testing.T) {
	t.Parallel()
	for i, lost := range [][2]string{{"power-loss", "lose-fsync"}, {"failover", "failover"}} {
		if !soak.Share(i, 2) {
			continue
		}
		scenario, fault := lost[0], lost[1]
		for i, subject := range []workload.Subject{chaos.Redlock(), chaos.Guarded()} {
			overlaps := i == 0
			t.Run(scenario+"/"+subject.Name(), func(t *testing.T) {
				rep := show(t, chaos.Config{
					Backend: "process", Subject: subject, Scenario: scenario, Seed: 3, TTL: 1500 * time.Millisecond,
					Duration: 12 * time.Second,
				}, func(rep *chaos.Report) bool { return !overlaps || rep.Overlaps > 0 })
				if (rep.Overlaps > 0) != overlaps || rep.Faults[fault] == 0 {
					t.Errorf("%d overlaps over %d losses", rep.Overlaps, rep.Faults[fault])
				}
			})
		}
	}
}

// TestAReplicaIsNotExcusedByItsMastersMark: masters that fsync always are excused from the guard by a key, which
// replicas have too.
func TestAReplicaIsNotExcusedByItsMastersMark(t *testing.T) {
	rep := run(t, chaos.Config{
		Backend: "process", Options: masters.Options{AOF: true}, Subject: chaos.Guarded(), Scenario: "failover",
		Seed: 1, TTL: 1500 * time.Millisecond, Duration: 20 * time.Second,
	})
	mustPass(t, rep)
	if rep.Overlaps != 0 || rep.Faults["failover"] < 2 {
		t.Errorf("%d overlaps over %d failovers", rep.Overlaps, rep.Faults["failover"])
	}
}

// TestAGuardedLockUsesMastersAgainAfterASlowLoad: a master that answers LOADING to a question of the guard has not
// lost its data, and votes as soon as it serves.
func TestAGuardedLockUsesMastersAgainAfterASlowLoad(t *testing.T) {
	limits := quick
	limits.Liveness, limits.Recovery = 4*time.Second, 4*time.Second // the guard's time is 15 s
	rep := run(t, chaos.Config{
		Backend: "process", Subject: chaos.LongGuarded(), Scenario: "slow-restart", Seed: 2,
		Duration: 8 * time.Second, Limits: limits,
	}, acquired(5))
	mustPass(t, rep)
	if rep.Faults["loading"] == 0 || rep.Acquisitions < 5 {
		t.Error(summary(rep))
	}
}

func TestEmbeddedMastersNeedNoInstallation(t *testing.T) {
	rep := run(t, chaos.Config{Backend: "embedded", Scenario: "everything", Seed: 4, Duration: 3 * time.Second})
	mustPass(t, rep)
	for name, why := range rep.Unavailable {
		if rep.Faults[name] != 0 || why == "" {
			t.Errorf("%s is not available (%s) and fired %d times", name, why, rep.Faults[name])
		}
	}
}

// TestBrokenLocksAreCaughtOnRealServers has the quick ones of the negative controls; the command runs all.
// Building a mutant takes longer than catching it, so without time one in two is tried.
func TestBrokenLocksAreCaughtOnRealServers(t *testing.T) {
	t.Parallel()
	mutants := 0
	for _, c := range chaos.Controls() {
		_, err := controls.FindEntry(c.Subject.Name())
		if c.Duration > 5*time.Second || err == nil { // those of the catalogue have a test of their own
			continue
		}
		elsewhere := c.Mutant != "" && mutant.Built() == "" // in a build with the mutant
		if elsewhere {
			if mutants++; !soak.Share(mutants, 2) {
				continue
			}
		}
		t.Run(c.Subject.Name(), func(t *testing.T) {
			if elsewhere {
				t.Parallel()
				mutanttest.Within(t, c.Mutant)
				return
			}
			limits := quick
			limits.Orphan = time.Second
			duration := max(c.Duration, 5*time.Second) // in parallel with many others
			catch(t, chaos.Config{
				Backend: "process", Subject: c.Subject, Scenario: c.Scenario, Seed: 1, Duration: duration,
				Limits: limits,
			}, patient.By(c.Oracle))
		})
	}
}

// TestOutsideTheAssumptionsOverlapsAreAllowedAndTokenOrderIsNot runs a lock without memory of any kind over masters
// that lose theirs.
func TestOutsideTheAssumptionsOverlapsAreAllowed(t *testing.T) {
	// On a busy machine a late request leaves a key until its ttl ends, and without holders there are no overlaps.
	show(t, chaos.Config{
		Backend: "embedded", Subject: controls.New(controls.SingleNX), Scenario: "amnesia", Seed: 1,
		TTL: 3 * time.Second, Duration: 10 * time.Second,
	}, func(rep *chaos.Report) bool { return rep.Overlaps > 0 && len(rep.Allowed) > 0 })
}

func TestTheFilesAgreeWithTheReport(t *testing.T) {
	dir := t.TempDir()
	rep := run(t, chaos.Config{Scenario: "slow-network", Seed: 9, Duration: 1500 * time.Millisecond, Dir: dir})
	raw, err := os.ReadFile(filepath.Join(dir, "report.json"))
	must(t, err)
	var got map[string]any
	must(t, json.Unmarshal(raw, &got))
	for _, field := range []string{
		"verdict", "seed", "replay", "operations", "acquisitions", "overlaps", "token_violations", "orphans",
		"goroutines_left", "availability", "recovery_ms_max", "faults", "unexpected_errors",
	} {
		if _, ok := got[field]; !ok {
			t.Errorf("report.json has no %s", field)
		}
	}
	if got["seed"] != 9.0 || got["operations"] != float64(rep.Operations) || !strings.Contains(rep.Replay, "-seed 9") {
		t.Errorf("seed %v, operations %v, replay %v", got["seed"], got["operations"], got["replay"])
	}
	f, err := os.Open(filepath.Join(dir, "history.jsonl"))
	must(t, err)
	defer f.Close()
	events, err := history.Read(f)
	if err != nil || len(events) != len(rep.History) {
		t.Errorf("the history has %d events, the report %d: %v", len(events), len(rep.History), err)
	}
}

func TestAnInterruptedRunIsNoPassAndLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	start := time.Now()
	rep, err := chaos.Run(ctx,
		chaos.Config{Scenario: "master-outage", Duration: time.Minute, Dir: t.TempDir(), Limits: quick})
	must(t, err)
	if rep.Verdict != report.Unknown || !strings.Contains(strings.Join(rep.Reasons, " "), "cut short") {
		t.Errorf("verdict %s, %v", rep.Verdict, rep.Reasons)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("it took %v to end", d)
	}
}

// renewing says that it renews holds.
type renewing struct{ workload.Subject }

func (renewing) RenewsHolds() {}

func TestSetupErrorsSayWhat(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  chaos.Config
		says string
	}{
		"backend":  {chaos.Config{Backend: "nonsense"}, "no backend"},
		"scenario": {chaos.Config{Scenario: "nonsense"}, "no scenario"},
		"kind": {
			chaos.Config{Scenario: "reentrant", Subject: controls.New(controls.Textbook)}, "no reentrant locks",
		},
		"members": {
			chaos.Config{Scenario: "membership", Subject: renewing{controls.New(controls.Textbook)}},
			"implement workload.Members",
		},
		"plan":     {chaos.Config{Plan: &plan.Plan{}}, "needs a name"},
		"external": {chaos.Config{Backend: "external"}, "needs addresses"},
		"nobody": {
			chaos.Config{Backend: "external", Options: masters.Options{Addrs: []string{unused(t)}}}, "refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.cfg.Dir = t.TempDir()
			rep, err := chaos.Run(t.Context(), tt.cfg)
			if rep != nil || !errors.Is(err, chaos.ErrSetup) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("report %v, error %v", rep, err)
			}
		})
	}
}

// TestAnExternalFleetDecidesTheNumberOfMasters: the plan is drawn for the masters that exist, and a
// caller who asked for more gets an error that says so.
func TestAnExternalFleetDecidesTheNumberOfMasters(t *testing.T) {
	fleet, err := masters.OpenEmbedded(t.Context(), masters.Options{N: 3})
	must(t, err)
	t.Cleanup(func() { _ = fleet.Close() })
	cfg := chaos.Config{
		Backend: "external", Options: masters.Options{Addrs: fleet.Addrs()}, Scenario: "broken-network", Seed: 3,
		Duration: 2 * time.Second, Dir: t.TempDir(), Limits: quick, TTL: 10 * time.Second,
	}
	t.Parallel()
	rep := patient.Run(t, cfg)
	if rep.Masters != 3 || rep.Plan.Masters != 3 || !strings.Contains(rep.Replay, "-masters 3") {
		t.Fatalf("%+v", rep)
	}
	mustPass(t, rep)
	cfg.Masters = 5
	if _, err := chaos.Run(t.Context(), cfg); !errors.Is(err, chaos.ErrSetup) ||
		!strings.Contains(err.Error(), "there are 3 masters, and 5 were asked for") {
		t.Errorf("error %v", err)
	}
	cfg.Masters, cfg.Scenario = 0, "membership"
	if _, err := chaos.Run(t.Context(), cfg); !errors.Is(err, chaos.ErrSetup) ||
		!strings.Contains(err.Error(), "takes 5 masters at least, and there are 3") {
		t.Errorf("error %v", err)
	}
	cfg.Masters, cfg.Plan = 0, &plan.Plan{
		Scenario: "own", Steps: []plan.Step{{At: 1, Fault: "silence", Masters: []int{4}}},
	}
	if _, err := chaos.Run(t.Context(), cfg); !errors.Is(err, chaos.ErrSetup) ||
		!strings.Contains(err.Error(), "the plan is for 5") {
		t.Errorf("error %v", err)
	}
}

// unused returns an address without a listener.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}
