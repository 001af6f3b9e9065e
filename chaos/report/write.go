package report

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// Write writes the files: html, json and junit where the caller wants them, and history.jsonl in dir, as input for
// running the oracles again. It makes missing directories. If one file can't be written, Write still writes the others.
func Write(r *Report, htmlFile, jsonFile, junitFile, dir string) error {
	historyFile := filepath.Join(dir, "history.jsonl")
	r.Files = map[string]string{"html": htmlFile, "json": jsonFile, "junit": junitFile, "history": historyFile}
	return errors.Join(
		put(htmlFile, func(f *os.File) error { return HTML(f, r) }),
		put(jsonFile, func(f *os.File) error { return JSON(f, r) }),
		put(junitFile, func(f *os.File) error { return JUnit(f, r) }),
		put(historyFile, func(f *os.File) error { return history.Write(f, r.History) }),
	)
}

func put(name string, write func(*os.File) error) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("report: %s: %w", name, err)
	}
	return nil
}

// JSON writes the report for programs.
func JSON(f *os.File, r *Report) error {
	enc := json.NewEncoder(f)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr,omitempty"`
	Time     float64     `xml:"time,attr"`
	Stamp    string      `xml:"timestamp,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string      `xml:"classname,attr"`
	Name    string      `xml:"name,attr"`
	Time    float64     `xml:"time,attr"`
	Failure *junitFault `xml:"failure,omitempty"`
	Error   *junitFault `xml:"error,omitempty"`
	Skipped *junitFault `xml:"skipped,omitempty"`
	Output  string      `xml:"system-out,omitempty"`
}

type junitFault struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// add counts a case in.
func (s *junitSuite) add(c junitCase) {
	s.Cases = append(s.Cases, c)
	s.Tests++
	s.Time += c.Time
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
}

func (s *junitSuite) write(f *os.File) error {
	if _, err := f.WriteString(xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(f)
	enc.Indent("", "  ")
	return enc.Encode(s)
}

// JUnit writes the report as one test case, a failure for a violation and an error for unknown, and as one more for
// each oracle of the caller's own.
func JUnit(f *os.File, r *Report) error {
	seconds := float64(r.DurationMS) / 1000
	c := junitCase{
		Class: "redlock-chaos." + r.Backend, Name: fmt.Sprintf("%s/%s/seed-%d", r.Subject, r.Scenario, r.Seed),
		Time: seconds,
		Output: fmt.Sprintf("%d operations, %d acquisitions, availability %.4f\n%s\n", r.Operations, r.Acquisitions,
			r.Availability, r.Replay),
	}
	suite := junitSuite{Name: "redlock-chaos", Stamp: r.Started.UTC().Format(time.RFC3339)}
	if r.Failed() {
		fault := &junitFault{Message: string(r.Verdict)}
		for _, reason := range r.Reasons {
			fault.Text += reason + "\n"
		}
		fault.Text += "replay: " + r.Replay + "\n"
		if r.Verdict == Violation {
			c.Failure = fault
		} else {
			c.Error = fault
		}
	}
	suite.add(c)
	for _, name := range slices.Sorted(maps.Keys(r.OwnOracles)) {
		suite.add(oracleCase(c.Class, c.Name+"/"+name, name, r))
	}
	return suite.write(f)
}
