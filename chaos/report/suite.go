package report

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// SuiteRun is one run of several that belong together.
type SuiteRun struct {
	Scenario string
	Seed     uint64
	// Report is what it found; nil when it was not made, for the reason in Skipped or Failed.
	Report  *Report
	Skipped string
	// Failed is why it could not be made, or why its files could not be written.
	Failed string
}

// The statuses of runs without a report.
const (
	Skipped Verdict = "skipped"
	Failed  Verdict = "failed"
)

// Status is the run's verdict; without a report, that it failed or was skipped.
func (s *SuiteRun) Status() Verdict {
	switch {
	case s.Report != nil:
		return s.Report.Verdict
	case s.Failed != "":
		return Failed
	default:
		return Skipped
	}
}

// WriteSuite writes the runs as one JUnit file with a case for each run and oracle, and one for each run's verdict.
func WriteSuite(name string, oracles []string, runs []SuiteRun) error {
	return put(name, func(f *os.File) error {
		suite := junitSuite{Name: "redlock-chaos", Stamp: time.Now().UTC().Format(time.RFC3339)}
		for i := range runs {
			for _, c := range runs[i].cases(oracles) {
				suite.add(c)
			}
		}
		return suite.write(f)
	})
}

// cases are the verdict, with the reasons and the replay line as its text, and each oracle's findings.
func (s *SuiteRun) cases(oracles []string) []junitCase {
	name := fmt.Sprintf("%s/seed-%d", s.Scenario, s.Seed)
	var setup []junitCase
	if s.Failed != "" {
		setup = []junitCase{{Class: "redlock-chaos", Name: name + "/setup", Error: &junitFault{Message: s.Failed}}}
	}
	switch {
	case s.Skipped != "":
		return []junitCase{{Class: "redlock-chaos", Name: name, Skipped: &junitFault{Message: s.Skipped}}}
	case s.Report == nil:
		return setup
	}
	r := s.Report
	class := "redlock-chaos." + r.Backend + "." + r.Subject
	verdict := junitCase{Class: class, Name: name + "/verdict", Time: float64(r.DurationMS) / 1000, Output: r.Replay +
		"\n"}
	text := strings.Join(r.Reasons, "\n") + "\nreplay: " + r.Replay + "\n"
	switch r.Verdict {
	case Violation:
		verdict.Failure = &junitFault{Message: string(r.Verdict), Text: text}
	case Unknown:
		verdict.Error = &junitFault{Message: string(r.Verdict), Text: text}
	}
	out := slices.Concat(setup, []junitCase{verdict})
	for _, oracle := range oracles {
		out = append(out, oracleCase(class, name+"/"+oracle, oracle, r))
	}
	return out
}

// oracleCase is one oracle's finding in a run: a failure, an error for unknown, or a pass.
func oracleCase(class, name, oracle string, r *Report) junitCase {
	c := junitCase{Class: class, Name: name}
	for _, v := range r.Violations {
		switch {
		case v.Oracle != oracle:
		case v.Unknown && c.Error == nil:
			c.Error = &junitFault{Message: v.Text, Text: "replay: " + r.Replay + "\n"}
		case !v.Unknown && c.Failure == nil:
			c.Failure = &junitFault{Message: v.Text, Text: "replay: " + r.Replay + "\n"}
		}
	}
	if c.Failure != nil {
		c.Error = nil
	}
	return c
}

// Markdown writes a table of the runs, for a build server's summary.
func Markdown(w io.Writer, runs []SuiteRun) error {
	cell := strings.NewReplacer("|", "\\|", "\n", " ").Replace
	var b strings.Builder
	b.WriteString("| scenario | seed | verdict | acquisitions | availability | judged | why |\n| --- | ---: | --- | " +
		"---: | ---: | ---: | --- |\n")
	for i := range runs {
		s := &runs[i]
		if s.Report == nil {
			why := cell(cmp.Or(s.Failed, s.Skipped))
			fmt.Fprintf(&b, "| %s | %d | %s | | | | %s |\n", s.Scenario, s.Seed, s.Status(), why)
			continue
		}
		r, why := s.Report, ""
		if len(r.Reasons) > 0 {
			why = cell(r.Reasons[0]) + "; `" + cell(r.Replay) + "`"
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %d | %.3f %% | %d of %d | %s |\n", s.Scenario, s.Seed, r.Verdict,
			r.Acquisitions, 100*r.Availability, r.Service.Attempts, r.Service.Total, why)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
