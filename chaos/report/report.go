// Package report writes the findings of a chaos run: one HTML page without external files, a JSON
// file for programs and a JUnit file for build servers.
package report

import (
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Verdict is the judgement on a run.
type Verdict string

// The verdicts.
const (
	Pass      Verdict = "pass"
	Violation Verdict = "violation"
	// Unknown: nothing was found, and an oracle could not finish, or a planned fault did not happen.
	Unknown Verdict = "unknown"
)

// Report has the findings of a run. Its JSON form is stable.
type Report struct {
	Verdict Verdict `json:"verdict"`
	// Reasons say in sentences why the verdict is not pass.
	Reasons []string `json:"reasons,omitempty"`
	Seed    uint64   `json:"seed"`
	// Replay is the command that runs the same plan again.
	Replay   string `json:"replay"`
	Subject  string `json:"subject"`
	Backend  string `json:"backend"`
	Scenario string `json:"scenario"`
	Text     string `json:"text"`
	Inside   bool   `json:"inside_assumptions"`
	Workload string `json:"workload"`
	Masters  int    `json:"masters"`
	Clients  int    `json:"clients"`
	// DurationMS is how long the workload ran, in milliseconds.
	DurationMS int64     `json:"duration_ms"`
	Started    time.Time `json:"started"`

	// Operations counts acquisitions, extensions and releases that were answered; Acquisitions those that were granted.
	Operations   int `json:"operations"`
	Acquisitions int `json:"acquisitions"`
	// Overlaps, TokenViolations and Orphans count the oracles' findings, including those that the scenario allows.
	Overlaps        int `json:"overlaps"`
	TokenViolations int `json:"token_violations"`
	Orphans         int `json:"orphans"`
	// GoroutinesLeft counts the goroutines of the subject that had not ended in time after its clients were closed.
	GoroutinesLeft int `json:"goroutines_left"`
	// LostUpdates counts registers that checked no token and lost an update.
	LostUpdates int `json:"lost_updates"`
	// StaleWrites counts writes that the checking register refused.
	StaleWrites int `json:"stale_writes_refused"`
	// Availability is the share of the attempts with a majority in reach that did not fail.
	Availability float64        `json:"availability"`
	Service      oracle.Service `json:"service"`
	// Operated counts releases, extensions and holds that were judged, and of these those that failed.
	Operated oracle.Operated `json:"operated"`
	// StalledMS is for how many milliseconds the machine kept the run, or a part of it, waiting. Starved: that is more
	// than half of the time that the limits allow, so the run may have missed something.
	StalledMS float64 `json:"stalled_ms"`
	Starved   bool    `json:"starved,omitempty"`
	// Crowded means that another run in the same process kept the oracle of growth from judging the heap.
	Crowded bool `json:"crowded,omitempty"`
	// RecoveryMSMax is the longest time, in milliseconds, from a majority coming back until every key was acquired
	// again.
	RecoveryMSMax float64 `json:"recovery_ms_max"`
	// OutageMSMax is the longest time in milliseconds between two acquisitions of a key while a client wanted it.
	OutageMSMax float64 `json:"outage_ms_max"`
	// Latency of granted acquisitions, in milliseconds.
	Latency Latency `json:"latency_ms"`
	// Neighbours says how well quiet locks survived the workload, if there were any.
	Neighbours *oracle.Quiet `json:"neighbours,omitempty"`
	// Faults counts how often each fault began; Observed has the observed effect of each.
	Faults   map[string]int    `json:"faults"`
	Observed map[string]string `json:"observed,omitempty"`
	// Unavailable says of each planned fault that could not be done here, why.
	Unavailable map[string]string `json:"unavailable,omitempty"`
	// UnexpectedErrors counts errors that a lock library should not give; Errors has examples.
	UnexpectedErrors int      `json:"unexpected_errors"`
	Errors           []string `json:"errors,omitempty"`
	// OwnOracles are the caller's own oracles that judged, by name, each with a description.
	OwnOracles map[string]string `json:"own_oracles,omitempty"`
	// Violations broke a promise of the scenario. Allowed are violations that the scenario does not forbid.
	Violations []oracle.Violation `json:"violations"`
	Allowed    []oracle.Violation `json:"allowed,omitempty"`
	Notes      []string           `json:"notes,omitempty"`
	Plan       *plan.Plan         `json:"plan"`
	// Votes are what each master said to the clients in this process, in rounds of acquisitions and extensions; none
	// when the subject does not tell.
	Votes []Votes `json:"votes,omitempty"`
	// Files are where the run wrote its files, by kind: html, json, junit, history.
	Files map[string]string `json:"files,omitempty"`

	// History and Samples are drawn in the HTML; they are not in the JSON.
	History []history.Event `json:"-"`
	Samples []Sample        `json:"-"`
	// Watched are the keys that the owners of each sample hold.
	Watched []string `json:"-"`
	// Ballots are single votes, as many of the first as were kept.
	Ballots []Ballot `json:"-"`
	// VoteBucket is how long each part of Votes.Over is.
	VoteBucket time.Duration `json:"-"`
}

// Votes are one master's. Unknown are errors and timeouts.
type Votes struct {
	Master  int `json:"master"`
	Granted int `json:"granted"`
	Refused int `json:"refused"`
	Unknown int `json:"unknown"`
	// Over has granted, refused and unknown for each part of the run. It is drawn in the HTML, and not in the JSON.
	Over [][3]int `json:"-"`
}

// Ballot is one master's vote to one client, in nanoseconds from the start of the run.
type Ballot struct {
	// Start is when its round began, At when it came.
	Start, At int64
	Client    int
	workload.Ballot
}

// Latency is a distribution.
type Latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Sample has one master's entries for the first keys at one time.
type Sample struct {
	// At and Until are the nanoseconds at which the look began and ended.
	At, Until int64
	Master    int
	Up        bool
	// Owners has the holder of each sampled key; empty if there is none.
	Owners []string
	TTLs   []time.Duration
}

// Judgement is the oracles' findings in a history.
type Judgement struct {
	Verdict      Verdict            `json:"verdict"`
	Reasons      []string           `json:"reasons,omitempty"`
	Events       int                `json:"events"`
	Acquisitions int                `json:"acquisitions"`
	Service      oracle.Service     `json:"service"`
	StalledMS    float64            `json:"stalled_ms"`
	Violations   []oracle.Violation `json:"violations"`
	// Allowed are those that a history outside the assumptions may have.
	Allowed []oracle.Violation `json:"allowed,omitempty"`
}

// Failed tells whether the verdict is anything but pass.
func (r *Report) Failed() bool { return r.Verdict != Pass }

// ShowsNothing tells whether the run has no verdict because the machine gave it too little time. Such a run is evidence
// neither for the lock nor against it.
func (r *Report) ShowsNothing() bool {
	found := slices.ContainsFunc(r.Violations, func(v oracle.Violation) bool {
		judges := []string{oracle.NameAvailability, oracle.NameVictims, oracle.NameOperations}
		return !v.Unknown || !slices.Contains(judges, v.Oracle)
	})
	return (r.Starved || r.Unjudged()) && r.Verdict == Unknown && !found
}

// Unjudged tells whether too few attempts could be judged, by a share of a tenth (see [oracle.Service.Enough]), or no
// operation of a kind.
func (r *Report) Unjudged() bool {
	o := &r.Operated
	return !r.Service.Enough(0.1) || o.Releases.Unjudged() || o.Extensions.Unjudged() || o.Holds.Unjudged()
}
