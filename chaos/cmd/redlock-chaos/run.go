package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/program"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/mutant"
)

// where are the flags that run and controls share: what to run on and where to write.
type where struct {
	backend, proxy, dir, binary  string
	addrs                        addresses
	masters, clients             int
	seed                         uint64
	destructive, aof, tls, quiet bool
	containers                   containerFlags
}

func (w *where) flags(f *flag.FlagSet, dir string) {
	f.StringVar(&w.backend, "backend", "process", "where masters come from: embedded, process, containers or external")
	f.IntVar(&w.masters, "masters", 0, "how many masters (default 5, or as many as the external backend has)")
	f.IntVar(&w.clients, "clients", 5, "how many clients")
	f.Uint64Var(&w.seed, "seed", 1, "what everything is drawn from")
	w.addrs.flags(f)
	f.StringVar(&w.proxy, "proxy", "", "API of a toxiproxy server to use instead of proxies in this process")
	f.BoolVar(&w.destructive, "destructive", false, "allow external masters to be flushed and reconfigured")
	f.BoolVar(&w.aof, "aof", false, "keep data over crashes also where the scenario does not ask for it")
	f.BoolVar(&w.tls, "tls", false, "servers of the process backend speak TLS also where the scenario does not ask "+
		"for it")
	f.StringVar(&w.binary, "binary", "", "server of the process backend (default redis-server or valkey-server)")
	f.StringVar(&w.dir, "dir", dir, "directory for report.html, report.json, junit.xml and history.jsonl")
	f.BoolVar(&w.quiet, "quiet", false, "no progress")
	w.containers.flags(f)
}

func (w *where) config() (chaos.Config, error) {
	cfg := chaos.Config{
		Backend: w.backend, Seed: w.seed, Masters: w.masters, Clients: w.clients, Dir: w.dir,
		Options: masters.Options{
			AOF: w.aof, Secure: w.tls, Binary: w.binary, Proxy: w.proxy, Destructive: w.destructive,
		},
	}
	w.containers.apply(&cfg)
	if w.proxy != "" && cfg.Backend != "external" {
		return cfg,
			fmt.Errorf("-proxy is for -backend external, and it is %s: the clients of other backends have proxies of "+
				"their own", cfg.Backend)
	}
	err := w.addrs.apply(&cfg, w.backend)
	return cfg, err
}

// running are the flags of run.
type running struct {
	where
	suite
	limits                                                chaos.Limits
	duration, ttl                                         time.Duration
	scenario, seeds, file, subject, exec, html, json, xml string
	tokens, neighbours                                    bool
}

func (r *running) flags(f *flag.FlagSet) {
	r.where.flags(f, "chaos-report")
	r.suite.flags(f)
	limitFlags(f, &r.limits)
	f.DurationVar(&r.duration, "duration", 30*time.Second, "how long the workload runs; a plan of -file says so itself")
	f.DurationVar(&r.ttl, "ttl", 0, "ttl of the locks, instead of the scenario's")
	f.StringVar(&r.scenario, "scenario", "everything", "names of scenarios, with commas (see redlock-chaos list), or "+
		"all")
	f.StringVar(&r.seeds, "seeds", "", "run each scenario with these seeds, 1..20, instead of -seed; the files of "+
		"each run are in a directory of its own")
	f.StringVar(&r.file, "file", "", "a scenario of your own, in YAML, instead")
	f.StringVar(&r.subject, "subject", "redlock", "the lock under test, see redlock-chaos list")
	f.BoolVar(&r.neighbours, "neighbours", false, "every client has quiet locks beside the workload, which must not "+
		"be harmed by it")
	f.StringVar(&r.exec, "exec", "", "a program that speaks the line protocol of docs/evidence/chaos.md, with "+
		"arguments, as the lock under test: one process for each client")
	f.BoolVar(&r.tokens, "exec-tokens", false, "the program's locks have fencing tokens")
	f.StringVar(&r.json, "json", "", "write the JSON report here")
	f.StringVar(&r.html, "html", "", "write the HTML report here")
	f.StringVar(&r.xml, "junit", "", "write the JUnit report here")
}

// isSuite reports whether the flags ask for the files of several runs.
func (r *running) isSuite() bool {
	several := r.scenario == "all" || strings.Contains(r.scenario, ",")
	return several || r.seeds != "" || r.markdown != "" || r.repeat > 1
}

// check draws the runs and refuses flags that contradict each other.
func (r *running) check(f *flag.FlagSet) error {
	if err := fileExcludes(f); err != nil {
		return err
	}
	switch {
	case r.isSuite() && (r.json != "" || r.html != ""):
		return errors.New("-json and -html are for a single run")
	case r.parallel > 1 && r.backend == "external":
		return errors.New("runs on the same external masters can't be made at once: -parallel 1")
	}
	return r.draw(r.scenario, r.seeds, r.seed)
}

// config returns the configuration of a run, still without the subject and the plan of a file.
func (r *running) config(f *flag.FlagSet) (chaos.Config, error) {
	if err := r.check(f); err != nil {
		return chaos.Config{}, err
	}
	cfg, err := r.where.config()
	cfg.Scenario, cfg.Duration, cfg.TTL = r.scenario, r.duration, r.ttl
	cfg.Limits, cfg.Neighbours = r.limits, r.neighbours
	cfg.HTML, cfg.JSON, cfg.JUnit = r.html, r.json, r.xml
	return cfg, err
}

// load finds the subject, and reads the plan of a file.
func (r *running) load(cfg *chaos.Config) (err error) {
	if words := strings.Fields(r.exec); len(words) > 0 {
		cfg.Subject = program.Subject(words, r.tokens)
	} else if cfg.Subject, err = chaos.FindSubject(r.subject); err != nil {
		return err
	}
	if r.file != "" {
		if cfg.Plan, err = plan.ParseFile(r.file); err == nil {
			r.scenarios = []string{cfg.Plan.Scenario}
		}
	}
	return err
}

func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runAs(ctx, "run", nil, args, stdout, stderr)
}

// runAs is runCommand under another name and with flags that args may replace.
func runAs(ctx context.Context, command string, defaults, args []string, stdout, stderr io.Writer) int {
	var r running
	f := flagSet(command, stderr)
	r.flags(f)
	if !parsed(f, defaults, stderr) {
		return exitUsage
	}
	f.Visit(func(x *flag.Flag) { x.DefValue = x.Value.String() }) // as -h shows it
	if !parsed(f, args, stderr) {
		return exitUsage
	}
	if name := mutantOf(r.subject); name != "" && mutant.Built() == "" {
		return asMutant(ctx, name, slices.Concat([]string{"run"}, defaults, args), stdout, stderr)
	}
	cfg, err := r.config(f)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", f.Name(), err)
		return exitUsage
	}
	if err := r.load(&cfg); err != nil {
		return setupFailed(stderr, err)
	}
	release, err := claim(r.dir, stderr)
	if err != nil {
		return setupFailed(stderr, err)
	}
	defer release()
	cfg.Replay = replayLine(f)
	end := func() {}
	if !r.quiet && r.parallel == 1 { // lines of several runs would be mixed
		cfg.Progress, end = progress(stderr)
		cfg.Log = stderr
	}
	defer end()
	if r.isSuite() {
		return r.run(ctx, cfg, replayOne(f), stdout, stderr)
	}
	rep, err := chaos.Run(ctx, cfg)
	end()
	switch {
	case rep == nil && errors.Is(err, workload.ErrUnsupported):
		fmt.Fprintf(stdout, "SKIPPED: %s, seed %d: %s\n", r.scenario, r.seed, lacks(err))
		return exitUnknown
	case rep == nil:
		return setupFailed(stderr, err)
	}
	summarize(stdout, rep)
	r.shrinkPlan(ctx, cfg, rep, stdout, stderr)
	if err != nil {
		return setupFailed(stderr, err)
	}
	return exitOf(rep.Verdict)
}

// fileExcludes refuses flags that would be ignored with -file, because the plan decides these settings.
func fileExcludes(f *flag.FlagSet) error {
	given := make(map[string]string)
	f.Visit(func(x *flag.Flag) { given[x.Name] = x.Value.String() })
	if given["file"] == "" {
		return nil
	}
	for _, name := range []string{"duration", "scenario"} {
		if value, both := given[name]; both {
			return fmt.Errorf("-%s %s together with -file %s: the plan in the file says that", name, value,
				given["file"])
		}
	}
	return nil
}

// replayLine is the command that runs the same plan again: all flags that were given, but those that say where to
// write, and the defaults that others may change. Passwords are left out.
func replayLine(f *flag.FlagSet) string {
	given := map[string]bool{"seed": true, "backend": true, "subject": true}
	f.Visit(func(x *flag.Flag) { given[x.Name] = true })
	if given["exec"] {
		delete(given, "subject")
	}
	if !given["file"] {
		given["scenario"], given["duration"] = true, true
	}
	for _, name := range []string{
		"dir", "json", "html", "junit", "quiet", "seeds", "failfast", "markdown", "repeat", "parallel", "shrink",
	} {
		delete(given, name)
	}
	line := "redlock-chaos run"
	f.VisitAll(func(x *flag.Flag) {
		value := x.Value.String()
		if x.Name == "addrs" {
			value = redacted(value)
		}
		switch {
		case !given[x.Name] || value == "":
		case value == "true":
			line += " -" + x.Name
		case strings.ContainsAny(value, " \t\"'$&|;<>()*?"):
			line += fmt.Sprintf(" -%s '%s'", x.Name, strings.ReplaceAll(value, "'", `'\''`))
		default:
			line += fmt.Sprintf(" -%s %s", x.Name, value)
		}
	})
	return line
}

// replayOne is replayLine for one run of several.
func replayOne(f *flag.FlagSet) func(scenario string, seed uint64) string {
	return func(scenario string, seed uint64) string {
		if f.Lookup("file").Value.String() == "" {
			_ = f.Set("scenario", scenario) // flags of these types take these values
		}
		_ = f.Set("seed", strconv.FormatUint(seed, 10))
		return replayLine(f)
	}
}

// mutantOf names the mutant of the engine that a subject takes; empty: none.
func mutantOf(subject string) string {
	for _, c := range chaos.Controls() {
		if c.Subject.Name() == subject {
			return c.Mutant
		}
	}
	return ""
}

// asMutant runs this command in a build with a mutant.
func asMutant(ctx context.Context, name string, args []string, stdout, stderr io.Writer) int {
	m, err := mutant.Find(name)
	if err != nil {
		return setupFailed(stderr, err)
	}
	status, err := m.Run(ctx, mutant.Command, args, stdout, stderr)
	if err != nil {
		return setupFailed(stderr, err)
	}
	return status
}

// progress writes a line that is overwritten, on a terminal, and nothing elsewhere.
func progress(stderr io.Writer) (show func(chaos.Progress), end func()) {
	f, ok := stderr.(*os.File)
	if !ok {
		return nil, func() {}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil, func() {}
	}
	show = func(p chaos.Progress) {
		const width = 24
		done := min(width, int(width*p.Elapsed/max(1, p.Total)))
		fmt.Fprintf(stderr, "\r\x1b[K[%s%s] %5.1fs  %d operations, %d acquired, %d faults  %s",
			strings.Repeat("=", done),
			strings.Repeat(" ", width-done), p.Elapsed.Seconds(), p.Operations, p.Acquired, p.Faults,
			strings.Join(p.On, " "))
	}
	return show, func() { fmt.Fprint(stderr, "\r\x1b[K") }
}

func summarize(w io.Writer, r *report.Report) {
	promise := "within the assumptions"
	if !r.Inside {
		promise = "outside the assumptions: overlaps are allowed, token order is not"
	}
	fmt.Fprintf(w, "%s: %s in %s (%s), %s, %d masters, %d clients, seed %d\n", strings.ToUpper(string(r.Verdict)),
		r.Subject, r.Scenario, promise, r.Backend, r.Masters, r.Clients, r.Seed)
	for _, reason := range r.Reasons {
		fmt.Fprintf(w, "  ! %s\n", reason)
	}
	fmt.Fprintf(w, "  %d operations, %d acquisitions, p50 %.1f ms, p99 %.1f ms, max %.1f ms\n", r.Operations,
		r.Acquisitions, r.Latency.P50, r.Latency.P99, r.Latency.Max)
	fmt.Fprintf(w, "  overlaps %d, token violations %d, orphans %d, lost updates %d, stale writes refused %d\n",
		r.Overlaps, r.TokenViolations, r.Orphans, r.LostUpdates, r.StaleWrites)
	fmt.Fprintf(w, "  availability %.4f %% (judged %d of %d attempts), longest outage %.0f ms, longest recovery %.0f "+
		"ms, unexpected errors %d\n",
		100*r.Availability, r.Service.Attempts, r.Service.Total, r.OutageMSMax, r.RecoveryMSMax, r.UnexpectedErrors)
	names := make([]string, 0, len(r.Faults))
	for name, n := range r.Faults {
		names = append(names, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(names)
	fmt.Fprintf(w, "  faults: %s\n", strings.Join(names, ", "))
	for _, note := range r.Notes {
		fmt.Fprintf(w, "  note: %s\n", note)
	}
	fmt.Fprintf(w, "  report: %s\n  replay: %s\n", r.Files["html"], r.Replay)
}
