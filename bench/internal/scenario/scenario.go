// Package scenario defines the measurements. A scenario is a list of groups, and a group measures all its subjects one
// after another. Everything is repeated in a rotated order of subjects, so a machine that slows down does so for all.
// Compare only ratios within one run.
package scenario

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/fleet"
	"github.com/seed-624411e5/redlock/bench/internal/limit"
	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// LimitName is the subject of redis-benchmark's rows.
const LimitName = "limit"

// ErrSkipped matches the error of a scenario that can't run here at all.
var ErrSkipped = errors.New("scenario: can't run here")

// Env is the environment of scenarios.
type Env struct {
	Fleet *fleet.Fleet
	// Hosts has the servers of subjects that do not use Fleet, by name.
	Hosts map[string]*fleet.Fleet
	// Subjects are compared in every scenario except kinds and sharded, each where it can take part. Kinds are compared
	// in kinds and cost.
	Subjects []subject.Subject
	Kinds    []subject.Variant
	// Masters is the number of masters in every scenario except masters.
	Masters int
	// Workers overrides the numbers of workers of the scenarios that have several; nil leaves them.
	Workers []int
	// Duration is how long each subject is measured at a time, and Repeat how often.
	Duration time.Duration
	Repeat   int
	// Bound is how long operations may take after Duration is over; see load.Load.
	Bound time.Duration
	// Rate makes the loop open: cycles a second. 0 is the closed loop.
	Rate float64
	// Contenders want one key in the scenarios contended and distant, for ContendFor, and hold it for Hold.
	Contenders int
	ContendFor time.Duration
	Hold       time.Duration
	// Holds are kept alive in the scenario renewed.
	Holds int
	// Limit measures the machine's limit; nil leaves it out.
	Limit func(ctx context.Context, addrs []string, prefix string, d time.Duration) (limit.Rates, error)
	// Logf reports progress to people.
	Logf func(format string, args ...any)
}

// Scenario is one question.
type Scenario struct {
	// Name is the name in -scenario and in the output.
	Name string
	// About is one line for the reader of a report.
	About string
	// Needs is the number of masters that the scenario needs, whatever Env.Masters says; 0 if it does not matter.
	Needs int
	// Hosted reports whether subjects with separate servers take part.
	Hosted bool
	// groups returns the measurements in order. An error that matches ErrSkipped gives the reason why there are none.
	groups func(*Env) ([]group, error)
}

// group is measured side by side: all its entries are run one after another, then again.
type group struct {
	workers, masters int
	entries          []entry
}

// entry is one subject of a group, or one kind.
type entry struct {
	subject, kind string
	masters       int    // the number of a subject's separate servers; 0: the group's masters
	about         string // of such a subject
	run           measurement
}

// measurement makes one repetition of an entry, with keys that begin with prefix.
type measurement func(ctx context.Context, prefix string) (result.Slice, error)

// entry returns the entry of a subject on its separate servers or on the first n masters. measure gets their addresses.
func (e *Env) entry(s subject.Subject, n int, measure func(addrs []string) measurement) (entry, error) {
	out := entry{subject: s.Name()}
	on := e.fleet(s)
	if hosted, ok := s.(subject.Hosted); ok {
		n = on.Len()
		out.masters, out.about = n, hosted.About()
	}
	addrs, err := on.Addrs(n)
	if err != nil {
		return out, err
	}
	out.run = measure(addrs)
	return out, nil
}

// group compares subjects with this number of workers. Each runs on its separate servers or on Masters.
func (e *Env) group(workers int, subjects []subject.Subject,
	run func(s subject.Subject, addrs []string) measurement,
) (group, error) {
	g := group{workers: workers, masters: e.Masters}
	for _, s := range subjects {
		entry, err := e.entry(s, e.Masters, func(addrs []string) measurement { return run(s, addrs) })
		if err != nil {
			return g, err
		}
		g.entries = append(g.entries, entry)
	}
	return g, nil
}

// fleet has the servers of a subject.
func (e *Env) fleet(s subject.Subject) *fleet.Fleet {
	if own, ok := e.Hosts[s.Name()]; ok {
		return own
	}
	return e.Fleet
}

// All returns the scenarios in the order of a run.
func All() []Scenario {
	return []Scenario{
		{"uncontended", "one worker, free keys: what a lock costs when nobody else wants it", 0, true, uncontended},
		{"distinct", "many workers, each with keys of its own: how the wire is shared", 0, true, distinct},
		{"stopped", "one master stands still (SIGSTOP), or one member: what a sick minority costs; a lock on one " +
			"server has none", 0, true, stopped},
		{"slow", "one master answers 50 ms late", 0, false, slow},
		{
			"spread", "masters 2, 4, 6, 8, 10 ms away: an acquire needs the third fastest, not the slowest", 0, false,
			spread,
		},
		{"contended", "many clients want one key: how fast and how fairly it is handed on", 0, true, contended},
		{"distant", "the same with masters 2, 4, 6, 8, 10 ms away: how many round trips of the third fastest lie " +
			"between two holders", 0, false, distant},
		{"cohort", "32 goroutines want one key and do nothing while they have it: of one process, and eight of each " +
			"of four", 0, true, cohort},
		{"kinds", "fenced, shared and reentrant holds beside plain ones", 0, false, kinds},
		{"cost", "what a cycle costs each master and the client: commands, bytes, processor time", 0, false, cost},
		{
			"sharded", "the same keys on one group of three masters and spread over up to eight, and what that costs",
			8 * groupMasters, false, sharded,
		},
		{"masters", "3, 5, 7 and 9 masters", MasterCounts[len(MasterCounts)-1], false, masters},
		{"renewed", "very many holds that renew themselves: memory, goroutines, CPU, losses", 0, false, renewed},
		{
			"neighbour", "quiet locks beside crowds of the same Locker that want other keys: latency, losses", 0, false,
			neighbour,
		},
		{"allocations", "heap allocations of one cycle", 0, true, allocations},
	}
}

// Find returns the named scenarios in the order of a run; no names mean all.
func Find(names []string) ([]Scenario, error) {
	if len(names) == 0 {
		return All(), nil
	}
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n] = true
	}
	var found []Scenario
	for _, s := range All() {
		if wanted[s.Name] {
			found = append(found, s)
			delete(wanted, s.Name)
		}
	}
	for n := range wanted {
		return nil, fmt.Errorf("scenario: there is none called %q", n)
	}
	return found, nil
}

// Run measures one scenario. The rows are in the order of the groups. If a subject fails as a whole (it can't be
// opened, or never ends), Run fails, because otherwise its row would be missing without notice. Run returns the
// measurements so far even if it fails or ctx ends.
func (s Scenario) Run(ctx context.Context, env *Env) ([]result.Row, error) {
	groups, err := s.groups(env)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	slices := map[result.Key][]result.Slice{}
	for rep := range env.Repeat {
		for _, g := range groups {
			for i := range g.entries {
				e := g.entries[(i+rep)%len(g.entries)]
				key := s.key(g, e)
				slice, err := e.run(ctx, "redlock-bench:"+rand.Text()+":")
				switch {
				case ctx.Err() != nil:
					return s.rows(groups, slices), ctx.Err()
				case errors.Is(err, ErrSkipped):
					env.Logf("%s: %v", describe(key), err)
				case err != nil:
					return s.rows(groups, slices), fmt.Errorf("%s: %w", describe(key), err)
				default:
					env.Logf("%s, %d of %d: %s", describe(key), rep+1, env.Repeat, brief(slice))
					slices[key] = append(slices[key], slice)
				}
			}
		}
	}
	return s.rows(groups, slices), nil
}

// rows returns the medians of the measurements so far.
func (s Scenario) rows(groups []group, slices map[result.Key][]result.Slice) []result.Row {
	var rows []result.Row
	for _, g := range groups {
		for _, e := range g.entries {
			if key := s.key(g, e); len(slices[key]) > 0 {
				row := result.Of(key, slices[key])
				row.About = e.about
				rows = append(rows, row)
			}
		}
	}
	return rows
}

func (s Scenario) key(g group, e entry) result.Key {
	return result.Key{
		Scenario: s.Name, Subject: e.subject, Kind: e.kind, Workers: g.workers, Masters: cmp.Or(e.masters, g.masters),
	}
}

func describe(k result.Key) string {
	kind := ""
	if k.Kind != "" {
		kind = " (" + k.Kind + ")"
	}
	return fmt.Sprintf("%s, %s%s, workers %d, masters %d", k.Scenario, k.Subject, kind, k.Workers, k.Masters)
}

func brief(s result.Slice) string {
	out := fmt.Sprintf("%.0f/s", s.OpsPerSecond)
	if s.Latency.Count() > 0 {
		out += fmt.Sprintf(", p50 %v, p99 %v", s.Latency.Quantile(0.5).Round(time.Microsecond),
			s.Latency.Quantile(0.99).Round(time.Microsecond))
	}
	if s.Errors > 0 {
		out += fmt.Sprintf(", %d errors (%v)", s.Errors, s.FirstError)
	}
	return out
}
