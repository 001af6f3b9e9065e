package chaostest_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/chaostest"
	"github.com/seed-624411e5/redlock/chaos/controls"
)

// fakeTB records the result of the test.
type fakeTB struct {
	ctx     context.Context
	fatal   string
	skipped string
}

func (f *fakeTB) Helper()                  {}
func (f *fakeTB) Context() context.Context { return f.ctx }
func (f *fakeTB) Name() string             { return "TestSomething" }
func (f *fakeTB) Logf(string, ...any)      {}
func (f *fakeTB) Skipf(format string, args ...any) {
	f.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// run runs chaostest as a test would and returns its failure message.
func run(t *testing.T, cfg chaos.Config) (failure string, rep *chaos.Report) {
	t.Helper()
	fake, rep := try(t, cfg)
	if fake.skipped != "" {
		t.Fatalf("skipped: %s", fake.skipped)
	}
	return fake.fatal, rep
}

func try(t *testing.T, cfg chaos.Config) (fake *fakeTB, rep *chaos.Report) {
	t.Helper()
	fake = &fakeTB{ctx: t.Context()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		rep = chaostest.Run(fake, cfg)
	}()
	<-done
	return fake, rep
}

// The machine may be busy with other tests, hence the long ttl; the short limits save time.
const ttl = 10 * time.Second

var quick = chaos.Limits{Orphan: time.Second, Tail: 200 * time.Millisecond}

func TestABrokenLockFailsTheTestWithSeedReasonAndReport(t *testing.T) {
	broken, err := controls.FindEntry("quorum-of-one") // overlaps with every seed
	if err != nil {
		t.Fatal(err)
	}
	failure, rep := run(t, chaos.Config{
		Subject: broken.Subject(), Scenario: "bridge", Seed: 42, Duration: 4 * time.Second, TTL: ttl,
		Limits: quick, Dir: t.TempDir(),
	})
	if rep != nil {
		t.Fatalf("a lock with a quorum of one passed: %+v", rep)
	}
	for _, want := range []string{
		"violation", "seed 42", "was held twice", "report.html", "history.jsonl", "TestSomething", "-seed 42",
	} {
		if !strings.Contains(failure, want) {
			t.Errorf("the failure does not say %q:\n%s", want, failure)
		}
	}
	for word := range strings.FieldsSeq(failure) {
		if strings.HasSuffix(word, "report.html") {
			if info, err := os.Stat(word); err != nil || info.Size() < 10_000 {
				t.Errorf("the report: %v, %v", info, err)
			}
		}
	}
}

func TestAGoodLockPassesAndLeavesNothing(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	failure, rep := run(t,
		chaos.Config{Scenario: "broken-network", Seed: 3, Duration: 2 * time.Second, TTL: ttl, Limits: quick})
	if failure != "" {
		t.Fatal(failure)
	}
	if rep.Acquisitions == 0 || len(rep.Faults) == 0 {
		t.Errorf("%d acquisitions, faults %v", rep.Acquisitions, rep.Faults)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestARunThatCannotBeSetUpFailsTheTest(t *testing.T) {
	failure, _ := run(t, chaos.Config{Backend: "nonsense", Dir: t.TempDir()})
	if !strings.Contains(failure, "no backend") {
		t.Errorf("failure %q", failure)
	}
}

func TestHazard132AScenarioThatNeedsMoreIsSkipped(t *testing.T) {
	fake, _ := try(t, chaos.Config{Subject: controls.New(controls.Textbook), Scenario: "renewal", Dir: t.TempDir()})
	if !strings.Contains(fake.skipped, "does not renew holds") || fake.fatal != "" {
		t.Errorf("skipped %q, failed %q", fake.skipped, fake.fatal)
	}
}
