package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/audit"
	"github.com/seed-624411e5/redlock/cmd/redlock/internal/textfile"
	"github.com/seed-624411e5/redlock/single"
)

func doctorCommand() command {
	return command{
		name:    "doctor",
		summary: "find faults of the masters before they cost a lock",
		help: `
Checks on every master the conditions that locks depend on. The masters must be different servers, and masters, not
replicas. They must neither evict nor forget locks. Their clocks must run at the right rate, and they must answer in
time. This user must have the rights that a lock needs. To check the rights it takes and releases a lock on a separate
key; it changes nothing else.

Each finding says what is wrong, why it matters and how to repair it. "unsafe" means that two holders of one lock are
possible. "risk" means that an event which you must expect would make locks unsafe or unavailable. "note" is worth
knowing. Give the same -restart-guard as your programs do.

With -probe it uses each master by itself instead. It takes locks of every kind on the key redlock-probe, extends,
fences and releases them, lets one expire, and waits for one. It says which operations do not work there. Use it for
servers other than Redis and Valkey, for hosted services, and for proxies. The probe's fencing counter stays, as the
counters of all keys do.

The exit status is 1 if anything is unsafe (with -strict: or a risk; with -probe: or fails), 0 if not, or
    64  bad usage
    69  too few masters can be used, and nothing unsafe was seen
    74  the metrics of -textfile can't be written
    78  -generation is two or more behind, and nothing unsafe was seen`,
		setup: func(fs *flag.FlagSet) action {
			d := &doctor{}
			d.masters.define(fs)
			fs.BoolVar(&d.json, "json", false, "print JSON")
			fs.BoolVar(&d.strict, "strict", false, "exit with 1 for risks too")
			fs.BoolVar(&d.probe, "probe", false, "use each master by itself, and say which operations work there")
			fs.StringVar(&d.textfile, "textfile", "", textfileUsage)
			return d.run
		},
	}
}

type doctor struct {
	masters             masterFlags
	json, strict, probe bool
	textfile            string // for metrics
}

func (d *doctor) run(ctx context.Context, t *terminal, _ []string) error {
	if d.probe && d.textfile != "" {
		return usage("doctor: -probe and -textfile exclude each other")
	}
	if d.probe {
		return d.probeMasters(ctx, t)
	}
	masters, err := d.masters.openLocker(nil)
	if err != nil {
		return err
	}
	defer masters.close()
	report, err := masters.locker.Check(ctx)
	if err != nil {
		return err
	}
	err = t.print(d.json, auditJSON(report, masters), func(out io.Writer) { writeAudit(out, report, masters) })
	if d.textfile != "" {
		err = cmp.Or(err, writeTextfile(d.textfile, auditGauges(report, masters)))
	}
	return cmp.Or(err, d.verdict(report, masters))
}

func (d *doctor) verdict(report *audit.Report, masters *fleet) error {
	switch worst := report.Worst(); {
	case worst >= audit.Unsafe:
		return silently(statusNo)
	case tooFew(report, masters):
		return silently(statusNoQuorum)
	case slices.ContainsFunc(report.Masters, d.isOutdated):
		return silently(statusOutdated)
	case d.strict && worst >= audit.Risk:
		return silently(statusNo)
	}
	return nil
}

// isOutdated reports a master that lets no process with this configuration take a lock.
func (d *doctor) isOutdated(m audit.MasterReport) bool {
	own := d.masters.generation
	return own > 0 && m.Generation > own+1
}

func (d *doctor) probeMasters(ctx context.Context, t *terminal) error {
	masters, err := d.masters.open()
	if err != nil {
		return err
	}
	defer masters.close()
	reports, err := probeAll(ctx, masters.all, d.masters.guard)
	if err != nil {
		return err
	}
	switch err := t.print(d.json, reports, func(out io.Writer) { writeProbes(out, reports) }); {
	case err != nil:
		return err
	case masters.short(func(i int) bool { return !reports[i].unusable }) != nil:
		return silently(statusNoQuorum)
	case slices.ContainsFunc(reports, func(r probeReport) bool { return !r.OK }):
		return silently(statusNo)
	}
	return nil
}

// tooFew reports a set with fewer usable masters than a quorum. A master is unusable if it does not answer, refuses
// this user, or grants no lock. The rest of the audit is not worth much then.
func tooFew(a *audit.Report, f *fleet) bool {
	return f.short(func(i int) bool { return a.Masters[i].Err == nil && a.Masters[i].Unusable == nil }) != nil
}

// auditDocument is an Audit as `redlock doctor -json` prints it.
type auditDocument struct {
	Worst    string           `json:"worst"`
	Findings []findingReport  `json:"findings"`
	Masters  []masterDocument `json:"masters"`
}

type findingReport struct {
	Severity string `json:"severity"`
	Master   string `json:"master,omitempty"`
	What     string `json:"what"`
	Why      string `json:"why"`
	Fix      string `json:"fix"`
}

type masterDocument struct {
	Master      string  `json:"master"`
	Set         string  `json:"set,omitempty"`
	Error       string  `json:"error,omitempty"`
	RunID       string  `json:"run_id,omitempty"`
	Version     string  `json:"version,omitempty"`
	Role        string  `json:"role,omitempty"`
	Uptime      float64 `json:"uptime_seconds"`
	Persistence string  `json:"persistence,omitempty"`
	Generation  uint64  `json:"generation,omitempty"` // absent: it knows none
	Guard       float64 `json:"restart_guard_seconds"`
	Latency     float64 `json:"latency_ms"`
	ClockOffset float64 `json:"clock_offset_ms"`
	ClockRate   float64 `json:"clock_rate"`
}

func auditJSON(a *audit.Report, f *fleet) auditDocument {
	doc := auditDocument{Worst: a.Worst().String(), Findings: []findingReport{}}
	for _, f := range a.Findings {
		doc.Findings = append(doc.Findings, findingReport{f.Severity.String(), f.Master, f.What, f.Why, f.Fix})
	}
	for i, m := range a.Masters {
		r := masterDocument{
			Master: m.Name, Set: f.setsOf(i), RunID: m.RunID, Version: m.Version, Role: m.Role,
			Uptime: m.Uptime.Seconds(), Persistence: m.Persistence,
			Generation: m.Generation, Guard: m.Guard.Seconds(), Latency: millis(m.Latency),
			ClockOffset: millis(m.ClockOffset), ClockRate: m.ClockRate,
		}
		if m.Err != nil {
			r.Error = hidePasswords(m.Err.Error())
		}
		doc.Masters = append(doc.Masters, r)
	}
	return doc
}

// auditGauges returns the metrics of an audit. Metrics that package promobserver also has use the same names.
func auditGauges(a *audit.Report, f *fleet) *textfile.Text {
	usable := func(i int) bool { return a.Masters[i].Err == nil && a.Masters[i].Unusable == nil }
	margin := math.MaxInt
	for _, set := range f.sets {
		margin = min(margin, set.count(usable)-set.quorum())
	}
	text := &textfile.Text{}
	text.One("redlock_masters", "Masters.", float64(len(f.all)))
	text.One("redlock_quorum_margin", "Masters that grant locks, less the quorum: how many more may fail.",
		float64(margin))
	text.Gauge("redlock_doctor_findings", "What is wrong with the masters.")
	findings := make(map[audit.Severity]int)
	for _, finding := range a.Findings {
		findings[finding.Severity]++
	}
	for _, severity := range []audit.Severity{audit.Unsafe, audit.Risk, audit.Note} {
		text.Add("redlock_doctor_findings", float64(findings[severity]), "severity", severity.String())
	}
	text.Gauge("redlock_doctor_usable", "1 for a master that grants locks.")
	for i, m := range a.Masters {
		text.Add("redlock_doctor_usable", number01(usable(i)), "master", m.Name)
	}
	answered := slices.DeleteFunc(slices.Clone(a.Masters), func(m audit.MasterReport) bool { return m.Latency <= 0 })
	if len(answered) == 0 {
		return text
	}
	text.Gauge("redlock_doctor_round_trip_seconds", "How long a master takes to answer.")
	for _, m := range answered {
		text.Add("redlock_doctor_round_trip_seconds", m.Latency.Seconds(), "master", m.Name)
	}
	text.Gauge("redlock_doctor_clock_ahead_seconds", "By how much the clock of a master is ahead of this machine's.")
	for _, m := range answered {
		text.Add("redlock_doctor_clock_ahead_seconds", m.ClockOffset.Seconds(), "master", m.Name)
	}
	return text
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func writeAudit(out io.Writer, a *audit.Report, f *fleet) {
	rows := [][]string{{"MASTER", "ROLE", "VERSION", "UP", "KEEPS ITS DATA", "ROUND TRIP", "CLOCK AHEAD", "CLOCK RATE"}}
	for i := range a.Masters {
		rows = append(rows, auditRow(&a.Masters[i]))
	}
	rows = withGenerations(rows, func(i int) uint64 { return a.Masters[i].Generation })
	writeTable(out, f.withSets(rows))
	for _, f := range together(a.Findings) {
		fmt.Fprintf(out, "\n%s: %s\n", strings.ToUpper(f.Severity.String()), cmp.Or(f.Master, "the set of masters"))
		for _, part := range []string{f.What, "Why: " + f.Why, "Fix: " + f.Fix} {
			fmt.Fprint(out, folded(oneLine(hidePasswords(part)), wide, "    ", "      "))
		}
	}
	fmt.Fprintf(out, "\n%s\n", summary(a, f))
}

// auditRow has a question mark for each fact that a master did not report.
func auditRow(m *audit.MasterReport) []string {
	if errors.As(m.Err, new(*single.GuardError)) {
		return []string{m.Name, "(no vote yet)"}
	}
	if m.Err != nil {
		return []string{m.Name, "(no answer)"}
	}
	row := []string{
		m.Name, cmp.Or(m.Role, "?"), cmp.Or(m.Version, "?"), m.Uptime.String(), cmp.Or(m.Persistence, "?"),
		"?", "?", "?",
	}
	if m.Version == "" {
		row[3] = "?"
	}
	if m.Latency > 0 {
		row[5], row[6] = m.Latency.Round(10*time.Microsecond).String(), m.ClockOffset.Round(10*time.Microsecond).
			String()
		row[7] = fmt.Sprintf("%+.2f%%", math.Round(1e4*m.ClockRate)/1e2+0) // + 0, or there would be a -0
	}
	return row
}

// together joins findings that differ in their master only.
func together(findings []audit.Finding) []audit.Finding {
	var joined []audit.Finding
	place := make(map[audit.Finding]int)
	for _, f := range findings {
		same := f
		same.Master = ""
		if at, seen := place[same]; seen && f.Master != "" {
			joined[at].Master += ", " + f.Master
			continue
		}
		place[same] = len(joined)
		joined = append(joined, f)
	}
	return joined
}

func summary(a *audit.Report, f *fleet) string {
	switch worst := a.Worst(); {
	case worst == audit.Unsafe:
		return "UNSAFE: two holders of one lock are possible with these masters as they are."
	case worst == audit.Risk:
		if tooFew(a, f) {
			return "Too few masters can be used to tell whether they are safe."
		}
		return "Nothing unsafe was found; mind the risks."
	case slices.ContainsFunc(a.Masters, func(m audit.MasterReport) bool { return m.Partly }):
		return "Nothing wrong was seen, but this user may not do all that the doctor tries."
	default:
		return "Nothing is wrong that a server can tell."
	}
}
