// Package promobserver counts the events of a Locker for Prometheus. Files dashboard.json and alerts.yaml use
// the metrics; each metric's help text explains it.
package promobserver

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/observe"
)

// Observer holds the metrics of one Locker. Give its Observe method to redlock.Options.Observer. It is safe for
// concurrent use.
//
// No label is a key, because programs have too many keys for Prometheus.
type Observer struct {
	rounds   *prometheus.CounterVec
	took     *prometheus.HistogramVec
	calls    *prometheus.CounterVec
	waited   prometheus.Histogram
	lost     *prometheus.CounterVec
	held     prometheus.Gauge
	heldFor  prometheus.Histogram
	votes    *prometheus.CounterVec
	answered *prometheus.HistogramVec
	waiting  prometheus.Gauge
	pending  *prometheus.GaugeVec
	dropped  *prometheus.CounterVec
	masters  prometheus.Gauge
	margin   prometheus.Gauge

	mu     sync.Mutex
	silent map[string]bool // masters, and whether their latest vote was unknown
	spare  map[string]int  // by the set of masters, of two: how many failures a quorum survives
}

// New registers the metrics of one Locker. If a program has several Lockers, give each different labels:
// prometheus.WrapRegistererWith(prometheus.Labels{"locker": "orders"}, registerer). The error is the registerer's, for
// instance that the metrics exist already; then nothing stays registered.
func New(registerer prometheus.Registerer) (*Observer, error) {
	if registerer == nil {
		return nil, errors.New("promobserver: nil registerer")
	}
	o := newMetrics()
	var registered []prometheus.Collector
	for _, c := range o.collectors() {
		if err := registerer.Register(c); err != nil {
			for _, r := range registered {
				registerer.Unregister(r)
			}
			return nil, fmt.Errorf("promobserver: %w", err)
		}
		registered = append(registered, c)
	}
	o.fromZero()
	return o, nil
}

// fromZero creates every series with known labels before any event. Without it, the first event would not count as
// an increase.
func (o *Observer) fromZero() {
	for _, result := range observe.Results() {
		o.calls.WithLabelValues(result)
		for _, op := range observe.Ops() {
			o.rounds.WithLabelValues(op, result)
		}
	}
	for _, op := range observe.Ops() {
		o.took.WithLabelValues(op)
	}
	for _, end := range []error{redlock.ErrNotHeld, redlock.ErrClosed} {
		o.lost.WithLabelValues(observe.Result(end))
	}
}

// masterFromZero does the same for a master at its first event.
func (o *Observer) masterFromZero(master string) {
	for _, op := range observe.Ops() {
		for _, vote := range []redlock.Vote{redlock.Granted, redlock.Refused, redlock.Unknown} {
			o.votes.WithLabelValues(master, op, vote.String())
		}
	}
	o.answered.WithLabelValues(master)
	o.pending.WithLabelValues(master)
	o.dropped.WithLabelValues(master)
}

func newMetrics() *Observer {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "redlock", Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Namespace: "redlock", Name: name, Help: help}
	}
	seconds := func(name, help string, from float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{
			Namespace: "redlock", Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(from, 2, 18),
		}
	}
	const fast, slow = 100e-6, 1e-3 // from 100 µs to 13 s, and from 1 ms to 131 s
	return &Observer{
		rounds: counter("rounds_total", "Rounds that were decided.", "op", "result"),
		took: prometheus.NewHistogramVec(seconds("round_seconds", "From a round's beginning to its decision.",
			fast), []string{"op"}),
		calls: counter("acquisitions_total", "Calls of Acquire and TryAcquire, by result.", "result"),
		waited: prometheus.NewHistogram(seconds("acquisition_seconds", "How long callers waited for a lock they got.",
			slow)),
		lost:    counter("lost_total", "Locks that ended without a release.", "result"),
		held:    prometheus.NewGauge(gauge("held", "Locks that are held.")),
		heldFor: prometheus.NewHistogram(seconds("held_seconds", "For how long locks were held.", slow)),
		votes:   counter("votes_total", "Votes of each master, late ones included.", "master", "op", "vote"),
		answered: prometheus.NewHistogramVec(seconds("vote_seconds", "From a round's beginning to a master's answer.",
			fast), []string{"master"}),
		waiting: prometheus.NewGauge(gauge("waiting", "Callers of Acquire that did not get their lock at once and "+
			"wait.")),
		pending: prometheus.NewGaugeVec(gauge("pending_releases", "Releases that a master has yet to confirm."),
			[]string{"master"}),
		dropped: counter("pending_releases_dropped_total",
			"Releases dropped because too many of a master were pending; their keys expire.", "master"),
		masters: prometheus.NewGauge(gauge("masters", "Masters of the Locker.")),
		margin: prometheus.NewGauge(gauge("quorum_margin",
			"Masters whose latest vote is known, less the quorum: how many more may fail.")),
		silent: make(map[string]bool),
		spare:  make(map[string]int),
	}
}

func (o *Observer) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		o.rounds, o.took, o.calls, o.waited, o.waiting, o.lost, o.held, o.heldFor, o.votes, o.answered, o.pending,
		o.dropped,
		o.masters, o.margin,
	}
}

// Observe counts one event.
func (o *Observer) Observe(e redlock.Event) {
	result := observe.Result(e.Err)
	switch e.Kind {
	case redlock.EventAcquire, redlock.EventExtend, redlock.EventVerify, redlock.EventRelease:
		o.rounds.WithLabelValues(e.Op, result).Inc()
		o.took.WithLabelValues(e.Op).Observe(e.Took.Seconds())
		o.decided(e)
	case redlock.EventWaiting:
		o.waiting.Inc()
	case redlock.EventReturned:
		if e.Waited {
			o.waiting.Dec()
		}
		o.calls.WithLabelValues(result).Inc()
		if e.Err == nil {
			o.held.Inc()
			o.waited.Observe(e.Took.Seconds())
		}
	case redlock.EventVote:
		o.heard(e)
		o.votes.WithLabelValues(e.Master, e.Op, e.Vote.String()).Inc()
		if e.Vote != redlock.Unknown {
			o.answered.WithLabelValues(e.Master).Observe(e.Took.Seconds())
		}
	case redlock.EventLost:
		o.lost.WithLabelValues(result).Inc()
	case redlock.EventPending:
		if e.Err != nil {
			o.dropped.WithLabelValues(e.Master).Inc()
			return
		}
		o.pending.WithLabelValues(e.Master).Inc()
	case redlock.EventSwept, redlock.EventLapsed:
		o.pending.WithLabelValues(e.Master).Dec()
	}
	// Each lock ends with one event: a release, a pass or a handover. A lost lock also ends with a release, of its
	// remains.
	if e.Held && (e.Kind == redlock.EventRelease || e.Kind == redlock.EventPass || e.Kind == redlock.EventHandover) {
		o.held.Dec()
		o.heldFor.Observe(e.HeldFor.Seconds())
	}
}

// decided learns the size of a set of masters from a decided round.
func (o *Observer) decided(e redlock.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spare[e.Set] = e.N - e.Quorum
}

// heard computes the margin from each master's latest vote. A master that has not voted yet counts as silent.
func (o *Observer) heard(e redlock.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.silent[e.Master]; !known {
		o.masterFromZero(e.Master)
	}
	o.silent[e.Master] = e.Vote == redlock.Unknown
	o.spare[e.Set] = e.N - e.Quorum
	answering := 0
	for _, silent := range o.silent {
		if !silent {
			answering++
		}
	}
	if e.Set == "" {
		o.masters.Set(float64(e.N))
		o.margin.Set(float64(answering - e.Quorum))
		return
	}
	// The set of a master is not known. So a silent master counts against both sets.
	o.masters.Set(float64(len(o.silent)))
	o.margin.Set(float64(slices.Min(slices.Collect(maps.Values(o.spare))) - (len(o.silent) - answering)))
}
