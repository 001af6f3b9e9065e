package report_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sample is a report of a run with that many acquisitions. One acquisition overlaps the one before.
func sample(acquisitions int) *report.Report {
	var events []history.Event
	const step = int64(3 * time.Millisecond)
	for i := range acquisitions {
		at := int64(i) * step
		e := history.Event{
			At: at, Type: history.AcquireCall, Client: i % 5, Attempt: uint64(i + 1),
			Key: fmt.Sprintf("key</script>%d", i%4), Owner: fmt.Sprint("o", i),
		}
		events = append(events, e)
		e.Type, e.At, e.Outcome, e.Until = history.AcquireReturn, at+step/3, history.Acquired, at+50*step
		events = append(events, e,
			history.Event{At: at + step, Type: history.ReleaseCall, Attempt: e.Attempt},
			history.Event{
				At: at + step + 1, Type: history.ReleaseReturn, Attempt: e.Attempt, Outcome: history.Acquired,
			})
	}
	middle := int64(acquisitions) / 2 * step
	events = append(events,
		history.Event{At: middle, Type: history.FaultOn, Name: "silence", Note: "silence on master 1"},
		history.Event{At: middle, Type: history.MajorityLost, Client: 2},
		history.Event{At: middle + 100*step, Type: history.FaultOff, Name: "silence"},
		history.Event{At: middle + 100*step, Type: history.MajorityBack, Client: 2})
	violation := oracle.Violation{
		Oracle: oracle.NameOverlap, Key: "key", At: middle, Attempts: []uint64{3, 4}, Text: "held twice <b>&",
	}
	return &report.Report{
		Verdict: report.Violation, Reasons: []string{"overlap: held twice"}, Seed: 1<<63 + 1, Replay: "redlock-chaos " +
			"run -seed 7",
		Subject: "redlock", Backend: "process", Scenario: "partitions", Text: "A text.", Inside: true,
		Workload: "hot-key",
		Masters:  5, Clients: 5, DurationMS: 1234, Started: time.Unix(1, 0), Operations: 2 * acquisitions,
		Acquisitions: acquisitions, Overlaps: 1, Availability: 0.5, Faults: map[string]int{"silence": 1},
		Observed:    map[string]string{"silence": "on 5 paths"},
		Unavailable: map[string]string{"clock-rate": "no compiler"},
		Violations:  []oracle.Violation{violation}, Allowed: []oracle.Violation{violation}, Notes: []string{"a note"},
		History: events, Watched: []string{"key"}, Samples: []report.Sample{
			{At: 0, Master: 0, Up: true, Owners: []string{"o1"}},
			{At: middle, Master: 1, Owners: []string{""}},
			{At: middle, Master: 2, Up: true, Owners: []string{"stranger"}},
		},
		Votes: []report.Votes{
			{Granted: 3, Refused: 2, Unknown: 1, Over: [][3]int{{2, 1, 0}, {1, 1, 1}}},
			{Master: 1, Granted: 5, Over: [][3]int{{2, 0, 0}, {3, 0, 0}}},
		},
		VoteBucket: time.Second,
	}
}

func write(t *testing.T, r *report.Report) string {
	t.Helper()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	must(t, report.Write(r, in("a/report.html"), in("report.json"), in("b/c/junit.xml"), in("d")))
	return dir
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elements...))
	must(t, err)
	return string(b)
}

func TestThePageNeedsNoOtherFiles(t *testing.T) {
	page := strings.ReplaceAll(read(t, write(t, sample(50)), "a", "report.html"), "'href', '#'", "") // within the page
	for _, outside := range []string{"src=", "href", "@import", "url(", "http://", "https://", "fetch("} {
		if strings.Contains(page, outside) {
			t.Errorf("the page has %q", outside)
		}
	}
	if n := strings.Count(page, "</script>"); n != 2 {
		t.Errorf("%d script elements end, want 2: data escapes from its element", n)
	}
	if strings.Contains(page, "__DATA__") || strings.Contains(page, "__SCRIPT__") {
		t.Error("a placeholder is left")
	}
}

func TestJSONAndHistoryReadBack(t *testing.T) {
	r := sample(10)
	dir := write(t, r)
	var got report.Report
	must(t, json.Unmarshal([]byte(read(t, dir, "report.json")), &got))
	if got.Seed != r.Seed || got.Verdict != r.Verdict || got.Violations[0].Text != r.Violations[0].Text ||
		got.Files["html"] == "" {
		t.Errorf("read back %+v", got)
	}
	events, err := history.Read(strings.NewReader(read(t, dir, "d/history.jsonl")))
	if err != nil || len(events) != len(r.History) {
		t.Errorf("%d events, %v", len(events), err)
	}
}

func TestJUnitTellsViolationFromUnknownFromPass(t *testing.T) {
	for verdict, want := range map[report.Verdict][2]int{
		report.Pass: {0, 0}, report.Violation: {1, 0}, report.Unknown: {0, 1},
	} {
		r := sample(5)
		r.Verdict = verdict
		var suite struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Errors   int `xml:"errors,attr"`
			Cases    []struct {
				Name    string `xml:"name,attr"`
				Failure string `xml:"failure"`
				Error   string `xml:"error"`
			} `xml:"testcase"`
		}
		must(t, xml.Unmarshal([]byte(read(t, write(t, r), "b/c/junit.xml")), &suite))
		text := suite.Cases[0].Failure + suite.Cases[0].Error
		if suite.Tests != 1 || suite.Failures != want[0] || suite.Errors != want[1] || (text != "") != r.Failed() {
			t.Errorf("%s: %+v", verdict, suite)
		}
		if r.Failed() && !strings.Contains(text, "replay: redlock-chaos run -seed 7") {
			t.Errorf("%s says %q", verdict, text)
		}
	}
}

func TestWriteSaysWhichFileItCouldNotWrite(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	r := sample(2)
	err := report.Write(r, filepath.Join(file, "x.html"), filepath.Join(dir, "r.json"), filepath.Join(dir, "j.xml"),
		dir)
	if err == nil || !strings.Contains(err.Error(), "file") {
		t.Errorf("error %v", err)
	}
	read(t, dir, "r.json") // the others are there
	read(t, dir, "history.jsonl")
}

// browser finds a headless Chromium, or returns nothing.
func browser() string {
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// opened returns the state of the report's page after its script ran in a browser, or nothing if there is no browser.
func opened(t *testing.T, r *report.Report) string {
	t.Helper()
	path := browser()
	if path == "" {
		t.Log("LOUD: no Chromium on PATH, so the page's script is not run")
		return ""
	}
	page := filepath.Join(write(t, r), "a", "report.html")
	cmd := exec.CommandContext(t.Context(), path, "--headless", "--no-sandbox", "--disable-gpu",
		"--enable-logging=stderr",
		"--user-data-dir="+t.TempDir(), "--window-size=1400,1200", "--virtual-time-budget=3000", "--dump-dom",
		"file://"+page)
	var log strings.Builder
	cmd.Stderr = &log
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, log.String())
	}
	if strings.Contains(log.String(), "Uncaught") || strings.Contains(log.String(), "CONSOLE") {
		t.Errorf("the script complained: %s", log.String())
	}
	return string(dom)
}

// TestThePageDrawsItsTimelineInABrowser opens the page of a run with thousands of acquisitions. The script marks the
// page when it has come to its end, and marks the canvas with the number of attempts that it drew.
func TestThePageDrawsItsTimelineInABrowser(t *testing.T) {
	const acquisitions = 6000
	dom := opened(t, sample(acquisitions))
	if dom == "" {
		return
	}
	if !strings.Contains(dom, fmt.Sprintf(`data-ready="%d"`, acquisitions)) {
		t.Error("the script did not come to its end")
	}
	// The three busiest of four keys are shown at first.
	drawn := regexp.MustCompile(`data-drawn="(\d+)"`).FindStringSubmatch(dom)
	if len(drawn) != 2 || drawn[1] != "4500" {
		t.Errorf("the timeline drew %v attempts, want 4500", drawn)
	}
	for _, text := range []string{
		"held twice &lt;b&gt;&amp;", "no compiler", "a note", "redlock-chaos run -seed 7", "50 %",
	} {
		if !strings.Contains(dom, text) {
			t.Errorf("the page does not show %q", text)
		}
	}
}

func TestThePageDrawsVotesOnlyIfThereAreAny(t *testing.T) {
	const hidden = `<section id="votes" hidden="">`
	with := sample(6000)
	dom := opened(t, with)
	if dom == "" {
		return
	}
	if !strings.Contains(dom, `data-votes="11"`) || strings.Contains(dom, hidden) {
		t.Error("the page does not draw the 11 votes")
	}
	with.Votes = nil
	if dom = opened(t, with); strings.Contains(dom, "data-votes") || !strings.Contains(dom, hidden) {
		t.Error("the page draws votes, and there are none")
	}
}

func TestARunShowsNothingIfTheMachineGaveItNoTime(t *testing.T) {
	found := []oracle.Violation{{Oracle: oracle.NameValidity, Unknown: true}}
	unjudged := []oracle.Violation{{Oracle: oracle.NameAvailability, Unknown: true}}
	judged := func(attempts, of int, releases oracle.Tally) report.Report {
		return report.Report{
			Verdict: report.Unknown, Service: oracle.Service{Attempts: attempts, Total: of},
			Operated: oracle.Operated{Releases: releases},
		}
	}
	for name, tt := range map[string]struct {
		rep  report.Report
		want bool
	}{
		"no time at all":               {report.Report{Starved: true, Verdict: report.Unknown}, true},
		"no verdict for other reasons": {report.Report{Verdict: report.Unknown}, false},
		"it passed":                    {report.Report{Starved: true, Verdict: report.Pass}, false},
		"it was convicted":             {report.Report{Starved: true, Verdict: report.Violation}, false},
		"too few attempts were judged": {
			report.Report{Starved: true, Verdict: report.Unknown, Violations: unjudged}, true,
		},
		"something was found": {report.Report{Starved: true, Verdict: report.Unknown, Violations: found}, false},
		"9 of 100 attempts":   {judged(9, 100, oracle.Tally{}), true},
		"10 of 100 attempts":  {judged(10, 100, oracle.Tally{}), false},
		"99 of 5000 attempts": {judged(99, 5000, oracle.Tally{}), true},
		"100 of 5000":         {judged(100, 5000, oracle.Tally{}), false},
		"none of 12 releases": {judged(0, 0, oracle.Tally{Ended: 12}), true},
		"one of 12 releases":  {judged(0, 0, oracle.Tally{Ended: 12, Judged: 1}), false},
	} {
		if got := tt.rep.ShowsNothing(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
