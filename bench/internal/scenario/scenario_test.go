package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/bench/internal/fake"
	"github.com/seed-624411e5/redlock/bench/internal/fleet"
	"github.com/seed-624411e5/redlock/bench/internal/limit"
	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/bench/internal/scenario"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// environment has the addresses of nine masters that do not exist; the fakes need none.
func environment(t *testing.T, subjects ...subject.Subject) *scenario.Env {
	t.Helper()
	var addrs []string
	for i := range 9 {
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", i+1))
	}
	f, err := fleet.Attach(addrs)
	must(t, err)
	return &scenario.Env{
		Fleet: f, Subjects: subjects, Masters: 5,
		Duration: 20 * time.Millisecond, Repeat: 1, Bound: 50 * time.Millisecond,
		Contenders: 4, ContendFor: 100 * time.Millisecond, Hold: time.Millisecond, Holds: 10, Logf: t.Logf,
	}
}

func find(t *testing.T, name string) scenario.Scenario {
	t.Helper()
	found, err := scenario.Find([]string{name})
	must(t, err)
	return found[0]
}

func run(t *testing.T, env *scenario.Env, name string) []result.Row {
	t.Helper()
	rows, err := find(t, name).Run(t.Context(), env)
	must(t, err)
	return rows
}

func ops(r result.Row) float64 { return r.Figures[result.OpsPerS] }

// measured is run, for longer each time until all subjects have made cycles: on a busy machine some first make none.
func measured(t *testing.T, env *scenario.Env, name string) []result.Row {
	t.Helper()
	for {
		rows := run(t, env, name)
		if !slices.ContainsFunc(rows, func(r result.Row) bool { return ops(r) <= 0 }) || env.Duration > time.Minute {
			return rows
		}
		env.Duration *= 4
	}
}

func TestSubjectsTakeTurnsInRotatedOrder(t *testing.T) {
	var order []string
	var subjects []subject.Subject
	for _, name := range []string{"a", "b", "c"} {
		subjects = append(subjects, &fake.Subject{Called: name, OnOpen: func() { order = append(order, name) }})
	}
	env := environment(t, subjects...)
	env.Repeat = 3
	rows := run(t, env, "uncontended")
	if got := strings.Join(order, ""); got != "abcbcacab" {
		t.Errorf("opened in the order %s, want abcbcacab", got)
	}
	for i, name := range []string{"a", "b", "c"} {
		if rows[i].Subject != name || rows[i].Repeat != 3 || rows[i].Workers != 1 || rows[i].Masters != 5 ||
			ops(rows[i]) <= 0 {
			t.Errorf("row %d is %+v", i, rows[i])
		}
	}
}

func TestDistinctHasAGroupForEveryNumberOfWorkersAndOneLimit(t *testing.T) {
	env := environment(t, &fake.Subject{Called: "a"})
	env.Workers = []int{1, 3}
	env.Limit = func(_ context.Context, addrs []string, _ string, _ time.Duration) (limit.Rates, error) {
		if len(addrs) != 5 {
			t.Errorf("the limit of %d masters", len(addrs))
		}
		return limit.Rates{Set: 200, Drop: 200}, nil
	}
	rows := run(t, env, "distinct")
	if len(rows) != 3 {
		t.Fatalf("%d rows, want 3", len(rows))
	}
	if rows[0].Workers != 1 || rows[1].Workers != 3 || rows[2].Subject != scenario.LimitName ||
		ops(rows[2]) != 100 || rows[2].Figures[result.P50] != 0 {
		t.Errorf("rows: %+v", rows)
	}
}

func TestAMissingRedisBenchmarkLeavesOnlyTheLimitOut(t *testing.T) {
	env := environment(t, &fake.Subject{Called: "a"})
	env.Workers = []int{1}
	env.Limit = func(context.Context, []string, string, time.Duration) (limit.Rates, error) {
		return limit.Rates{}, limit.ErrNotInstalled
	}
	if rows := run(t, env, "distinct"); len(rows) != 1 || rows[0].Subject != "a" {
		t.Errorf("rows: %+v", rows)
	}
}

func TestContendedReportsBrokenLocks(t *testing.T) {
	rows := run(t, environment(t, &fake.Subject{Called: "correct"}, &fake.Subject{Called: "broken", Crowd: 2}),
		"contended")
	for i, wantOverlaps := range []bool{false, true} {
		overlaps, ok := rows[i].Get("overlaps")
		if !ok || overlaps > 0 != wantOverlaps {
			t.Errorf("%s: %v overlaps (%t)", rows[i].Subject, overlaps, ok)
		}
	}
	for _, name := range []string{
		"gap_p50_us", "wait_p99_us", "ideal_wait_us", "cycle_us", "hold_us", "fairness", "ops_per_s",
	} {
		if v, ok := rows[0].Get(name); !ok || v <= 0 {
			t.Errorf("%s = %v (%t)", name, v, ok)
		}
	}
	// Three others hold for a millisecond at least.
	if ideal, _ := rows[0].Get("ideal_wait_us"); ideal < 3000 {
		t.Errorf("the perfect queue of 4 waits %v µs", ideal)
	}
}

func TestALockThatIsVerySlowIsGivenUpAndReported(t *testing.T) {
	env := environment(t, &fake.Subject{Called: "quick"}, &fake.Subject{Called: "dead", Delay: time.Hour})
	begun := time.Now()
	rows := run(t, env, "uncontended")
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	dead := rows[1]
	if unfinished, _ := dead.Get("unfinished"); unfinished != 1 || ops(dead) != 0 || dead.Figures[result.P50] < 60_000 {
		t.Errorf("unfinished %v, %v/s, p50 %v µs", unfinished, ops(dead), dead.Figures[result.P50])
	}
	if ops(rows[0]) <= 0 {
		t.Error("the quick one was not measured")
	}
}

func TestMeasurementsSurviveAnInterruption(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	env := environment(t, &fake.Subject{Called: "a"}, &fake.Subject{Called: "b", OnOpen: cancel})
	rows, err := find(t, "uncontended").Run(ctx, env)
	if !errors.Is(err, context.Canceled) || len(rows) != 1 || rows[0].Subject != "a" {
		t.Errorf("rows %+v, error %v; want the row of a and %v", rows, err, context.Canceled)
	}
}

func TestEachKindHasASeparateRow(t *testing.T) {
	env := environment(t)
	env.Workers = []int{2}
	env.Kinds = []subject.Variant{
		{Kind: "plain", Subject: &fake.Subject{Called: "redlock"}},
		{Kind: "fenced", Subject: &fake.Subject{Called: "redlock"}},
	}
	rows := run(t, env, "kinds")
	if len(rows) != 2 || rows[0].Kind != "plain" || rows[1].Kind != "fenced" || ops(rows[1]) <= 0 {
		t.Errorf("rows: %+v", rows)
	}
}

func TestTheScenarioMastersMeasuresEveryNumberOfMasters(t *testing.T) {
	env := environment(t, &fake.Subject{Called: "a"})
	env.Workers = []int{1}
	var counts []int
	for _, r := range run(t, env, "masters") {
		counts = append(counts, r.Masters)
	}
	if fmt.Sprint(counts) != "[3 5 7 9]" {
		t.Errorf("masters %v", counts)
	}
}

func TestAScenarioThatCannotRunHereIsSkipped(t *testing.T) {
	five, err := fleet.Attach([]string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4", "127.0.0.1:5"})
	must(t, err)
	for _, name := range []string{"stopped", "kinds", "sharded"} { // two groups need six masters
		env := environment(t, &fake.Subject{Called: "a"})
		env.Fleet = five
		if _, err := find(t, name).Run(t.Context(), env); !errors.Is(err, scenario.ErrSkipped) {
			t.Errorf("%s: %v, want %v", name, err, scenario.ErrSkipped)
		}
	}
}

func TestSubjectsThatDoNotRenewAreLeftOutOfRenewed(t *testing.T) {
	if rows := run(t, environment(t, &fake.Subject{Called: "a"}), "renewed"); len(rows) != 0 {
		t.Errorf("rows: %+v", rows)
	}
}

func TestScenariosAreFoundByNameInTheirOrder(t *testing.T) {
	found, err := scenario.Find([]string{"slow", "uncontended"})
	if err != nil || len(found) != 2 || found[0].Name != "uncontended" {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, err := scenario.Find([]string{"nonsense"}); err == nil {
		t.Error("no error for a scenario that there is not")
	}
}

func TestAClientsFirstLockIsMeasuredFromItsOpening(t *testing.T) {
	const opens = 3 * time.Millisecond
	slow := &fake.Subject{Called: "slow", OnOpen: func() { <-time.After(opens) }}
	rows := run(t, environment(t, slow), "cold")
	if p50, ok := rows[0].Get("p50_us"); !ok || p50 < float64(opens.Microseconds()) {
		t.Errorf("p50 %v µs; opening takes %v", p50, opens)
	}
}
