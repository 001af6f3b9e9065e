package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
)

// ownPlan has one step with a fault of the test's own.
func ownPlan(f plan.Fault) *plan.Plan {
	f.Name, f.Text = "ours", "What the test does."
	return &plan.Plan{
		Scenario: "own", Inside: true, Duration: plan.Duration(time.Second), Own: []plan.Fault{f},
		Steps: []plan.Step{
			{
				At: plan.Duration(400 * time.Millisecond), For: plan.Duration(300 * time.Millisecond), Fault: "ours",
				Masters: []int{1, 4}, Clients: []int{2},
			},
		},
	}
}

// broken panics.
func broken() func(context.Context) error {
	panic("oh") //nolint:forbidigo // as a caller's code may
}

// observed returns the injection of a fault with an observed effect.
func observed(heal func(context.Context) error) (masters.Injection, error) {
	return masters.Injection{Observed: "it was seen", Heal: heal}, nil
}

func TestAFaultOfOnesOwnCountsWhenItWasObserved(t *testing.T) {
	t.Parallel()
	type inject = func(context.Context, plan.Target) (masters.Injection, error)
	nothing := func(context.Context) error { return nil }
	for name, tt := range map[string]struct {
		inject  inject
		can     func(*masters.Fleet) error
		verdict report.Verdict
		says    string
	}{
		"observed": {func(_ context.Context, on plan.Target) (masters.Injection, error) {
			if !slices.Equal(on.Masters, []int{1, 4}) || !slices.Equal(on.Clients, []int{2}) ||
				len(on.Fleet.Reach()) != 5 || on.Step.Fault != "ours" {
				return masters.Injection{}, errors.New("it does not know whom it hits")
			}
			return observed(nothing)
		}, nil, report.Pass, ""},
		"not observed": {func(context.Context, plan.Target) (masters.Injection, error) {
			return masters.Injection{Heal: nothing}, nil
		}, nil, report.Unknown, "not observed"},
		"failed": {func(context.Context, plan.Target) (masters.Injection, error) {
			return masters.Injection{}, errors.New("no such thing")
		}, nil, report.Unknown, "no such thing"},
		"not healed": {func(context.Context, plan.Target) (masters.Injection, error) {
			return observed(func(context.Context) error { return errors.New("it stays") })
		}, nil, report.Unknown, "it stays"},
		"without Heal": {func(context.Context, plan.Target) (masters.Injection, error) {
			return observed(nil)
		}, nil, report.Unknown, "no Heal"},
		"panics": {func(context.Context, plan.Target) (masters.Injection, error) {
			return observed(broken())
		}, nil, report.Unknown, "Inject panicked: oh"},
		"not available": {nil, func(*masters.Fleet) error {
			return errors.New("needs a crane")
		}, report.Unknown, "needs a crane"},
		"unknown where": {nil, func(*masters.Fleet) error { broken(); return nil }, report.Unknown, "Can panicked: oh"},
	} {
		t.Run(name, func(t *testing.T) {
			f := plan.Fault{
				Where: plan.OnMaster, Lasts: true, Inject: tt.inject, Can: tt.can, Leaves: masters.FullService,
			}
			if f.Inject == nil {
				f.Inject = func(context.Context, plan.Target) (masters.Injection, error) {
					return masters.Injection{}, errors.New("it was tried")
				}
			}
			rep := run(t, chaos.Config{Plan: ownPlan(f)})
			said := strings.Join(append(rep.Reasons, rep.Notes...), "\n")
			if rep.Verdict != tt.verdict || !strings.Contains(said, tt.says) {
				t.Errorf("%s, want %s because of %q: %s", rep.Verdict, tt.verdict, tt.says, said)
			}
			if seen := rep.Faults["ours"] == 1 &&
				rep.Observed["ours"] == "it was seen"; seen != (tt.says == "" || name == "not healed") {
				t.Errorf("%v, observed %v", rep.Faults, rep.Observed)
			}
		})
	}
}

// TestWhatAFaultOfOnesOwnDoesIsFeltAndCountedWithTheOthers has faults that break the lock's
// assumptions, take a majority away, or only say so. The first kind is convicted; the harness knows
// that the others are not the lock's mistake.
func TestWhatAFaultOfOnesOwnDoesIsFeltAndCountedWithTheOthers(t *testing.T) {
	t.Parallel()
	forget := func(ctx context.Context, on plan.Target) (masters.Injection, error) {
		for _, m := range on.Masters {
			reach, err := endpoint.Options(on.Fleet.Reach()[m])
			if err != nil {
				return masters.Injection{}, err
			}
			client := redis.NewClient(reach)
			if err := errors.Join(client.FlushAll(ctx).Err(), client.Close()); err != nil {
				return masters.Injection{}, err
			}
		}
		return observed(nil)
	}
	p := ownPlan(plan.Fault{Where: plan.OnMaster, Inject: forget, Leaves: masters.FullService})
	p.Hold, p.Duration = plan.Duration(400*time.Millisecond), plan.Duration(6*time.Second)
	step := p.Steps[0]
	p.Steps = nil
	for at := 500 * time.Millisecond; at < 5*time.Second; at += 300 * time.Millisecond {
		step.At, step.For, step.Masters, step.Clients = plan.Duration(at), 0, nil, nil
		p.Steps = append(p.Steps, step)
	}
	t.Run("it breaks what the lock assumes", func(t *testing.T) {
		caught := func(rep *chaos.Report) bool { return rep.Verdict == report.Violation && rep.Overlaps > 0 }
		if rep := catch(t, chaos.Config{Plan: p}, caught); rep.Faults["ours"] != len(p.Steps) {
			t.Error(rep.Faults)
		}
	})
	for _, where := range []plan.Where{plan.OnMaster, plan.OnNetwork, plan.OnClient, plan.Elsewhere} {
		for service, want := range map[masters.Service]int{masters.NoService: 5, masters.FullService: 0} {
			if where == plan.Elsewhere {
				want = 0
			}
			t.Run(fmt.Sprintf("on %s, which leaves service %d", where, service), func(t *testing.T) {
				t.Parallel()
				if n := lostBy(t, service, where); n != want {
					t.Errorf("%d of 5 clients have no majority, want %d", n, want)
				}
			})
		}
	}
}

// lostBy is how many clients lose their majority to a fault that leaves such a service.
func lostBy(t *testing.T, service masters.Service, where plan.Where) (clients int) {
	t.Helper()
	p := ownPlan(plan.Fault{
		Where: where, Lasts: true, Leaves: service,
		Inject: func(context.Context, plan.Target) (masters.Injection, error) {
			return observed(func(context.Context) error { return nil })
		},
	})
	p.Steps[0].Masters, p.Steps[0].Clients = nil, nil
	rep, err := chaos.Run(t.Context(), chaos.Config{Plan: p, Dir: t.TempDir(), Limits: quick, TTL: 10 * time.Second})
	must(t, err)
	for _, e := range rep.History {
		if e.Type == history.MajorityLost {
			clients++
		}
	}
	return clients
}

// longer finds holds that were longer than that.
func longer(than time.Duration, always bool) chaos.Oracle {
	return chaos.Oracle{
		Name: "short-holds", Text: "holds that are too long", Always: always,
		Judge: func(v *history.View) []oracle.Violation {
			for a := range v.Holds() {
				if time.Duration(a.End()-a.Return) > than {
					return []oracle.Violation{
						{Oracle: "overlap", Key: a.Key, Attempts: []uint64{a.ID}, Text: "it was held for long"},
					}
				}
			}
			return nil
		},
	}
}

func TestAnOracleOfOnesOwnConvictsAndIsInEveryFile(t *testing.T) {
	t.Parallel()
	unknown := longer(0, false)
	unknown.Judge = func(*history.View) []oracle.Violation {
		return []oracle.Violation{{Unknown: true, Text: "can't tell"}}
	}
	panics := longer(0, false)
	panics.Judge = func(*history.View) []oracle.Violation { broken(); return nil }
	for name, tt := range map[string]struct {
		oracle  chaos.Oracle
		inside  bool
		verdict report.Verdict
		junit   string
	}{
		"finds nothing":     {longer(time.Hour, false), true, report.Pass, `tests="2" failures="0" errors="0"`},
		"finds something":   {longer(0, false), true, report.Violation, `tests="2" failures="2" errors="0"`},
		"outside":           {longer(0, false), false, report.Pass, `tests="2" failures="0" errors="0"`},
		"outside, promised": {longer(0, true), false, report.Violation, `tests="2" failures="2" errors="0"`},
		"can't tell":        {unknown, true, report.Unknown, `tests="2" failures="0" errors="2"`},
		"panics":            {panics, true, report.Unknown, `tests="2" failures="0" errors="2"`},
	} {
		t.Run(name, func(t *testing.T) {
			rep := run(t, chaos.Config{
				Plan:    &plan.Plan{Scenario: "own", Inside: tt.inside, Duration: plan.Duration(time.Second)},
				Oracles: []chaos.Oracle{tt.oracle},
			})
			if rep.Verdict != tt.verdict || rep.Overlaps != 0 || rep.OwnOracles["short-holds"] == "" {
				t.Errorf("%s, want %s: %v, %v", rep.Verdict, tt.verdict, rep.Reasons, rep.OwnOracles)
			}
			for _, kind := range []string{"json", "junit"} {
				raw, err := os.ReadFile(rep.Files[kind])
				if err != nil || !strings.Contains(string(raw), "short-holds") || kind == "junit" &&
					!strings.Contains(string(raw), tt.junit) {
					t.Errorf("%s has not %s, %v: %s", kind, tt.junit, err, raw)
				}
			}
			if tt.verdict != report.Pass && !strings.Contains(strings.Join(rep.Reasons, "\n"), "short-holds: ") {
				t.Errorf("reasons %v", rep.Reasons)
			}
		})
	}
}

func TestMistakesInWhatIsOnesOwnAreNamed(t *testing.T) {
	fault := func(change func(*plan.Fault)) chaos.Config {
		p := ownPlan(plan.Fault{
			Where: plan.OnMaster, Inject: func(context.Context, plan.Target) (masters.Injection, error) {
				return observed(nil)
			},
		})
		change(&p.Own[0])
		return chaos.Config{Plan: p}
	}
	judge := func(change func(*chaos.Oracle)) chaos.Config {
		o := longer(0, false)
		change(&o)
		return chaos.Config{Scenario: "calm", Oracles: []chaos.Oracle{o}}
	}
	twice := fault(func(*plan.Fault) {})
	twice.Plan.Own = append(twice.Plan.Own, twice.Plan.Own[0])
	for name, tt := range map[string]struct {
		cfg  chaos.Config
		says string
	}{
		"a fault's name is taken": {
			fault(func(f *plan.Fault) { f.Name = "kill" }),
			`fault "kill" of your own: there is one of that name already`,
		},
		"two faults of a name": {twice, `fault "ours" of your own: there are two`},
		"a fault's name": {
			fault(func(f *plan.Fault) { f.Name = "A b" }), `fault 1 of your own: the name is "A b"`,
		},
		"no Inject": {
			fault(func(f *plan.Fault) { f.Inject = nil }), `fault "ours" of your own: it has no Inject`,
		},
		"no text of a fault": {
			fault(func(f *plan.Fault) { f.Text = "" }), `fault "ours" of your own: it has no Text`,
		},
		"no place": {fault(func(f *plan.Fault) { f.Where = "moon" }), `Where is "moon"`},
		"numbers": {
			fault(func(f *plan.Fault) { f.Check = func(*plan.Step) error { return errors.New("a rate above 1") } }),
			"steps[0].fault: ours: a rate above 1",
		},
		"outside": {fault(func(f *plan.Fault) { f.Outside = true }), "outside what a lock assumes"},
		"forgets elsewhere": {
			fault(func(f *plan.Fault) { f.Where, f.Forgets = plan.Elsewhere, true }), "only a fault on masters",
		},
		"another name in the plan": {fault(func(f *plan.Fault) { f.Name = "others" }), "of your own [others]"},
		"an oracle's name": {
			judge(func(o *chaos.Oracle) { o.Name = "" }), `oracle 1 of your own: the name is ""`,
		},
		"an oracle's is taken": {
			judge(func(o *chaos.Oracle) { o.Name = "overlap" }),
			`oracle "overlap" of your own: there is one of that name already`,
		},
		"no Judge": {
			judge(func(o *chaos.Oracle) { o.Judge = nil }), `oracle "short-holds" of your own: it has no Judge`,
		},
		"no text of an oracle": {
			judge(func(o *chaos.Oracle) { o.Text = "" }), `oracle "short-holds" of your own: it has no Text`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.cfg.Dir = t.TempDir()
			rep, err := chaos.Run(t.Context(), tt.cfg)
			if rep != nil || !errors.Is(err, chaos.ErrSetup) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("report %v, error %v, want one that says %q", rep, err, tt.says)
			}
		})
	}
}

// TestAFaultWaitsUntilWhatWasBeforeItOnItsMasterIsHealed: a server that takes long to come back can't take commands
// before. A fault that the plan puts at the same time, or on another master, does not wait.
func TestAFaultWaitsUntilWhatWasBeforeItOnItsMasterIsHealed(t *testing.T) {
	const ms = plan.Duration(time.Millisecond)
	type faults struct { // of one run: one that shows nothing is followed by another
		meanwhile, elsewhere chan struct{} // closed when they are on
		healed               atomic.Bool
	}
	var now atomic.Pointer[faults]
	begun := make(chan *faults, 2) // for the two others: a busy machine may inject them before the slow one
	slow := plan.Fault{
		Name: "slow", Text: "It is healed when two others are on.", Where: plan.OnMaster, Lasts: true,
		Leaves: masters.FullService,
	}
	slow.Inject = func(context.Context, plan.Target) (masters.Injection, error) { // the first of a run
		f := &faults{meanwhile: make(chan struct{}), elsewhere: make(chan struct{})}
		now.Store(f)
		for len(begun) > 0 { // of a run that was cut short
			<-begun
		}
		begun <- f
		begun <- f
		return observed(func(ctx context.Context) error {
			for _, on := range []chan struct{}{f.meanwhile, f.elsewhere} {
				select {
				case <-on:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			f.healed.Store(true)
			return nil
		})
	}
	tells := func(name string, on func(*faults) chan struct{}) plan.Fault {
		return plan.Fault{
			Name: name, Text: "It says that it is on.", Where: plan.OnMaster, Leaves: masters.FullService,
			Inject: func(ctx context.Context, _ plan.Target) (masters.Injection, error) {
				var f *faults
				select {
				case f = <-begun:
				case <-ctx.Done():
					return masters.Injection{}, ctx.Err()
				}
				if f.healed.Load() {
					return masters.Injection{}, errors.New("it had to wait")
				}
				close(on(f))
				return observed(func(context.Context) error { return nil })
			},
		}
	}
	after := plan.Fault{
		Name: "after", Text: "It comes after the slow one.", Where: plan.OnMaster, Leaves: masters.FullService,
	}
	after.Inject = func(context.Context, plan.Target) (masters.Injection, error) {
		if !now.Load().healed.Load() {
			return masters.Injection{}, errors.New("it did not wait")
		}
		return observed(func(context.Context) error { return nil })
	}
	meanwhile := tells("meanwhile", func(f *faults) chan struct{} { return f.meanwhile })
	elsewhere := tells("elsewhere", func(f *faults) chan struct{} { return f.elsewhere })
	rep := run(t, chaos.Config{Plan: &plan.Plan{
		Scenario: "own", Inside: true, Duration: 3000 * ms, Own: []plan.Fault{slow, meanwhile, elsewhere, after},
		Steps: []plan.Step{
			{At: 100 * ms, For: 100 * ms, Fault: "slow", Masters: []int{1}},
			{At: 150 * ms, Fault: "meanwhile", Masters: []int{1}},
			{At: 200 * ms, Fault: "after", Masters: []int{1, 2}},
			{At: 300 * ms, Fault: "elsewhere", Masters: []int{0}},
		},
	}})
	mustPass(t, rep)
	if rep.Faults["after"] != 1 || rep.Faults["elsewhere"] != 1 || rep.Faults["meanwhile"] != 1 {
		t.Errorf("%v", rep.Faults)
	}
}
