// Package otelobserver measures and traces a Locker, for OpenTelemetry.
//
//	tracer := tracerProvider.Tracer("redlock")
//	metrics, err := otelobserver.New(provider.Meter("redlock"))
//	observer := observe.Join(metrics, otelobserver.Requests(tracer))
//	locker, err := redlock.Dial(ctx, urls, redlock.Options{Observer: observer})
//	traced := otelobserver.Trace(locker, tracer)
//	lock, err := traced.Acquire(ctx, "orders:42", ttl) // a span below ctx's, and below it one for each request
package otelobserver

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/observe"
)

// instruments are the metrics of one Locker. Durations are in seconds. No attribute is a key: there are too many.
type instruments struct {
	took, waited, answered, heldFor            metric.Float64Histogram
	rounds, acquisitions, votes, lost, dropped metric.Int64Counter
	held, waiting, pending                     metric.Int64UpDownCounter

	mu    sync.Mutex
	known map[string]bool // masters that have series
}

// New returns an observer that records to meter. Safe for concurrent use. The error is the meter's.
func New(meter metric.Meter) (func(redlock.Event), error) {
	m := &instruments{known: make(map[string]bool)}
	var failed error
	histogram := func(name, help string) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(help),
			metric.WithExplicitBucketBoundaries(.0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2,
				5, 10, 30, 60, 300))
		failed = first(failed, err)
		return h
	}
	counter := func(name, help string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithDescription(help))
		failed = first(failed, err)
		return c
	}
	gauge := func(name, help string) metric.Int64UpDownCounter {
		g, err := meter.Int64UpDownCounter(name, metric.WithDescription(help))
		failed = first(failed, err)
		return g
	}
	m.took = histogram("redlock.round.duration", "From a round's beginning to its decision.")
	m.waited = histogram("redlock.acquisition.duration", "From the call of Acquire or TryAcquire to its return.")
	m.answered = histogram("redlock.vote.duration", "From a round's beginning to the end of a master's part in it.")
	m.heldFor = histogram("redlock.hold.duration", "For how long locks were held.")
	m.rounds = counter("redlock.rounds", "Rounds that were decided.")
	m.acquisitions = counter("redlock.acquisitions", "Calls of Acquire and TryAcquire, by result.")
	m.votes = counter("redlock.votes", "Votes of each master, late ones included.")
	m.lost = counter("redlock.lost", "Locks that ended without a release.")
	m.dropped = counter("redlock.pending_releases.dropped",
		"Releases dropped because too many of a master were pending.")
	m.held = gauge("redlock.held", "Locks that are held.")
	m.waiting = gauge("redlock.waiting", "Callers of Acquire that did not get their lock at once and wait.")
	m.pending = gauge("redlock.pending_releases", "Releases that a master has yet to confirm.")
	if failed != nil {
		return nil, fmt.Errorf("otelobserver: %w", failed)
	}
	m.fromZero()
	return m.observe, nil
}

// fromZero creates every series with known attributes before any event. Without it, the first event would not count as
// an increase.
func (m *instruments) fromZero() {
	ctx := context.Background()
	for _, result := range observe.Results() {
		m.acquisitions.Add(ctx, 0, with(ofResult(result)))
		for _, op := range observe.Ops() {
			m.rounds.Add(ctx, 0, with(ofOp(op), ofResult(result)))
		}
	}
	for _, end := range []error{redlock.ErrNotHeld, redlock.ErrClosed} {
		m.lost.Add(ctx, 0, with(ofResult(observe.Result(end))))
	}
	m.held.Add(ctx, 0)
	m.waiting.Add(ctx, 0)
}

// masterFromZero does the same for a master at its first event.
func (m *instruments) masterFromZero(master string) {
	m.mu.Lock()
	known := m.known[master]
	m.known[master] = true
	m.mu.Unlock()
	if known {
		return
	}
	ctx := context.Background()
	for _, op := range observe.Ops() {
		for _, vote := range []redlock.Vote{redlock.Granted, redlock.Refused, redlock.Unknown} {
			m.votes.Add(ctx, 0, with(ofMaster(master), ofOp(op), ofVote(vote)))
		}
	}
	m.pending.Add(ctx, 0, with(ofMaster(master)))
	m.dropped.Add(ctx, 0, with(ofMaster(master)))
}

func with(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(attributes...)
}

func ofMaster(name string) attribute.KeyValue   { return attribute.String("redlock.master", name) }
func ofOp(op string) attribute.KeyValue         { return attribute.String("redlock.op", op) }
func ofResult(result string) attribute.KeyValue { return attribute.String("redlock.result", result) }

func ofVote(vote redlock.Vote) attribute.KeyValue {
	return attribute.String("redlock.vote", vote.String())
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (m *instruments) observe(e redlock.Event) {
	ctx := cmp.Or(e.Context, context.Background())
	master, op, result := with(ofMaster(e.Master)), ofOp(e.Op), ofResult(observe.Result(e.Err))
	switch e.Kind {
	case redlock.EventAcquire, redlock.EventExtend, redlock.EventVerify, redlock.EventRelease:
		m.rounds.Add(ctx, 1, with(op, result))
		m.took.Record(ctx, e.Took.Seconds(), with(op, result))
	case redlock.EventWaiting:
		m.waiting.Add(ctx, 1)
	case redlock.EventReturned:
		if e.Waited {
			m.waiting.Add(ctx, -1)
		}
		m.acquisitions.Add(ctx, 1, with(result))
		m.waited.Record(ctx, e.Took.Seconds(), with(result))
		if e.Err == nil {
			m.held.Add(ctx, 1)
		}
	case redlock.EventVote:
		m.masterFromZero(e.Master)
		vote := with(ofMaster(e.Master), op, ofVote(e.Vote))
		m.votes.Add(ctx, 1, vote)
		m.answered.Record(ctx, e.Took.Seconds(), vote)
	case redlock.EventLost:
		m.lost.Add(ctx, 1, with(result))
	case redlock.EventPending:
		if e.Err != nil {
			m.dropped.Add(ctx, 1, master)
			return
		}
		m.pending.Add(ctx, 1, master)
	case redlock.EventSwept, redlock.EventLapsed:
		m.pending.Add(ctx, -1, master)
	}
	// Each lock ends with one release, a lost one too, or is passed on or handed over.
	if e.Held && (e.Kind == redlock.EventRelease || e.Kind == redlock.EventPass || e.Kind == redlock.EventHandover) {
		m.held.Add(ctx, -1)
		m.heldFor.Record(ctx, e.HeldFor.Seconds())
	}
}
