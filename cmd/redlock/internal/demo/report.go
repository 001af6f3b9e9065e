package demo

import (
	"encoding/json"
	"time"

	"github.com/seed-624411e5/redlock"
)

// Report describes a show that is over.
type Report struct {
	// OK: every check held, and the show was not interrupted.
	OK          bool    `json:"ok"`
	Interrupted bool    `json:"interrupted"`
	Seconds     float64 `json:"seconds"`
	Masters     int     `json:"masters"`
	Quorum      int     `json:"quorum"`
	Workers     int     `json:"workers"`
	Key         string  `json:"key"`

	Acquisitions int         `json:"acquisitions"`
	Handoffs     int         `json:"handoffs"`
	Overlaps     int         `json:"overlaps"`
	ByWorker     []int       `json:"acquisitions_by_worker"`
	Free         Latency     `json:"acquire_free"`
	Wait         Latency     `json:"acquire_contended"`
	Acts         []ActReport `json:"acts"`
	Checks       []Check     `json:"checks"`
	// Refusal is the error that workers got while the lock could not be acquired.
	Refusal string `json:"refusal,omitempty"`
}

// ActReport is one act of a Report.
type ActReport struct {
	Title        string  `json:"title"`
	Seconds      float64 `json:"seconds"`
	Acquisitions int     `json:"acquisitions"`
	Refusals     int     `json:"refusals"`
	// Lists counts the acquisitions by the list of masters, "old", "both" or "new", in the act that exchanges masters.
	Lists map[list]int `json:"acquisitions_by_list,omitempty"`
	Free  Latency      `json:"acquire_free"`
	Wait  Latency      `json:"acquire_contended"`
	// Through is the number of acquisitions that had waited through the outage; Wait leaves them out. Longest is the
	// longest such wait.
	Through int      `json:"waited_through_outage"`
	Longest Duration `json:"longest_through_outage_ms"`
}

// Latency sums up how long acquisitions took.
type Latency struct {
	N   int      `json:"n"`
	P50 Duration `json:"p50_ms"`
	P99 Duration `json:"p99_ms"`
}

// Duration is written to JSON as milliseconds.
type Duration time.Duration

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.millis()) }

func (d Duration) millis() float64 { return float64(time.Duration(d).Microseconds()) / 1000 }

func (d Duration) String() string { return round(time.Duration(d)).String() }

// Check is one expectation and its result.
type Check struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

func latency(d []time.Duration) Latency {
	return Latency{N: len(d), P50: Duration(percentile(d, 50)), P99: Duration(percentile(d, 99))}
}

// report sums up the show after all workers have stopped.
func (s *Show) report(interrupted bool) Report {
	_, handoffs, overlaps := s.resource.look()
	s.check("no two workers were inside at once", overlaps == 0, "")
	if n := len(s.board.failures); n > 0 {
		s.check("nothing unexpected", false, s.board.failures[0].Error())
	}
	r := Report{
		Interrupted: interrupted,
		Seconds:     s.board.elapsed().Seconds(),
		Masters:     s.board.members,
		Quorum:      redlock.Quorum(s.board.members),
		Workers:     s.cfg.Workers,
		Key:         s.key,
		Handoffs:    handoffs,
		Overlaps:    overlaps,
		Checks:      s.checks,
		Refusal:     s.refusal,
	}
	for _, w := range s.board.workers {
		r.ByWorker = append(r.ByWorker, w.count)
		r.Acquisitions += w.count
	}
	s.board.acts[len(s.board.acts)-1].ended = time.Now()
	for _, a := range s.board.acts {
		r.Acts = append(r.Acts, a.report())
	}
	r.Free, r.Wait = s.board.latenciesLocked() // no one else is left
	r.OK = !interrupted
	for _, c := range r.Checks {
		r.OK = r.OK && c.OK
	}
	return r
}

func (a *actState) report() ActReport {
	r := ActReport{
		Title:        a.title,
		Seconds:      a.ended.Sub(a.began).Seconds(),
		Acquisitions: a.acquisitions(),
		Refusals:     a.refusals,
		Free:         latency(a.free),
		Wait:         latency(a.waits),
		Through:      len(a.through),
		Longest:      Duration(percentile(a.through, 100)),
	}
	if a.step != "" {
		r.Lists = a.lists
	}
	return r
}

// round keeps about three digits.
func round(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= 10*time.Millisecond:
		return d.Round(100 * time.Microsecond)
	default:
		return d.Round(10 * time.Microsecond)
	}
}
