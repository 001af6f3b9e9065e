// Package otelobserver measures and traces a Locker, for OpenTelemetry.
//
//	observer, err := otelobserver.New(provider.Meter("redlock"))
//	locker, err := redlock.Dial(ctx, urls, redlock.Options{Observer: observer})
//	traced := otelobserver.Trace(locker, tracerProvider.Tracer("redlock"))
//	lock, err := traced.Acquire(ctx, "orders:42", ttl) // a span below ctx's
package otelobserver

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/observe"
)

// instruments are the metrics of one Locker. Durations are in seconds. No attribute is a key: there are too many.
type instruments struct {
	rounds, waited, votes, heldFor metric.Float64Histogram
	lost, dropped                  metric.Int64Counter
	held, pending                  metric.Int64UpDownCounter
}

// New returns an observer that records to meter. The histograms contain counts, so there are no separate counters.
// Safe for concurrent use. The error is the meter's.
func New(meter metric.Meter) (func(redlock.Event), error) {
	m := instruments{}
	var failed error
	histogram := func(name, help string) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(help),
			metric.WithExplicitBucketBoundaries(.0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 300))
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
	m.rounds = histogram("redlock.round.duration", "From a round's beginning to its decision.")
	m.waited = histogram("redlock.acquisition.duration", "From the call of Acquire or TryAcquire to its return.")
	m.votes = histogram("redlock.vote.duration", "From a round's beginning to the end of a master's part in it.")
	m.heldFor = histogram("redlock.hold.duration", "For how long locks were held.")
	m.lost = counter("redlock.lost", "Locks that ended although nobody had released them.")
	m.dropped = counter("redlock.pending_releases.dropped", "Releases given up because too many of a master were pending.")
	m.held = gauge("redlock.held", "Locks that are held.")
	m.pending = gauge("redlock.pending_releases", "Releases that a master has yet to confirm.")
	if failed != nil {
		return nil, fmt.Errorf("otelobserver: %w", failed)
	}
	return m.observe, nil
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (m *instruments) observe(e redlock.Event) {
	ctx := context.Background() // an event has no context of its own
	master := metric.WithAttributes(attribute.String("redlock.master", e.Master))
	result := attribute.String("redlock.result", observe.Result(e.Err))
	op := attribute.String("redlock.op", e.Op)
	switch e.Kind {
	case redlock.EventAcquire, redlock.EventExtend, redlock.EventVerify, redlock.EventRelease:
		m.rounds.Record(ctx, e.Took.Seconds(), metric.WithAttributes(op, result))
	case redlock.EventReturned:
		m.waited.Record(ctx, e.Took.Seconds(), metric.WithAttributes(result))
		if e.Err == nil {
			m.held.Add(ctx, 1)
		}
	case redlock.EventVote:
		m.votes.Record(ctx, e.Took.Seconds(), master, metric.WithAttributes(op, attribute.String("redlock.vote", e.Vote.String())))
	case redlock.EventLost:
		m.lost.Add(ctx, 1)
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
