package sim

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/internal/mutant"
)

// The exit statuses of Main.
const (
	exitPass      = 0
	exitViolation = 1
	exitUsage     = 2
	exitUnknown   = 3
)

// memoryLimit is at how many bytes garbage is collected. Only a megabyte or two are alive, and runs leave a great deal
// of garbage: looking for it at every few megabytes took a quarter of the time.
const memoryLimit = 320 << 20

// options are the values of the command line's flags.
type options struct {
	schedules int
	seed      uint64
	masters   int
	workers   int
	profile   string
	broken    string
	unbroken  bool
	report    string
	replay    string
	timeline  bool
	whole     bool
	quiet     bool
	on        bool
	night     bool
	same      string
}

// Main is the command `redlock-chaos sim`: it runs schedules, shows its progress and prints its
// findings. The exit status is 0 for a pass, 1 for a violation, 2 for wrong usage and for -help,
// and 3 when the run was interrupted or could not be judged. If a schedule needs a mutant of the
// engine, Main builds a program with it, and so needs the go command and a checkout.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, status, ok := parse(args, stderr)
	if !ok {
		return status
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	if o.replay != "" {
		return replay(ctx, o, args, stdout, stderr)
	}
	if o.night {
		return night(ctx, o, stdout, stderr)
	}
	b, err := o.batch()
	if err != nil {
		fmt.Fprintf(stderr, "redlock-chaos sim: %v\n", err)
		return exitUsage
	}
	if b.Broken.Mutant != "" && mutant.Built() == "" {
		return asMutant(ctx, b.Broken.Mutant, args, stdout, stderr)
	}
	out, r := o.run(ctx, b, stderr)
	return conclude(ctx, o, b, out, r, stdout, stderr)
}

// run runs a batch, with a bar, and begins its report.
func (o *options) run(ctx context.Context, b *Batch, stderr io.Writer) (*Outcome, *report) {
	if !o.quiet {
		b.Progress = newBar(stderr, b.N).show
	}
	began := time.Now()
	out := b.Run(ctx)
	took := time.Since(began)
	if !o.quiet {
		fmt.Fprint(stderr, "\r\x1b[K")
	}
	return out, &report{
		Verdict: "pass", Profile: b.Profile.Name, FirstSeed: b.First, Schedules: out.Done, Events: out.Steps,
		Seconds: took.Seconds(), Rate: float64(out.Done) / took.Seconds(), Counts: out.Counts,
		Judged: out.Judged, Passed: out.Passed,
	}
}

func parse(args []string, stderr io.Writer) (o *options, status int, ok bool) {
	o = &options{}
	f := flag.NewFlagSet("redlock-chaos sim", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.schedules, "schedules", 20_000, "how many schedules to run")
	f.Uint64Var(&o.seed, "seed", 1, "the seed of the first schedule; the others follow")
	f.IntVar(&o.masters, "masters", 0, "how many masters, 1 to 9 (default: drawn)")
	f.IntVar(&o.workers, "workers", 0, "how many schedules to run at the same time (default: one per processor)")
	f.StringVar(&o.profile, "profile", "", "what kind of schedules: "+names(Profiles(), func(p Profile) string {
		return p.Name
	})+" (default: the first)")
	f.StringVar(&o.broken, "broken", "", "make a mistake on purpose: "+names(Controls(), func(c Control) string {
		return c.Name
	})+"; or with -profile any mutant of docs/evidence/mutants.md")
	f.BoolVar(&o.unbroken, "unbroken", false, "with -broken: do not make the mistake, but look for it in the same "+
		"schedules")
	f.StringVar(&o.report, "json", "", "write the result to this file")
	f.StringVar(&o.replay, "replay", "", "run the schedule in this file, the result of an earlier run, and draw it")
	f.BoolVar(&o.timeline, "timeline", false, "draw the first schedule, also if nothing is wrong with it")
	f.BoolVar(&o.whole, "whole", false, "do not look for a smaller schedule that fails in the same way")
	f.BoolVar(&o.on, "on", false, "go on after a violation, and count what each oracle finds, also with -broken")
	f.BoolVar(&o.night, "night", false, "run every profile in which all is promised, -schedules in all, and fail "+
		"where an interleaving of docs/evidence/interleavings.md never happened")
	f.StringVar(&o.same, "same", "", "with -night and -json: compare the result with this one of another version, "+
		"and fail unless all but times is equal")
	f.BoolVar(&o.quiet, "quiet", false, "no progress bar; there is none in a file or a pipe")
	if f.Parse(args) != nil { // f has said why
		return o, exitUsage, false
	}
	o.quiet = o.quiet || !isWatched(stderr)
	if err := o.check(f.Args()); err != nil {
		fmt.Fprintf(stderr, "redlock-chaos sim: %v; see -help\n", err)
		return o, exitUsage, false
	}
	return o, exitPass, true
}

// check reports an error in flags that could be parsed, and rejects arguments that are not flags.
func (o *options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case o.schedules < 1:
		return fmt.Errorf("-schedules is %d, and must be at least 1", o.schedules)
	case o.masters < 0 || o.masters > mostMasters:
		return fmt.Errorf("-masters is %d, and %d is the most", o.masters, mostMasters)
	case o.night && (o.profile != "" || o.broken != "" || o.masters > 0 || o.replay != "" || o.timeline || o.on):
		return errors.New("-night is every profile as it is: it goes with -schedules, -seed, -workers, -json, -same, " +
			"-whole and -quiet")
	case o.same != "" && (!o.night || o.report == ""):
		return errors.New("-same compares the results of two nights: it goes with -night and -json")
	case o.unbroken && o.broken == "":
		return errors.New("-unbroken is for -broken, and says not to make that mistake")
	default:
		return nil
	}
}

func names[V any](all []V, name func(V) string) string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = name(v)
	}
	return strings.Join(out, ", ")
}

// batch returns the batch that the options describe. A negative control uses its own profile,
// unless the options name another.
func (o *options) batch() (*Batch, error) {
	b := &Batch{First: o.seed, N: o.schedules, Masters: o.masters, Workers: o.workers, StopAfter: 1}
	if o.on {
		b.StopAfter = 0
	}
	if err := o.choose(b); err != nil {
		return nil, err
	}
	if b.Profile.exchanges && o.masters > 0 {
		return nil, fmt.Errorf("-masters says how many there are, and the profile %s draws two sets", b.Profile.Name)
	}
	return b, nil
}

// choose sets the mistake and the profile of a batch.
func (o *options) choose(b *Batch) error {
	if o.broken != "" {
		controls := Controls()
		i := slices.IndexFunc(controls, func(c Control) bool { return c.Name == o.broken })
		_, err := mutant.Find(o.broken)
		switch {
		case i >= 0:
			b.Broken, b.Oracles, b.Profile = controls[i].Broken, controls[i].Oracles, controls[i].Profile
		case err == nil && o.profile != "":
			b.Broken.Mutant = o.broken
		default:
			return fmt.Errorf("no mistake is called %q", o.broken)
		}
		if o.on {
			b.Oracles = nil
		}
		if o.unbroken {
			b.Broken = BrokenVariants{}
		}
	}
	if o.profile == "" && o.broken != "" {
		return nil
	}
	if o.profile == "" {
		b.Profile = Profiles()[0]
		return nil
	}
	var ok bool
	if b.Profile, ok = Named(o.profile); !ok {
		return fmt.Errorf("no profile is called %q", o.profile)
	}
	return nil
}

// report is the content of the -json file.
type report struct {
	Verdict   string             `json:"verdict"`
	Profile   string             `json:"profile"`
	FirstSeed uint64             `json:"first_seed"`
	Schedules int                `json:"schedules"`
	Events    int                `json:"events"`
	Seconds   float64            `json:"seconds"`
	Rate      float64            `json:"schedules_per_second"`
	Judged    map[string]int     `json:"judged"` // steps, by the specification
	Passed    int                `json:"passed"` // and those that it does not judge
	Counts    Counts             `json:"counts"`
	Findings  map[string]Finding `json:"findings,omitempty"` // with -on, by oracle
	Seed      uint64             `json:"failed_seed,omitempty"`
	Found     []oracle.Violation `json:"found,omitempty"`
	Replay    string             `json:"replay,omitempty"`
	Schedule  *Schedule          `json:"schedule,omitempty"` // the shrunk one
}

// conclude prints the batch's findings, shrinks and draws the first failure, and writes the report.
func conclude(ctx context.Context, o *options, b *Batch, out *Outcome, r *report, stdout, stderr io.Writer) int {
	status := exitPass
	switch {
	case len(out.Failures) > 0:
		r.Verdict, status = "violation", exitViolation
	case ctx.Err() != nil:
		r.Verdict, status = "interrupted", exitUnknown
	}
	fmt.Fprintf(stdout, "%d schedules %s in %v: %.0f a second, %.0f events each\n", out.Done, b.Profile.About,
		time.Duration(r.Seconds*1e9).Round(time.Millisecond), r.Rate, float64(out.Steps)/float64(max(1, out.Done)))
	fmt.Fprintln(stdout, out.specified())
	fmt.Fprint(stdout, out.Counts.table())
	if o.on {
		r.Findings = out.Findings()
		for _, name := range slices.Sorted(maps.Keys(r.Findings)) {
			n := r.Findings[name]
			fmt.Fprintf(stdout, "%s: %d of %d schedules, %d of them alone, first seed %d\n", name, n.Schedules,
				out.Done, n.Alone, n.First)
		}
	}
	if f := out.worst(); f != nil {
		status = explain(ctx, o, b, f, r, stdout)
	} else if o.timeline {
		draw(b.Schedule(o.seed), stdout)
	}
	fmt.Fprintf(stdout, "verdict: %s\n", r.Verdict)
	return o.save(r, status, stderr)
}

// shrinkFor bounds how long a failure is shrunk.
const shrinkFor = 20 * time.Second

// explain shows one failure.
func explain(ctx context.Context, o *options, b *Batch, f *Failure, r *report, stdout io.Writer) int {
	r.Seed, r.Found, r.Replay = f.Seed, f.Violations, o.command(f.Seed)
	fmt.Fprintf(stdout, "\nseed %d:\n", f.Seed)
	if f.Err != nil {
		r.Verdict = "unknown"
		fmt.Fprintf(stdout, "  %v\nreplay: %s\n", f.Err, r.Replay)
		return exitUnknown
	}
	for _, v := range f.Violations {
		fmt.Fprintf(stdout, "  %s\n", v)
	}
	if !b.Profile.Promised && o.broken == "" { // only oracles that find nothing without the mistake count
		fmt.Fprintf(stdout, "\nThis was to be expected %s: nothing is promised there.\n", b.Profile.About)
		r.Verdict = "violation, as expected " + b.Profile.About
	}
	if o.whole {
		r.Schedule = b.Schedule(f.Seed)
		fmt.Fprintf(stdout, "replay: %s\n", r.Replay)
		return exitViolation
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shrinkFor)
	defer cancel()
	r.Schedule = Shrink(ctx, b.Schedule(f.Seed), oracle.NamesOf(f.Violations))
	fmt.Fprintln(stdout, "\nthe smallest schedule found that fails in the same way:")
	draw(r.Schedule, stdout)
	fmt.Fprintf(stdout, "replay: %s\n", r.Replay)
	if o.report != "" {
		fmt.Fprintf(stdout, "replay the shrunk one: go run ./chaos/cmd/redlock-chaos sim -replay %s\n", o.report)
	}
	return exitViolation
}

// command returns the command that replays one seed.
func (o *options) command(seed uint64) string {
	s := fmt.Sprintf("go run ./chaos/cmd/redlock-chaos sim -schedules 1 -seed %d", seed)
	if o.profile != "" {
		s += " -profile " + o.profile
	}
	if o.broken != "" {
		s += " -broken " + o.broken
	}
	if o.unbroken {
		s += " -unbroken"
	}
	if o.masters > 0 {
		s += fmt.Sprintf(" -masters %d", o.masters)
	}
	return s
}

func draw(s *Schedule, stdout io.Writer) {
	traced, err := RunTraced(s)
	if err == nil {
		err = Timeline(stdout, s, traced)
	}
	if err != nil {
		fmt.Fprintf(stdout, "  %v\n", err)
	}
}

// save writes the result to the file of -json, if there is one, and returns the status to exit with.
func (o *options) save(result any, status int, stderr io.Writer) int {
	if o.report == "" {
		return status
	}
	encoded, err := json.MarshalIndent(result, "", "  ")
	if err == nil {
		err = os.WriteFile(o.report, append(encoded, '\n'), 0o600)
	}
	if err != nil {
		fmt.Fprintf(stderr, "redlock-chaos sim: %v\n", err)
		return max(status, exitUnknown)
	}
	return status
}

// replay runs the schedule of a report, or one by itself.
func replay(ctx context.Context, o *options, args []string, stdout, stderr io.Writer) int {
	s, err := readSchedule(o.replay)
	if err != nil {
		fmt.Fprintf(stderr, "redlock-chaos sim: %v\n", err)
		return exitUsage
	}
	if s.Broken.Mutant != "" && mutant.Built() == "" {
		return asMutant(ctx, s.Broken.Mutant, args, stdout, stderr)
	}
	r, err := RunTraced(s)
	if err == nil {
		err = Timeline(stdout, s, r)
	}
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "redlock-chaos sim: %v\n", err)
		return exitUnknown
	case len(r.Violations) > 0:
		return exitViolation
	default:
		return exitPass
	}
}

func readSchedule(path string) (*Schedule, error) {
	encoded, err := os.ReadFile(path)
	if err != nil {
		return nil, err // it names the file
	}
	var r report
	if err := json.Unmarshal(encoded, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.Schedule != nil {
		return r.Schedule, nil
	}
	var s Schedule
	if err := json.Unmarshal(encoded, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(s.Masters) == 0 {
		return nil, fmt.Errorf("%s: there is no schedule in it", path)
	}
	return &s, nil
}
