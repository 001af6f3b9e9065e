package otelobserver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/observe"
	"github.com/seed-624411e5/redlock/observe/otelobserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = locktest.Must

// sums collects each metric's value over all attributes: of a histogram the number of recordings.
func sums(tb testing.TB, reader *metric.ManualReader) map[string]int64 {
	tb.Helper()
	var data metricdata.ResourceMetrics
	must(tb, reader.Collect(tb.Context(), &data))
	all := map[string]int64{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					all[m.Name] += p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					all[m.Name] += int64(p.Count)
					if op, ok := p.Attributes.Value("redlock.op"); ok {
						all[m.Name+" "+op.AsString()] += int64(p.Count)
					}
				}
			}
		}
	}
	return all
}

func TestMetricsAndSpansOfLocksOnRealMasters(t *testing.T) {
	servers := redistest.StartN(t, 3)
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	reader := metric.NewManualReader()
	observer, err := otelobserver.New(metric.NewMeterProvider(metric.WithReader(reader)).Meter("redlock"))
	must(t, err)
	locker, err := redlock.Dial(t.Context(), urls, redlock.Options{Observer: observer})
	must(t, err)
	spans := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(spans)).Tracer("test")
	traced := otelobserver.Trace(locker, tracer)

	ctx, parent := tracer.Start(t.Context(), "request")
	lock, err := traced.Acquire(ctx, "a", time.Minute, redlock.Fenced())
	must(t, err)
	if _, err := traced.TryAcquire(ctx, "a", time.Minute); !errors.Is(err, redlock.ErrHeld) {
		t.Fatalf("got %v", err)
	}
	eventually := func(metric string, want int64) {
		t.Helper()
		redistest.Eventually(t, 10*time.Second, func() bool { return sums(t, reader)[metric] == want },
			fmt.Sprint(metric, " to be ", want))
	}
	eventually("redlock.held", 1)
	must(t, lock.Verify(ctx))
	eventually("redlock.vote.duration verify", 3)
	eventually("redlock.round.duration verify", 1)
	if n := sums(t, reader)["redlock.round.duration extend"]; n != 0 {
		t.Errorf("a Verify is measured as an extension")
	}
	must(t, servers[0].Kill())
	must(t, lock.Release(ctx))
	redistest.Eventually(t, 10*time.Second, func() bool { return sums(t, reader)["redlock.pending_releases"] >= 1 },
		"a pending release")
	must(t, servers[0].Restart())
	redistest.Eventually(t, 10*time.Second, func() bool { return sums(t, reader)["redlock.pending_releases"] == 0 },
		"no pending release")
	errWork := errors.New("work failed")
	if err := traced.Do(ctx, "b", time.Minute, func(context.Context) error {
		return errWork
	}); !errors.Is(err, errWork) {
		t.Errorf("Do: %v", err)
	}
	if err := traced.Do(ctx, "b", time.Minute, nil); !errors.Is(err, redlock.ErrInvalid) {
		t.Errorf("Do without a function: %v", err)
	}
	must(t, traced.TryDo(ctx, "c", time.Minute, func(context.Context) error { return nil }))
	parent.End()
	closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	must(t, locker.Close(closing))

	got := sums(t, reader)
	if got["redlock.held"] != 0 || got["redlock.hold.duration"] != 3 || got["redlock.acquisition.duration"] != 4 ||
		got["redlock.vote.duration"] < 9 {
		t.Errorf("metrics: %v", got)
	}
	names := map[string]int{}
	for _, s := range spans.Ended() {
		names[s.Name()+" "+s.Status().Description]++
		if text := fmt.Sprint(s.Attributes(), s.Events()); strings.Contains(text, lock.Owner()) {
			t.Errorf("the owner is in span %s", s.Name())
		}
		if s.Name() != "request" && s.SpanContext().TraceID() != parent.SpanContext().TraceID() {
			t.Errorf("span %s is not below the request", s.Name())
		}
	}
	for _, want := range []string{
		"redlock acquire ", "redlock try held", "redlock do error", "redlock held ", "redlock do invalid",
		"redlock try do ",
	} {
		if names[want] == 0 {
			t.Errorf("no span %q in %v", want, names)
		}
	}
}

// points is how many series a metric has, and their sum.
func points(tb testing.TB, reader *metric.ManualReader, name string) (series int, sum int64) {
	tb.Helper()
	var data metricdata.ResourceMetrics
	must(tb, reader.Collect(tb.Context(), &data))
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if d, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == name {
				for _, p := range d.DataPoints {
					sum += p.Value
				}
				return len(d.DataPoints), sum
			}
		}
	}
	return 0, 0
}

func TestHazard125AnOutageShowsInOpenTelemetryToo(t *testing.T) {
	reader := metric.NewManualReader()
	observer, err := otelobserver.New(metric.NewMeterProvider(metric.WithReader(reader)).Meter("redlock"))
	must(t, err)
	wants := func(name string, series int, sum int64) {
		t.Helper()
		if n, total := points(t, reader, name); n != series || total != sum {
			t.Errorf("%s has %d series with the sum %d, want %d with %d", name, n, total, series, sum)
		}
	}
	results, ops := len(observe.Results()), len(observe.Ops())
	wants("redlock.acquisitions", results, 0)
	wants("redlock.rounds", ops*results, 0)
	wants("redlock.lost", 2, 0)
	wants("redlock.held", 1, 0)
	wants("redlock.waiting", 1, 0)
	observer(redlock.Event{Kind: redlock.EventVote, Op: "acquire", Master: "m", Vote: redlock.Unknown})
	observer(redlock.Event{Kind: redlock.EventAcquire, Op: "acquire", Err: redlock.ErrNoQuorum})
	observer(redlock.Event{Kind: redlock.EventWaiting, Op: "acquire"})
	wants("redlock.votes", 3*ops, 1)
	wants("redlock.pending_releases", 1, 0)
	wants("redlock.pending_releases.dropped", 1, 0)
	wants("redlock.rounds", ops*results, 1)
	wants("redlock.acquisitions", results, 0)
	wants("redlock.waiting", 1, 1)
	// This call did not wait.
	observer(redlock.Event{Kind: redlock.EventReturned, Op: "acquire", Err: redlock.ErrHeld})
	wants("redlock.waiting", 1, 1)
	observer(redlock.Event{Kind: redlock.EventReturned, Op: "acquire", Waited: true, Err: redlock.ErrNoQuorum})
	wants("redlock.waiting", 1, 0)
	wants("redlock.acquisitions", results, 2)
}
