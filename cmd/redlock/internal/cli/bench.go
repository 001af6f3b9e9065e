package cli

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/benchmark"
	"github.com/seed-624411e5/redlock/cmd/redlock/internal/term"
)

func benchCommand() command {
	return command{
		name:    "bench",
		args:    "[NEW...]",
		summary: "measure how long locks take on the masters, and whether it got worse",
		help: `
Measures in turns: the round trip of each master (PING); acquire and release of free locks; acquire, release and
handoff of a lock that several clients want, each with separate connections; and renewals. A handoff lasts from the
call of release until a waiting acquire of another client returns. It takes about 20 seconds, and shows p50 to p99.9
and a histogram of each. With -rate operations have planned starts, and each time counts from the planned start.

-save stores the result. -compare measures and compares with a stored result; with NEW it compares stored results
without asking any master. A row is slower if two things hold: the Mann-Whitney U test over the rounds shows a
difference, corrected by Holm's method for all rows together, and the median is worse by -worse. A slower result is
measured again, -confirm times. If there are too few samples, a row is UNKNOWN, never a pass.

Keys begin with redlock-bench: and a random part. All are removed at the end, also after Ctrl-C. Other programs may
use the masters at the same time: it begins at most 1000 operations a second, for two minutes, with 16 workers, unless
-unlimited is given.

The exit status is 0 if no row is slower; 1 if one is, or two clients held the lock at once; or
    64  bad usage, or results that can't be compared
    69  too few masters can be used
    70  a row is UNKNOWN, or keys could not be removed
    74  a result could not be written
    78  -generation is two or more behind`,
		setup: func(fs *flag.FlagSet) action {
			b := &bench{judgement: benchmark.Judgement{Quantiles: []string{"p50", "p90"}, Worse: 0.1}, confirm: 2}
			b.masters.define(fs)
			b.define(fs)
			return b.run
		},
	}
}

type bench struct {
	masters    masterFlags
	config     benchmark.Config
	judgement  benchmark.Judgement
	old        []string
	save, html string
	json       bool
	confirm    int
}

func (b *bench) define(fs *flag.FlagSet) {
	c := &b.config
	c.Rounds, c.Workers, c.Contenders, c.Ops = 10, 4, 3, benchmark.MaxOps
	numberVar(fs, &c.Rounds, "rounds", 0, benchmark.MaxRounds,
		"measure everything this `number` of times; each is a sample of a comparison (default 10)")
	durationVar(fs, &c.Window, "window", 500*time.Millisecond,
		"`time` of each of the four parts in a round (default 500ms)")
	durationVar(fs, &c.Pause, "pause", 0, "`time` between two rounds, so that rounds see more variation (default none)")
	numberVar(fs, &c.Workers, "workers", 0, 10_000, "`number` of workers that take free locks (default 4)")
	numberVar(fs, &c.Contenders, "contenders", 0, 10_000, "`number` of clients that want the same lock (default 3)")
	rateVar(fs, &c.Rate, "rate", "begin this `number` of acquisitions, renewals, and round trips to each master a "+
		"second, in an open loop (default: closed)")
	numberVar(fs, &c.Ops, "ops", 0, 10_000_000, "begin at most this `number` of operations a second; with "+
		"-unlimited, 0 for any number (default 1000)")
	durationVar(fs, &c.TTL, "ttl", 30*time.Second, "`time` after which masters drop a lock (default 30s)")
	fs.BoolVar(&c.Fenced, "fenced", false, "ask for fencing tokens")
	fs.StringVar(&c.Prefix, "prefix", "", "beginning of the `keys`, before redlock-bench:, for users with rights to "+
		"such keys only")
	fs.BoolVar(&c.Unlimited, "unlimited", false, "allow more operations, workers and time than masters in use "+
		"should get")
	fs.StringVar(&b.save, "save", "", "store the result in this `file`")
	listVar(fs, &b.old, "compare", "compare with the result in this `file`, or in several, separated by commas")
	numberVar(fs, &b.confirm, "confirm", 0, 100, "after a slower result, measure this `number` of times more; all "+
		"must be slower too (default 2)")
	listVar(fs, &b.judgement.Quantiles, "judge", "compare these `quantiles`, separated by commas, of p50, p90, p99, "+
		"p99.9 (default p50,p90)")
	percentVar(fs, &b.judgement.Worse, "worse", "a `change` of less than this does not matter (default 10%)")
	fs.StringVar(&b.html, "html", "", "write a page with the result to this `file`")
	fs.BoolVar(&b.json, "json", false, "print JSON")
}

func (b *bench) run(ctx context.Context, t *terminal, args []string) error {
	if err := cmp.Or(b.config.Check(), b.judgement.Check()); err != nil {
		return usage("bench: %w", err)
	}
	switch guard := b.masters.guard; {
	case guard > 0 && b.config.TTL > guard:
		return usage("bench: -ttl %v is longer than the restart guard of %v allows", b.config.TTL, guard)
	case len(args) > 0 && len(b.old) == 0:
		return unexpected("bench")
	case len(args) > 0 && b.save != "":
		return usage("bench: -save stores a measurement, and with NEW there is none")
	case len(args) > 0:
		return b.compareFiles(t, args)
	}
	old, err := readReports(b.old)
	if err != nil {
		return err
	}
	files, err := b.create()
	defer files.discard()
	if err != nil {
		return err
	}
	report, err := b.measure(ctx, t, old)
	if report == nil { // nothing was measured
		return err
	}
	whole := err == nil
	if len(old) > 0 && whole {
		err = b.confirmed(ctx, t, report, old)
	}
	return cmp.Or(b.print(t, report), files.keep(report, old, whole), err, b.verdict(report))
}

// confirmed compares a report with others. If it is slower, it measures again, up to -confirm times, and all of these
// runs must be slower too.
func (b *bench) confirmed(ctx context.Context, t *terminal, report *benchmark.Report, old []*benchmark.Report) error {
	now := []*benchmark.Report{report}
	b.compare(report, old, now)
	for range b.confirm {
		if report.Comparison.Verdict != benchmark.Slower {
			break
		}
		again, err := b.measure(ctx, t, old)
		if err != nil {
			return err
		}
		report.Keys.Left += again.Keys.Left
		report.Overlaps += again.Overlaps
		now = append(now, again)
		b.compare(report, old, now)
	}
	return nil
}

func (b *bench) verdict(r *benchmark.Report) error {
	switch {
	case r.Overlaps > 0:
		return silently(statusNo) // the report says it
	case r.Keys.Left > 0:
		return exit(statusUnknown, "not all keys could be removed; they lapse by their ttl")
	case r.Comparison == nil || r.Comparison.Verdict == benchmark.NotSlower:
		return nil
	case r.Comparison.Verdict == benchmark.Slower:
		return silently(statusNo)
	}
	return silently(statusUnknown)
}

// measure runs the benchmark until it is done or a signal comes. The signal's status is its error then. A second signal
// ends the program.
func (b *bench) measure(ctx context.Context, t *terminal, old []*benchmark.Report) (*benchmark.Report, error) {
	target, fleets, err := b.target(old)
	defer func() {
		for _, f := range fleets {
			f.close()
		}
	}()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as by nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	first := make(chan os.Signal, 1)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			first <- s
			cancel()
		case <-ctx.Done():
		}
	}()
	notes := newNotes(t.err)
	progress := progressLine(t, notes)
	report, err := benchmark.Run(ctx, b.config, target, progress)
	if progress != nil {
		notes.clear()
	}
	notes.flush()
	if report != nil {
		report.Version = strings.TrimSpace(ownVersion().Version + " " + ownVersion().Revision)
	}
	select {
	case sig := <-first:
		return report, silently(statusSignal + number(sig))
	default:
	}
	if err != nil {
		status := statusOf(err) // for example of a ttl that the restart guard does not allow
		if status == statusNo {
			status = statusNoQuorum
		}
		err = exit(status, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return report, err
}

// progressLine shows on a terminal how far a run is.
func progressLine(t *terminal, notes *notes) func(benchmark.Progress) {
	if _, _, isTerminal := term.Size(t.err); !isTerminal {
		return nil
	}
	return func(p benchmark.Progress) {
		round := "warming up"
		if p.Round > 0 {
			round = fmt.Sprintf("round %d of %d", p.Round, p.Rounds)
		}
		notes.status(fmt.Sprintf("redlock: %s, %s: %d operations, %v left", round, p.Part, p.Operations,
			p.Left.Round(time.Second)))
	}
}

// target opens the masters: once for the free parts, and once for each contender, as other processes would. The old
// results must be comparable. The caller closes the fleets, also after an error.
func (b *bench) target(old []*benchmark.Report) (target benchmark.Target, fleets []*fleet, err error) {
	for range 1 + b.config.Contenders {
		f, err := b.masters.openLocker(nil)
		if err != nil {
			return target, fleets, err
		}
		fleets = append(fleets, f)
		target.Contenders = append(target.Contenders, f.locker)
	}
	f := fleets[0]
	target.Masters, target.Locker, target.Contenders, target.Say = f.all, f.locker, target.Contenders[1:], shown
	target.Quorum = func(usable func(i int) bool) error {
		if set := f.short(usable); set != nil {
			return fmt.Errorf("only %s answer, where %d decide", set.of(set.count(usable)), set.quorum())
		}
		return nil
	}
	now := benchmark.SettingsOf(b.config, len(f.all))
	for i, r := range old {
		if err := benchmark.Comparable(r.Settings, now); err != nil {
			return target, fleets, usage("bench: %s can't be compared with this run: %w", b.old[i], err)
		}
	}
	return target, fleets, nil
}
