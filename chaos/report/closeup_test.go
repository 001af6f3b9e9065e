package report_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

const msec = int64(time.Millisecond)

// twice is a report of a run with one overlap on three masters. Client 0 has the key from 10 ms on, through masters 0
// and 1. Then master 1 is killed, and client 1 has the key from 40 ms on, through masters 1 and 2.
func twice() *report.Report {
	step := plan.Step{
		At: plan.Duration(20 * time.Millisecond), For: plan.Duration(10 * time.Millisecond), Fault: "kill-empty",
		Masters: []int{1},
	}
	hold := func(client int, attempt uint64, owner string, call, granted, release int64) []history.Event {
		e := history.Event{
			Type: history.AcquireCall, Client: client, Worker: client, Attempt: attempt, Key: "k", At: call * msec,
		}
		r := e
		r.Type, r.At, r.Outcome, r.Owner, r.Until = history.AcquireReturn, granted*msec, history.Acquired, owner,
			200*msec
		return []history.Event{
			e, r, {Type: history.ReleaseCall, Client: client, Attempt: attempt, Key: "k", At: release * msec},
		}
	}
	r := &report.Report{
		Verdict: report.Violation, Scenario: "s", Subject: "x", Masters: 3, Clients: 2, Replay: "redlock-chaos run " +
			"-seed 3", Seed: 3,
		Plan: &plan.Plan{Masters: 3, Clients: 2, Steps: []plan.Step{step}}, Watched: []string{"other", "k"},
		Violations: []oracle.Violation{
			{Oracle: oracle.NameOverlap, Key: "k", At: 40 * msec, Attempts: []uint64{1, 2}, Text: "held twice"},
			{Oracle: oracle.NameLiveness, Text: "of no attempt"},
		},
		History: slices.Concat(hold(0, 1, "one", 0, 10, 80), hold(1, 2, "two", 5, 40, 90), []history.Event{
			{Type: history.FaultOn, Name: "kill-empty", At: 20 * msec, Note: step.String()},
			{Type: history.FaultOff, Name: "kill-empty", At: 30 * msec},
			{Type: history.Stall, At: 60 * msec, Value: 5 * msec, Note: "master 2 had to wait for 5ms"},
		}),
		Samples: []report.Sample{
			{At: 12 * msec, Master: 0, Up: true, Owners: []string{"", "one"}},
			{At: 12 * msec, Master: 1, Up: true, Owners: []string{"", "one"}},
			{At: 25 * msec, Master: 1, Owners: []string{"", ""}},
			{At: 45 * msec, Master: 0, Up: true, Owners: []string{"", "one"}},
			{At: 45 * msec, Master: 1, Up: true, Owners: []string{"", "two"}},
			{At: 45 * msec, Master: 2, Up: true, Owners: []string{"", "stranger"}},
		},
	}
	vote := func(client, master int, start, at int64, v workload.Vote) {
		r.Ballots = append(r.Ballots,
			report.Ballot{Start: start * msec, At: at * msec, Client: client, Ballot: workload.Ballot{
				Master: master, Op: workload.OpAcquire, Keys: []string{"other", "k"}, Vote: v,
			}})
	}
	vote(0, 0, 1, 9, workload.VoteGranted)
	vote(0, 1, 1, 8, workload.VoteGranted)
	vote(0, 2, 1, 12, workload.VoteUnknown)
	for m, v := range []workload.Vote{workload.VoteRefused, workload.VoteRefused, workload.VoteGranted} {
		vote(1, m, 6, 7, v) // a round that was lost
	}
	for m, v := range []workload.Vote{workload.VoteRefused, workload.VoteGranted, workload.VoteGranted} {
		vote(1, m, 38, 39, v)
	}
	return r
}

// drawn is the page script's input for close-ups.
type drawn struct {
	Faults []struct {
		Name, Target string
		Masters      []int
	}
	Closeups []struct {
		List     string
		Index    int
		From, To int64
		Holds    []struct {
			Client    int
			End, Call int64
			Text      string
		}
		Masters []struct {
			States [][3]int64
			Votes  [][]any
			Cells  []string
			Faults string
		}
	}
}

func data(t *testing.T, r *report.Report) (d drawn) {
	t.Helper()
	page := read(t, write(t, r), "a", "report.html")
	_, rest, _ := strings.Cut(page, `id="data">`)
	raw, _, found := strings.Cut(rest, "</script>")
	if err := json.Unmarshal([]byte(raw), &d); err != nil || !found {
		t.Fatalf("the page's data: %v", err)
	}
	return d
}

func TestAViolationHasACloseUp(t *testing.T) {
	d := data(t, twice())
	if len(d.Closeups) != 1 || d.Closeups[0].List != "violations" || d.Closeups[0].Index != 0 ||
		len(d.Closeups[0].Holds) != 2 {
		t.Fatalf("close-ups %+v, want one of the violation that has attempts", d.Closeups)
	}
	c := d.Closeups[0]
	for i, want := range []string{
		"Client 0 asked at 0.0000 s and had the key from 0.0100 s to 0.0800 s; its bound was 0.2000 s. Its last " +
			"round began at 0.0010 s: of 3 masters granted: 0 1; unknown: 2.",
		"Client 1 asked at 0.0050 s and had the key from 0.0400 s to 0.0900 s; its bound was 0.2000 s. Its last " +
			"round began at 0.0380 s: of 3 masters granted: 1 2; refused: 0.",
	} {
		if c.Holds[i].Text != want {
			t.Errorf("of hold %d it says\n%s\nwant\n%s", i, c.Holds[i].Text, want)
		}
	}
	for m, want := range [][]string{
		{"granted after 8ms; had A at 0.0120 s", "refused after 1ms; had A at 0.0450 s", ""},
		{"granted after 7ms; had A at 0.0120 s", "granted after 1ms; had B at 0.0450 s", "kill-empty, 0.0200 s to " +
			"0.0300 s"},
		{"unknown after 11ms; had another at 0.0450 s", "granted after 1ms; had another at 0.0450 s", ""},
	} {
		got := append(slices.Clone(c.Masters[m].Cells), c.Masters[m].Faults)
		if !slices.Equal(got, want) {
			t.Errorf("of master %d it says %q, want %q", m, got, want)
		}
	}
	if c.From > 1000 || c.To < 90_000 {
		t.Errorf("it shows %d to %d µs", c.From, c.To)
	}
	// Of master 1: client 0, no answer, client 1. The lost round of client 1 is drawn, too.
	if s := c.Masters[1].States; len(s) != 3 || s[0][2] != 0 || s[1][2] != -3 || s[2][2] != 1 ||
		len(c.Masters[1].Votes) != 3 {
		t.Errorf("master 1 had %v, votes %v", s, c.Masters[1].Votes)
	}
}

func TestTargetsOfFaultsAreNamed(t *testing.T) {
	second := plan.Duration(time.Second)
	p := &plan.Plan{Masters: 5, Clients: 2}
	r := twice()
	r.History, r.Plan, r.Violations = nil, p, nil
	for i, x := range []struct {
		step plan.Step
		want string
	}{
		{plan.Step{Fault: "pause", Masters: []int{0, 3}}, "masters 0 3"},
		{plan.Step{Fault: "silence", Masters: []int{2}, Clients: []int{0, 1}}, "master 2, clients 0 1"},
		{plan.Step{Fault: "client-pause", Clients: []int{1}}, "client 1"},
		{plan.Step{Fault: "script-flush"}, ""},
		{plan.Step{Fault: "isolate-client", Clients: []int{1}}, "client 1 without all masters"},
		{plan.Step{Fault: "bridge"}, "client 0 without masters 3 4; client 1 without masters 0 1"},
	} {
		x.step.At, x.step.For = plan.Duration(i)*second, second
		p.Steps = append(p.Steps, x.step)
		r.History = append(r.History,
			history.Event{Type: history.FaultOn, At: int64(x.step.At), Name: x.step.Fault, Note: x.step.String()})
		d := data(t, r)
		if got := d.Faults[i]; got.Name != x.step.Fault || got.Target != x.want ||
			!slices.Equal(got.Masters, x.step.Masters) {
			t.Errorf("%s: %+v, want %q", x.step, got, x.want)
		}
	}
}

func TestAPageWithAViolationShowsItInABrowser(t *testing.T) {
	dom := opened(t, twice())
	if dom == "" {
		return
	}
	for _, text := range []string{
		`data-ready="2"`, `data-near="9"`, "Client 1 asked at", "kill-empty, 0.0200 s to 0.0300 s", `href="#why"`,
		`<option value="0">40 ms overlap</option>`,
	} {
		if !strings.Contains(dom, text) {
			t.Errorf("the page does not have %q", text)
		}
	}
	if seed, timeline := strings.Index(dom, `id="replay">redlock-chaos run -seed 3<`),
		strings.Index(dom, `id="timeline"`); seed < 0 || seed > timeline {
		t.Error("the replay line is not at the top")
	}
}

func TestALongListOfViolationsIsShort(t *testing.T) {
	r := twice()
	for range 300 {
		r.Violations = append(r.Violations, r.Violations[0])
	}
	if d := data(t, r); len(d.Closeups) != 24 {
		t.Errorf("%d close-ups", len(d.Closeups))
	}
	if dom := opened(t, r); dom != "" &&
		(strings.Count(dom, ">show</button>") != 10 || !strings.Contains(dom, "show all 302")) {
		t.Errorf("%d rows at first, want 10 and a button", strings.Count(dom, ">show</button>"))
	}
}
