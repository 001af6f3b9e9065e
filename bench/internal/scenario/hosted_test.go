package scenario_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/fake"
	"github.com/seed-624411e5/redlock/bench/internal/fleet"
	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/bench/internal/scenario"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// elsewhere is a lock in memory that claims to have separate servers, and remembers the addresses passed to Open.
type elsewhere struct {
	fake.Subject
	opened sync.Map // the addresses that it was opened with, joined
}

func (*elsewhere) About() string { return "a lock elsewhere" }

// Start is never called: tests say where the servers are.
func (*elsewhere) Start(context.Context) (*fleet.Fleet, error) { return nil, errors.ErrUnsupported }

func (s *elsewhere) Open(ctx context.Context, addrs []string) (subject.Client, error) {
	s.opened.Store(strings.Join(addrs, " "), true)
	return s.Subject.Open(ctx, addrs)
}

// local is a lock in memory that marks itself as one for goroutines of one process.
type local struct{ fake.Subject }

func (*local) OneProcess() {}

func names(rows []result.Row) []string {
	var out []string
	for _, r := range rows {
		if !slices.Contains(out, r.Subject) {
			out = append(out, r.Subject)
		}
	}
	return out
}

func TestASubjectWithSeparateServersIsOpenedOnThem(t *testing.T) {
	away := &elsewhere{Subject: fake.Subject{Called: "away"}}
	env := environment(t, &fake.Subject{Called: "here"}, away)
	own, err := fleet.Attach([]string{"127.0.0.1:101", "127.0.0.1:102", "127.0.0.1:103"})
	must(t, err)
	env.Hosts = map[string]*fleet.Fleet{"away": own}
	env.Workers = []int{2}
	for _, name := range []string{"uncontended", "distinct", "contended", "cohort", "allocations"} {
		away.opened.Clear()
		rows := run(t, env, name)
		if got := names(rows); !slices.Equal(got, []string{"here", "away"}) {
			t.Fatalf("%s: rows of %v", name, got)
		}
		if at := slices.Collect(maps.Keys(maps.Collect(away.opened.Range))); len(at) != 1 ||
			at[0] != "127.0.0.1:101 127.0.0.1:102 127.0.0.1:103" {
			t.Errorf("%s: opened at %v", name, at)
		}
		for _, r := range rows {
			masters, about := 5, ""
			if r.Subject == "away" {
				masters, about = 3, "a lock elsewhere"
			}
			if r.Masters != masters || r.About != about {
				t.Errorf("%s, %s: %d masters, about %q; want %d and %q", name, r.Subject, r.Masters, r.About, masters,
					about)
			}
		}
	}
	// A lock on another kind of server has no scenarios about masters, their number or the network.
	for _, name := range []string{"slow", "spread", "masters", "renewed"} {
		if find(t, name).Hosted {
			t.Errorf("%s reports that subjects with separate servers take part", name)
		}
	}
	if got := names(run(t, env, "masters")); !slices.Equal(got, []string{"here"}) {
		t.Errorf("masters: rows of %v", got)
	}
}

func TestASubjectOfOneProcessTakesPartInCohortOnly(t *testing.T) {
	env := environment(t, &fake.Subject{Called: "a"}, &local{fake.Subject{Called: "behind a mutex"}})
	env.Workers = []int{2}
	for name, want := range map[string][]string{
		"cohort": {"a", "behind a mutex"}, "uncontended": {"a"}, "contended": {"a"}, "distinct": {"a"},
	} {
		if got := names(run(t, env, name)); !slices.Equal(got, want) {
			t.Errorf("%s: rows of %v, want %v", name, got, want)
		}
	}
}

func TestCohortHasARowForOneProcessAndOneForFour(t *testing.T) {
	var opened atomic.Int64 // side by side
	env := environment(t, &fake.Subject{Called: "a", OnOpen: func() { opened.Add(1) }})
	env.ContendFor = 200 * time.Millisecond
	rows := run(t, env, "cohort")
	if len(rows) != 2 || rows[0].Kind != scenario.OneProcess || rows[1].Kind != scenario.FourProcesses {
		t.Fatalf("rows %+v", rows)
	}
	if n := opened.Load(); n != 1+4 {
		t.Errorf("%d clients were opened, want one and four", n)
	}
	for _, r := range rows {
		if overlaps, ok := r.Get("overlaps"); !ok || overlaps != 0 || ops(r) <= 0 || r.Workers != 32 || r.Errors != 0 {
			t.Errorf("%s: %g handoffs/s of %d, %v overlaps (%t), %d errors (%v)", r.Kind, ops(r), r.Workers,
				overlaps, ok, r.Errors, r.FirstError)
		}
	}
	if _, ok := rows[0].Get("away_max_us"); ok {
		t.Error("one process is measured against others")
	}
	// With a ttl of 10 s a process passes the key on for 100 ms, and three others do.
	allowed, _ := rows[1].Get("away_allowed_us")
	if away, ok := rows[1].Get("away_max_us"); !ok || away <= 0 || allowed < 300_000 || allowed > 400_000 {
		t.Errorf("away for %v µs (%t), %v µs are allowed", away, ok, allowed)
	}
}

func TestCohortReportsBrokenLocks(t *testing.T) {
	env := environment(t, &fake.Subject{Called: "broken", Crowd: 8})
	for begun := time.Now(); time.Since(begun) < 20*time.Second; {
		rows := run(t, env, "cohort")
		one, _ := rows[0].Get("overlaps")
		four, _ := rows[1].Get("overlaps")
		if one > 0 && four > 0 {
			return
		}
	}
	t.Error("no overlaps")
}
