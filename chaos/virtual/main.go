package virtual

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/chaos/workload"
)

// The exit statuses of Main.
const (
	exitPass      = 0
	exitViolation = 1
	exitUsage     = 2
	exitUnknown   = 3
)

// Entry is a subject that the command knows.
type Entry struct {
	Subject workload.Subject
	// Masters is how many masters it is for; 0: any number.
	Masters int
}

// collectAt is the heap's growth, in percent, before garbage is collected. Little of it is alive.
const collectAt = 400

type command struct {
	subjects []Entry
	out, err io.Writer

	batch    Batch
	subject  string
	profile  string
	replay   string
	file     string
	whole    bool
	masters  int
	schedule *Schedule // to replay
}

// Main is the command `redlock-chaos virtual`: it runs schedules of one of these subjects and prints its findings. The
// exit status is 0 for a pass, 1 for a violation, 2 for wrong usage and for -help, and 3 if the runs prove nothing.
func Main(ctx context.Context, subjects []Entry, args []string, stdout, stderr io.Writer) int {
	c := &command{subjects: subjects, out: stdout, err: stderr}
	if err := c.parse(args); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(stderr, "redlock-chaos virtual: %v; see -help\n", err)
		}
		return exitUsage
	}
	defer debug.SetGCPercent(debug.SetGCPercent(collectAt))
	run := c.run
	if c.schedule != nil {
		run = c.again
	}
	status, err := run(ctx)
	if err != nil {
		fmt.Fprintf(stderr, "redlock-chaos virtual: %v\n", err)
		return exitUnknown
	}
	return status
}

func (c *command) parse(args []string) error {
	names := make([]string, len(c.subjects))
	for i, s := range c.subjects {
		names[i] = s.Subject.Name()
	}
	f := flag.NewFlagSet("redlock-chaos virtual", flag.ContinueOnError)
	f.SetOutput(c.err)
	f.StringVar(&c.subject, "subject", names[0], "the lock: "+strings.Join(names, ", "))
	f.IntVar(&c.batch.N, "schedules", 1000, "how many schedules to run")
	f.Uint64Var(&c.batch.First, "seed", 1, "the seed of the first schedule; the others follow")
	f.StringVar(&c.profile, "profile", "", "the kind of schedules: "+profileNames()+" (default: the first)")
	f.IntVar(&c.masters, "masters", 0, "how many masters, 1 to 9 (default: drawn, or what the lock is for)")
	f.IntVar(&c.batch.Workers, "workers", 0, "how many schedules to run at the same time (default: one per processor)")
	f.BoolVar(&c.batch.On, "on", false, "go on after a violation, and count what each oracle finds")
	f.BoolVar(&c.whole, "whole", false, "do not look for a smaller schedule that fails in the same way")
	f.StringVar(&c.file, "schedule", "", "write the schedule of the first violation to this file")
	f.StringVar(&c.replay, "replay", "", "run the schedule in this file, up to twenty times, and draw it")
	if f.Parse(args) != nil {
		return flag.ErrHelp // f has said why
	}
	return c.check(f.Args(), names)
}

func (c *command) check(rest, names []string) (err error) {
	i := slices.Index(names, c.subject)
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case i < 0:
		return fmt.Errorf("there is no subject %q", c.subject)
	case c.batch.N < 1:
		return fmt.Errorf("-schedules is %d, and must be at least 1", c.batch.N)
	case c.masters < 0 || c.masters > mostMasters:
		return fmt.Errorf("-masters is %d, and %d is the most", c.masters, mostMasters)
	}
	c.batch.Subject, c.batch.Masters = c.subjects[i].Subject, cmp.Or(c.masters, c.subjects[i].Masters)
	if c.batch.Profile, err = FindProfile(c.profile); err != nil || c.replay == "" {
		return err
	}
	file, err := os.Open(c.replay)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	c.schedule, err = Read(file)
	return err
}

func profileNames() string {
	var names []string
	for _, p := range Profiles() {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// run runs the batch.
func (c *command) run(ctx context.Context) (status int, err error) {
	began := time.Now()
	out, err := c.batch.Run(ctx)
	if err != nil {
		return exitUnknown, err
	}
	took := time.Since(began)
	fmt.Fprintf(c.out, "%s, profile %s: %d schedules in %v (%.0f a second): %s\n", c.subject, c.batch.Profile.Name,
		out.Done, took.Round(time.Millisecond), float64(out.Done)/took.Seconds(), out)
	if len(out.Failed) == 0 {
		reasons := out.Unknown(&c.batch)
		if ctx.Err() != nil {
			reasons = append(reasons, "the run was interrupted")
		}
		for _, why := range reasons {
			fmt.Fprintf(c.out, "UNKNOWN: %s\n", why)
		}
		if len(reasons) > 0 {
			return exitUnknown, nil
		}
		fmt.Fprintln(c.out, "pass: no promise was broken")
		return exitPass, nil
	}
	return exitViolation, c.show(ctx, out)
}

// show prints the first violation, and how many schedules each oracle convicts.
func (c *command) show(ctx context.Context, out *Outcome) error {
	for _, line := range out.perOracle() {
		fmt.Fprintln(c.out, line)
	}
	first := out.Failed[0]
	s, oracles := first.Schedule, first.Result.Oracles()
	if !c.whole {
		ctx, cancel := context.WithTimeout(ctx, shrinkFor)
		defer cancel()
		s = Shrink(ctx, c.batch.Subject, s, oracles)
	}
	fmt.Fprintf(c.out, "\nThe first of them, seed %d, in a smaller schedule:\n", s.Seed)
	if _, err := Timeline(c.out, c.batch.Subject, s, oracles, replays); err != nil {
		return err
	}
	if c.file == "" {
		return nil
	}
	text, err := json.MarshalIndent(s, "", " ")
	if err == nil {
		err = os.WriteFile(c.file, append(text, '\n'), 0o644)
	}
	return err
}

// again replays a schedule.
func (c *command) again(ctx context.Context) (status int, err error) {
	failed, n := 0, 0
	var oracles []string
	for ; n < replays && ctx.Err() == nil; n++ {
		r, err := Run(c.batch.Subject, c.schedule)
		if err != nil {
			return exitUnknown, err
		}
		if len(r.Violations) > 0 {
			failed++
			oracles = append(oracles, r.Oracles()...)
		}
	}
	if _, err := Timeline(c.out, c.batch.Subject, c.schedule, oracles, replays); err != nil {
		return exitUnknown, err
	}
	fmt.Fprintf(c.out, "%d of %d runs broke a promise\n", failed, n)
	if failed > 0 {
		return exitViolation, nil
	}
	return exitPass, nil
}
