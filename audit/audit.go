// Package audit looks at masters of locks: whether they are different servers, masters and not replicas, whether they
// neither evict nor forget locks, whether their clocks run at the right rate, whether they answer in time, and whether their
// user may do what a lock needs. First it gathers facts, then it judges them; what it finds is a [Report].
//
// redlock.Locker.Check runs it over a Locker's masters. What a server does not tell stays unchecked: that masters share no
// machine, rack or disk, that nobody runs FLUSHALL or sets a clock.
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

// Severity says what a finding means for locks. Greater is worse; zero is no finding at all.
type Severity uint8

// The severities.
const (
	// Note: worth knowing; nothing is wrong, or something could not be looked at.
	Note Severity = iota + 1
	// Risk: locks are safe as it is, but can't be taken, or an event that has to be expected would make them unsafe.
	Risk
	// Unsafe: two holders of one lock are possible.
	Unsafe
)

// String returns the severity in lower case.
func (s Severity) String() string {
	return [...]string{"none", "note", "risk", "unsafe"}[s&3]
}

// Finding is one thing that was noticed.
type Finding struct {
	Severity Severity
	// Master is the name of the master it is about; names, separated by commas, if it is about several; empty if it is
	// about the set.
	Master string
	// What was found, Why it matters, and how to Fix it: a sentence each.
	What, Why, Fix string
}

// String is the finding in one line.
func (f Finding) String() string {
	where := f.Master
	if where == "" {
		where = "the set"
	}
	return fmt.Sprintf("%s: %s: %s %s %s", f.Severity, where, f.What, f.Why, f.Fix)
}

// MasterReport is what one master said of itself. What it did not say, or was not allowed to, is zero.
type MasterReport struct {
	Name string
	// Err is why the master could not be asked; nil if it could.
	Err error
	// Unusable is why no lock could be taken there; nil if one could, or if this user may not use the key with which that is tried.
	Unusable error
	// RunID is the server's own name for this run of it.
	RunID   string
	Version string
	// Role is "master" or "slave", in the server's words.
	Role string
	// Uptime is how old the server says it is, in whole seconds.
	Uptime time.Duration
	// Persistence is how it keeps its data: "none", or "aof, fsync always" and so on.
	Persistence string
	// Generation is the greatest generation of the configuration that it was told; 0 if none, or if it did not say.
	Generation uint64
	// Guard is for how long it does not vote after a restart; 0 if it is not guarded.
	Guard time.Duration
	// Latency is the median round trip.
	Latency time.Duration
	// ClockOffset is how far its wall clock is ahead of this machine's, known to within half a round trip.
	ClockOffset time.Duration
	// ClockRate is how much faster than this machine's its clock ran during the check, as a fraction of one;
	// ClockRateError is how far that may be off.
	ClockRate, ClockRateError float64
}

// Report is the result of an audit.
type Report struct {
	// Findings are sorted, the worst first.
	Findings []Finding
	// Masters has one entry for every master, in the order in which they were given.
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

// Master is what is asked. A master that is also [Asked], as [single.Master] is, is asked for more than the operations of a lock. A
// master with a restart guard says so by a method RestartGuard() time.Duration.
type Master interface {
	// Name is an address without credentials.
	Name() string
	// Do performs a batch of calls, each atomically, until ctx is done.
	Do(ctx context.Context, batch []*single.Call)
}

// Asked is a master whose server answers questions about itself. Client is not used to ask; it tells the address and TLS.
type Asked interface {
	Client() redis.UniversalClient
	Questions(ctx context.Context) (*single.Questions, error)
}

// Set is one set of masters.
type Set struct {
	// Name is "", or tells two sets apart.
	Name string
	// Members are the masters that belong to it: a bit for each of those given to [Run].
	Members uint64
	// Quorum is how many of them have to agree.
	Quorum int
}

// Settings are what masters are judged by, and the clock. All of them are needed.
type Settings struct {
	// Sets are those of which a quorum decides: one, or two while masters are exchanged.
	Sets []Set
	// DriftFactor is how much faster or slower a master's clock may run, as a fraction of one.
	DriftFactor float64
	// RequestTimeout is how long one master may take to answer; if it is 0, a share of the ttl: one in TimeoutShare, at
	// least LeastTimeout and at most MostTimeout.
	RequestTimeout, LeastTimeout, MostTimeout time.Duration
	TimeoutShare                              int
	// Now is a reading of a clock that never goes back, Wall the time of day.
	Now  func() time.Duration
	Wall func() time.Time
	// Sleep waits for d; the error says that it was cut short.
	Sleep func(ctx context.Context, d time.Duration) error
	// Go runs f in a goroutine of its own, which may outlast Run: one for each master, and each ends when its client lets it.
	Go func(f func())
}

// timeout bounds an audit whose context has no deadline.
const timeout = 10 * time.Second

// Run asks the masters about everything that locks depend on and that a server can tell. It takes about a second, at most
// ten, and no longer than ctx. A master that can't be asked is itself a finding. The error is ctx's, of an audit that did
// not take place.
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
	return report, nil
}

var errNoAnswer = errors.New("no answer in time")

// lookAtAll looks at every master in parallel. One that has not answered by the end of ctx is reported as such.
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
