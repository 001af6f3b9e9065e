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
	"github.com/seed-624411e5/redlock/bench/internal/names"
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
	subject subject.Subject
	kind    string
	asked   int // how many of the masters it gets; 0: as many as the group has
	run     measurement
}

// measurement makes one repetition of an entry.
type measurement func(ctx context.Context, at place) (result.Slice, error)

// place is where an entry is measured.
type place struct {
	subject subject.Subject
	servers *fleet.Fleet // the subject's separate servers, or the masters
	addrs   []string     // of those that the entry uses
	workers int
	masters int    // of the group
	prefix  string // of all keys; every repetition has another one
}

// place finds the servers of an entry: separate ones, or the first masters.
func (e *Env) place(g group, x entry) (at place, err error) {
	at = place{
		subject: x.subject, servers: e.servers(x.subject), workers: g.workers, masters: g.masters,
		prefix: "redlock-bench:" + rand.Text() + ":",
	}
	n := cmp.Or(x.asked, g.masters)
	if _, hosted := x.subject.(subject.Hosted); hosted {
		n = at.servers.Len()
	}
	at.addrs, err = at.servers.Addrs(n)
	return at, err
}

// groups compares subjects with each of these numbers of workers.
func (e *Env) groups(workers []int, subjects []subject.Subject, run measurement) []group {
	var groups []group
	for _, w := range workers {
		g := group{workers: w, masters: e.Masters}
		for _, s := range subjects {
			g.entries = append(g.entries, entry{subject: s, run: run})
		}
		groups = append(groups, g)
	}
	return groups
}

// servers are the servers of a subject.
func (e *Env) servers(s subject.Subject) *fleet.Fleet {
	if own, ok := e.Hosts[s.Name()]; ok {
		return own
	}
	return e.Fleet
}

// All returns the scenarios in the order of a run.
func All() []Scenario {
	return []Scenario{
		{"uncontended", "one worker, free keys: what a lock costs when nobody else wants it", 0, true, oneWorker},
		{"apart", "one worker, where the client has one core and the servers another", 0, false, apart},
		{"cold", "from opening a client to its first lock", 0, true, cold},
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
		{"masters", "3, 5, 7 and 9 masters", masterCounts[len(masterCounts)-1], false, masters},
		{"renewed", "very many holds that renew themselves: memory, goroutines, CPU, losses", 0, false, renewed},
		{
			"neighbour", "quiet locks beside crowds of the same Locker that want other keys: latency, losses", 0, false,
			neighbour,
		},
		{"allocations", "heap allocations of one cycle", 0, true, oneWorker},
	}
}

func nameOf(s Scenario) string { return s.Name }

// Names returns the names of all scenarios.
func Names() []string { return names.Of(All(), nameOf) }

// Find returns the named scenarios in the order of a run; no names mean all.
func Find(wanted []string) ([]Scenario, error) { return names.Find("scenario", All(), nameOf, wanted) }

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
				x := g.entries[(i+rep)%len(g.entries)]
				key := s.key(env, g, x)
				at, err := env.place(g, x)
				if err != nil {
					return s.rows(env, groups, slices), fmt.Errorf("%s: %w", describe(key), err)
				}
				slice, err := x.run(ctx, at)
				switch {
				case ctx.Err() != nil:
					return s.rows(env, groups, slices), ctx.Err()
				case errors.Is(err, ErrSkipped):
					env.Logf("%s: %v", describe(key), err)
				case err != nil:
					return s.rows(env, groups, slices), fmt.Errorf("%s: %w", describe(key), err)
				default:
					env.Logf("%s, %d of %d: %s", describe(key), rep+1, env.Repeat, brief(slice))
					slices[key] = append(slices[key], slice)
				}
			}
		}
	}
	return s.rows(env, groups, slices), nil
}

// rows returns the medians of the measurements so far.
func (s Scenario) rows(env *Env, groups []group, slices map[result.Key][]result.Slice) []result.Row {
	var rows []result.Row
	for _, g := range groups {
		for _, x := range g.entries {
			if key := s.key(env, g, x); len(slices[key]) > 0 {
				row := result.Of(key, slices[key])
				if hosted, ok := x.subject.(subject.Hosted); ok {
					row.About = hosted.About()
				}
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// key is the row of an entry. It names the number of a subject's separate servers, or of the group's masters.
func (s Scenario) key(env *Env, g group, x entry) result.Key {
	key := result.Key{Scenario: s.Name, Subject: x.subject.Name(), Kind: x.kind, Workers: g.workers, Masters: g.masters}
	if _, hosted := x.subject.(subject.Hosted); hosted {
		key.Masters = env.servers(x.subject).Len()
	}
	return key
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
