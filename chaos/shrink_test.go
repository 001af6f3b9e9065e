package chaos_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
)

// crowdOf has a plan with harmless faults of the caller's own, and an oracle that convicts once the two guilty ones
// have come on.
func crowdOf(t *testing.T, steps int) chaos.Config {
	t.Helper()
	harmless := func(name string) plan.Fault {
		return plan.Fault{
			Name: name, Text: "does nothing", Where: plan.OnMaster, Leaves: masters.FullService,
			Inject: func(context.Context, plan.Target) (masters.Injection, error) {
				return observed(func(context.Context) error { return nil })
			},
		}
	}
	p := &plan.Plan{
		Scenario: "crowd", Inside: true, Duration: plan.Duration(3 * time.Second),
		Own: []plan.Fault{harmless("guilty"), harmless("innocent")},
	}
	for i := range steps {
		step := plan.Step{
			At: plan.Duration(time.Duration(i+1) * 60 * time.Millisecond), For: plan.Duration(20 * time.Millisecond),
			Fault: "innocent", Masters: []int{i % 5},
		}
		if i == 1 || i == 3 {
			step.Fault = "guilty"
		}
		p.Steps = append(p.Steps, step)
	}
	convicts := chaos.Oracle{
		Name: "both", Text: "both guilty faults came on",
		Judge: func(v *history.View) (found []oracle.Violation) {
			guilty := 0
			for i := range v.Events {
				if e := &v.Events[i]; e.Type == history.FaultOn && e.Name == "guilty" {
					if guilty++; guilty == 2 {
						found = append(found, oracle.Violation{At: e.At, Text: "both came on"})
					}
				}
			}
			return found
		},
	}
	return chaos.Config{Plan: p, Oracles: []chaos.Oracle{convicts}, TTL: 10 * time.Second, Dir: t.TempDir()}
}

func TestAViolatingPlanIsShrunkToTheStepsThatItNeeds(t *testing.T) {
	t.Parallel()
	cfg := crowdOf(t, 4)
	rep, err := chaos.Run(t.Context(), cfg)
	if err != nil || rep.Verdict != "violation" {
		t.Fatalf("%+v, %v", rep, err)
	}
	smaller, err := chaos.Shrink(t.Context(), cfg, rep, 60) // some show nothing on a busy machine
	must(t, err)
	early := rep.Violations[0].At < int64(time.Second) // later, on a busy machine, the end can't be cut
	if p := smaller.Plan; len(p.Steps) != 2 || p.Steps[0].Fault != "guilty" || p.Steps[1].Fault != "guilty" ||
		early && time.Duration(p.Duration) >= 3*time.Second {
		t.Errorf("it still has %v in %v", p.Steps, time.Duration(p.Duration))
	}
	again, err := plan.ParseFile(filepath.Join(cfg.Dir, "smaller", chaos.SmallerPlan), cfg.Plan.Own...)
	if err != nil || len(again.Steps) != 2 {
		t.Errorf("the file has %+v, %v", again, err)
	}
	if left, err := filepath.Glob(filepath.Join(cfg.Dir, "smaller-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := os.Stat(smaller.Files["html"]); err != nil {
		t.Error(err)
	}
}

func TestShrinkingKeepsThePlanThatIsNotConvictedAgain(t *testing.T) {
	t.Parallel()
	cfg := crowdOf(t, 4)
	rep, err := chaos.Run(t.Context(), cfg)
	must(t, err)
	if none, err := chaos.Shrink(t.Context(), cfg, rep, 0); err != nil || none != rep {
		t.Errorf("without a run to make: %+v, %v", none, err)
	}
	cfg.Oracles = nil // nothing convicts it now
	if same, err := chaos.Shrink(t.Context(), cfg, rep, 2); err != nil || same != rep {
		t.Errorf("%+v, %v", same.Plan, err)
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, "smaller")); !os.IsNotExist(err) {
		t.Errorf("a smaller plan was written: %v", err)
	}
	rep.Violations = nil
	if _, err := chaos.Shrink(t.Context(), cfg, rep, 2); err == nil {
		t.Error("a report without a violation is shrunk")
	}
}
