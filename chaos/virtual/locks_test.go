package virtual_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/controls"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/virtual"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/soak"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestThisLibraryBreaksNoPromise(t *testing.T) {
	virtual.Test(t, chaos.Redlock(), virtual.Options{Schedules: schedules(soak.Or(50, 200))})
}

// The textbook's lock has no renewal, no fencing and no notifications: it may be poor, but it is correct.
func TestACorrectLockIsNotConvicted(t *testing.T) {
	virtual.Test(t, controls.New(controls.Textbook), virtual.Options{Schedules: schedules(soak.Or(30, 120))})
}

// Each of these locks is the textbook's with one mistake. A schedule that can convict one need not: it depends on the
// order of goroutines. The rarest mistake shows in one of a hundred schedules.
func TestBrokenLocksAreConvicted(t *testing.T) {
	const most = 2000
	for _, c := range []struct {
		lock    controls.Variant
		profile string
		oracle  string
		first   uint64 // a seed not long before the first that fails
	}{
		{controls.QuorumOfTwo, "mixed", oracle.NameOverlap, 1},
		{controls.NoDrift, "mixed", oracle.NameOverlap, 100},
		{controls.PlainDelete, "mixed", oracle.NameForeignRelease, 1},
		{controls.IdleRelease, "calm", oracle.NameOrphan, 1},
		{controls.MaxIncr, "mixed", oracle.NameTokenOrder, 1},
		{controls.CountRepairs, "clients", oracle.NameContinuity, 300},
		{controls.SingleNX, "masters", oracle.NameLiveness, 1},
		{controls.Litter, "calm", oracle.NameKeyspace, 1},
	} {
		t.Run(string(c.lock), func(t *testing.T) {
			if raceEnabled && c.first > 1 {
				return // it takes hundreds of schedules
			}
			profile, err := virtual.FindProfile(c.profile)
			must(t, err)
			b := &virtual.Batch{Subject: controls.New(c.lock), Profile: profile, N: most, First: c.first}
			for b.N > 0 { // up to a schedule that this oracle convicts
				out, err := b.Run(t.Context())
				must(t, err)
				if len(out.Failed) == 0 {
					break
				}
				last := out.Failed[len(out.Failed)-1]
				if slices.Contains(last.Result.Oracles(), c.oracle) {
					t.Logf("seed %d", last.Schedule.Seed)
					return
				}
				next := last.Schedule.Seed + 1
				b.N, b.First = b.N-int(next-b.First), next
			}
			t.Errorf("%d schedules, and %s convicted none", most, c.oracle)
		})
	}
}

// Runs of a lock that hardly acquires anything prove nothing.
func TestALockThatHardlyAcquiresIsNoPass(t *testing.T) {
	b := &virtual.Batch{Subject: controls.New(controls.Liar), N: 20, First: 1}
	out, err := b.Run(t.Context())
	must(t, err)
	if reasons := out.Unknown(b); len(out.Failed) == 0 && len(reasons) == 0 {
		t.Error("a lock that refuses nearly all attempts passed")
	}
	b.Subject = chaos.Redlock()
	out, err = b.Run(t.Context())
	must(t, err)
	if reasons := out.Unknown(b); len(reasons) > 0 {
		t.Errorf("this library's runs prove nothing: %v", reasons)
	}
}

// schedules is how many schedules a test runs: a tenth under the race detector, which takes ten times as long.
func schedules(n int) int {
	if raceEnabled {
		return n / 10
	}
	return n
}

func TestAShrunkScheduleStillFailsAndIsSmall(t *testing.T) {
	b := &virtual.Batch{Subject: controls.New(controls.PlainDelete), N: 50, First: 1}
	out, err := b.Run(t.Context())
	must(t, err)
	if len(out.Failed) == 0 {
		t.Fatal("no failure to shrink")
	}
	first := out.Failed[0]
	s := virtual.Shrink(t.Context(), b.Subject, first.Schedule, []string{oracle.NameForeignRelease})
	sessions := 0
	for _, c := range s.Clients {
		for _, w := range c.Workers {
			sessions += len(w)
		}
	}
	if len(s.Clients) > 2 || sessions > 3 || len(s.Faults) > 1 {
		t.Errorf("left: %d clients, %d sessions, %d faults: %+v", len(s.Clients), sessions, len(s.Faults), s)
	}
	var text strings.Builder
	r, err := virtual.Timeline(&text, b.Subject, s, []string{oracle.NameForeignRelease}, 20)
	must(t, err)
	if !slices.Contains(r.Oracles(), oracle.NameForeignRelease) {
		t.Error("the smaller schedule does not fail")
	}
	for _, want := range []string{"HOLDS it as", "→ m", "VIOLATION foreign-release", "DEL key-0"} {
		if !strings.Contains(strings.ReplaceAll(text.String(), "del key-0", "DEL key-0"), want) {
			t.Errorf("the timeline does not say %q:\n%s", want, text.String())
		}
	}
}

// A lock that draws nothing itself does the same each time. Owners differ.
func TestASeedGivesTheSameRun(t *testing.T) {
	n := schedules(40)
	same := 0
	for seed := range uint64(n) {
		s := virtual.Generate(seed, virtual.Profiles()[0], 1)
		first, err := virtual.Run(virtual.Lock("ours", ours), s)
		must(t, err)
		second, err := virtual.Run(virtual.Lock("ours", ours), s)
		must(t, err)
		if reflect.DeepEqual(outline(first), outline(second)) {
			same++
		}
	}
	t.Logf("%d of %d runs were the same", same, n)
	if same < n/2 { // Go's scheduler may order two steps differently
		t.Errorf("%d of %d runs were the same", same, n)
	}
}

// outline leaves out the parts of a history that differ from run to run.
func outline(r *virtual.Result) (out []history.Event) {
	for _, e := range r.History {
		out = append(out, history.Event{
			At: e.At / int64(time.Millisecond), Type: e.Type, Client: e.Client, Worker: e.Worker, Key: e.Key,
			Outcome: e.Outcome, Master: e.Master,
		})
	}
	return out
}

func TestASubjectThatCannotDialIsAnError(t *testing.T) {
	_, err := virtual.Run(plain{}, virtual.Generate(1, virtual.Profiles()[0], 0))
	if err == nil || !strings.Contains(err.Error(), "implement workload.Secured") {
		t.Errorf("error %v", err)
	}
}

// plain is a subject without workload.Secured.
type plain struct{}

func (plain) Name() string                { return "plain" }
func (plain) Supports(history.Kind) error { return nil }
func (plain) Open(context.Context, []string) (workload.Locker, error) {
	return nil, workload.ErrUnsupported
}

// A child runs a test that must fail.
func TestAViolationFailsTheCallersTest(t *testing.T) {
	out := child(t, "^TestChildOfAViolation$", "")
	i := strings.LastIndex(out, "\n        {")
	if !strings.Contains(out, "VIOLATION") || i < 0 {
		t.Fatalf("no violation with a schedule:\n%s", out)
	}
	text, _, _ := strings.Cut(strings.TrimSpace(out[i:]), "\n")
	file := filepath.Join(t.TempDir(), "schedule.json")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	if out = child(t, "^TestChildOfAReplay$", file); !strings.Contains(out, "VIOLATION") {
		t.Errorf("the replay does not fail:\n%s", out)
	}
}

// child runs a test of this package that must fail.
func child(t *testing.T, name, file string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", name, "-test.v")
	cmd.Env = append(os.Environ(), "VIRTUAL_CHILD=1", "VIRTUAL_FILE="+file)
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("the child passed:\n%s", out)
	}
	return string(out)
}

func TestChildOfAViolation(t *testing.T) {
	if os.Getenv("VIRTUAL_CHILD") == "" {
		return // it is for TestAViolationFailsTheCallersTest
	}
	virtual.Test(t, controls.New(controls.PlainDelete), virtual.Options{Profile: "mixed"})
}

func TestChildOfAReplay(t *testing.T) {
	if os.Getenv("VIRTUAL_CHILD") == "" {
		return // it is for TestAViolationFailsTheCallersTest
	}
	virtual.Replay(t, controls.New(controls.PlainDelete), os.Getenv("VIRTUAL_FILE"))
}
