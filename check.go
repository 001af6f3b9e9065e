package redlock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// checkTimeout bounds a Check whose context has no deadline.
const checkTimeout = 10 * time.Second

// Severity says what a finding of [Locker.Check] means for locks. Greater is worse; zero is no finding at all.
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

// Finding is one thing that Check noticed.
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
	// RunID is the server's own name for this run of it.
	RunID   string
	Version string
	// Role is "master" or "slave", in the server's words.
	Role string
	// Uptime is how old the server says it is, in whole seconds.
	Uptime time.Duration
	// Persistence is how it keeps its data: "none", or "aof, fsync always" and so on.
	Persistence string
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

// Audit is the result of [Locker.Check].
type Audit struct {
	// Findings are sorted, the worst first.
	Findings []Finding
	// Masters has one entry for every master, in the order in which New got them.
	Masters []MasterReport
}

// Worst returns the greatest severity found; zero when there is no finding.
func (a *Audit) Worst() Severity {
	if len(a.Findings) == 0 {
		return 0
	}
	return a.Findings[0].Severity
}

// String lists the findings, a line each.
func (a *Audit) String() string {
	lines := make([]string, 0, len(a.Findings))
	for _, f := range a.Findings {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}

// Check asks the masters about everything that the promises of this package depend on and that a server can tell: that
// they are different servers, masters and not replicas, that they neither evict nor forget locks, that their clocks run
// at the right rate, that they answer in time, and that this user may do what a lock needs. For the last it takes and
// releases a lock on a key of its own, which expires within seconds; nothing else is changed.
//
// It takes about a second, at most ten, and no longer than ctx. A master that can't be asked is itself a finding, as is
// what the user may not ask. The error is for a Check that did not take place: it matches [ErrInvalid], [ErrClosed], or
// ctx's error. What a server does not tell stays unchecked: that masters share no machine, rack or disk, that nobody
// runs FLUSHALL or sets a clock.
func (l *Locker) Check(ctx context.Context) (*Audit, error) {
	if ctx == nil {
		return nil, invalid("nil context")
	}
	select {
	case <-l.closing:
		return nil, ErrClosed
	default:
	}
	bounded, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	all := l.lookAtAll(bounded)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("redlock: check: %w", context.Cause(ctx))
	}

	audit := &Audit{}
	for i := range all {
		audit.Masters = append(audit.Masters, all[i].MasterReport)
		audit.Findings = append(audit.Findings, l.opts.judge(&all[i])...)
	}
	audit.Findings = append(audit.Findings, judgeSet(all)...)
	slices.SortStableFunc(audit.Findings, func(a, b Finding) int { return int(b.Severity) - int(a.Severity) })
	return audit, nil
}

// lookAtAll looks at every master in parallel. One that has not answered by the end of ctx is reported as such; its
// goroutine ends when its client lets it.
func (l *Locker) lookAtAll(ctx context.Context) []facts {
	type answer struct {
		index int
		facts facts
	}
	answers := make(chan answer, len(l.masters))
	for i, m := range l.masters {
		go func() { answers <- answer{i, l.lookAt(ctx, m)} }()
	}
	all := make([]facts, len(l.masters))
	for i := range all {
		all[i].Name, all[i].Err = l.names[i], errNoAnswer
	}
	for range l.masters {
		select {
		case a := <-answers:
			all[a.index] = a.facts
		case <-ctx.Done():
			return all
		}
	}
	return all
}
