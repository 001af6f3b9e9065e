// Package audit checks masters of locks. Are they different servers, and masters rather than replicas? Do they keep
// locks, without eviction and across restarts? Do their clocks run at the right rate? Do they answer in time, and may
// their user do everything that a lock needs? It gathers facts first and judges them afterwards. The result is a
// [Report].
//
// redlock.Locker.Check audits a Locker's masters. An audit can't check facts that a server does not report: whether
// masters share a machine, rack or disk, and whether an operator runs FLUSHALL or sets a clock.
package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/single"
)

// Severity says how bad a finding is for locks. A greater severity is worse; zero means that there is no finding.
type Severity uint8

// The severities.
const (
	// Note: worth knowing. Nothing is wrong, or the audit could not check something.
	Note Severity = iota + 1
	// Risk: locks are safe now, but either they can't be taken, or an event that you must expect would make them
	// unsafe.
	Risk
	// Unsafe: two holders of one lock are possible.
	Unsafe
)

// String returns the severity in lower case.
func (s Severity) String() string {
	return [...]string{"none", "note", "risk", "unsafe"}[s&3]
}

// Finding is one fact about the masters that matters for locks.
type Finding struct {
	Severity Severity
	// Master is the name of the master concerned. It is a list, separated by commas, for several masters, and "" for
	// the whole set.
	Master string
	// The finding (What), Why it matters, and how to Fix it: a sentence each.
	What, Why, Fix string
}

// String returns the finding in one line.
func (f Finding) String() string {
	where := f.Master
	if where == "" {
		where = "the set"
	}
	return fmt.Sprintf("%s: %s: %s %s %s", f.Severity, where, f.What, f.Why, f.Fix)
}

// MasterReport holds the facts that one master reported. A field is zero if the master did not report it or the user
// may not read it.
type MasterReport struct {
	Name string
	// Err is the reason why the audit could not query the master; nil if it could.
	Err error
	// Unusable is the reason why no lock could be taken on the master. It is nil if a lock could be taken, and also if
	// this user may not use the key of the trial lock.
	Unusable error
	// Partly says that this user may not do all that the audit tries, so faults of the master may be unseen.
	Partly bool
	// RunID is the server's own name for its present run.
	RunID   string
	Version string
	// Role is "master" or "slave", as the server reports it.
	Role string
	// Uptime is the server's uptime, in whole seconds.
	Uptime time.Duration
	// Persistence is how the server keeps its data: "none", or "aof, fsync always" and so on.
	Persistence string
	// Generation is the highest configuration generation that the master knows; 0 if it knows none or did not report
	// it.
	Generation uint64
	// Guard is how long the master does not vote after a restart; 0 if it has no restart guard.
	Guard time.Duration
	// Latency is the median round trip.
	Latency time.Duration
	// ClockOffset is how far the master's wall clock is ahead of this machine's, known to within half a round trip.
	ClockOffset time.Duration
	// ClockRate is how much faster than this machine's the master's clock ran during the check, as a fraction.
	// ClockRateError is the uncertainty of ClockRate.
	ClockRate, ClockRateError float64
}

// Report is the result of an audit.
type Report struct {
	// Findings are sorted, the worst first.
	Findings []Finding
	// Masters has one entry for each master, in the order of Run's argument.
	Masters []MasterReport
}

// Add adds findings, and keeps them sorted.
func (r *Report) Add(findings ...Finding) {
	r.Findings = append(r.Findings, findings...)
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return int(b.Severity) - int(a.Severity) })
}

// Worst returns the greatest severity found; zero when there is no finding.
func (r *Report) Worst() Severity {
	if len(r.Findings) == 0 {
		return 0
	}
	return r.Findings[0].Severity
}

// String lists the findings, a line each.
func (r *Report) String() string {
	lines := make([]string, 0, len(r.Findings))
	for _, f := range r.Findings {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}

// Master has the operations that an audit needs. If a Master also implements [Asked], as [single.Master] does, the
// audit checks more than lock operations. A master with a restart guard has a method RestartGuard() time.Duration.
type Master interface {
	// Name is an address without credentials.
	Name() string
	// Do performs a batch of calls, each atomically, until ctx is done.
	Do(ctx context.Context, batch []*single.Call)
}

// Asked is a master with a server that answers questions about itself. The audit reads the address and TLS settings
// from Client, and sends nothing through it.
type Asked interface {
	Client() redis.UniversalClient
	Questions(ctx context.Context) (*single.Questions, error)
}

// Set is one set of masters.
type Set struct {
	// Name distinguishes two sets; "" if there is one.
	Name string
	// Members are the masters of the set: a bit for each master given to [Run].
	Members uint64
	// Quorum is the number of masters that must agree.
	Quorum int
}

// Settings are Run's limits for a judgement, and its clock. All fields but Generation are required.
type Settings struct {
	// Sets are the sets of masters, each with its quorum: one set, or two during an exchange of masters.
	Sets []Set
	// Generation is the number of this configuration of masters; 0 if it has none.
	Generation uint64
	// DriftFactor is how much faster or slower a master's clock may run, as a fraction.
	DriftFactor float64
	// RequestTimeout is how long one master may take to answer. If it is 0, the limit is a share of the ttl: one part
	// in TimeoutShare, at least LeastTimeout and at most MostTimeout.
	RequestTimeout, LeastTimeout, MostTimeout time.Duration
	TimeoutShare                              int
	// Now is a reading of a clock that never goes back, Wall the time of day.
	Now  func() time.Duration
	Wall func() time.Time
	// Sleep waits for d. It returns an error if it was cut short.
	Sleep func(ctx context.Context, d time.Duration) error
	// Go runs f in a new goroutine, which may outlast Run. Run starts one for each master. It ends when the master's
	// client returns.
	Go func(f func())
}

// timeout is the longest time that an audit takes.
const timeout = 10 * time.Second

// Run asks the masters about everything that locks depend on and that a server can report. It takes about a second, at
// most ten, and no longer than ctx allows. A master that does not answer is a finding. An error is ctx's and means that
// no audit took place.
func Run(ctx context.Context, masters []Master, s Settings) (*Report, error) {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	all := s.lookAtAll(bounded, masters)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	report := &Report{}
	for i := range all {
		report.Masters = append(report.Masters, all[i].MasterReport)
		report.Findings = append(report.Findings, s.judge(&all[i])...)
	}
	report.Add(judgeSets(all, s.Sets)...)
	report.Add(judgeOwn(all, s.Generation)...)
	return report, nil
}

var errNoAnswer = errors.New("no answer in time")

// lookAtAll looks at every master in parallel. It reports a master that has not answered by the end of ctx.
func (s *Settings) lookAtAll(ctx context.Context, masters []Master) []facts {
	type answer struct {
		index int
		facts facts
	}
	answers := make(chan answer, len(masters))
	for i, m := range masters {
		s.Go(func() { answers <- answer{i, s.lookAt(ctx, m)} })
	}
	all := make([]facts, len(masters))
	for i := range all {
		all[i].Name, all[i].Err = masters[i].Name(), errNoAnswer
	}
	for range masters {
		select {
		case a := <-answers:
			all[a.index] = a.facts
		case <-ctx.Done():
			return all
		}
	}
	return all
}
