package otelobserver_test

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/observe/otelobserver"
)

func TestHazard113EachRequestToAMasterIsASpanBelowItsCall(t *testing.T) {
	var masters []redlock.Master
	for _, s := range redistest.StartN(t, 3) {
		m, err := redlock.NewMaster(s.Client()) // whose hooks would see no call's context
		must(t, err)
		masters = append(masters, m)
	}
	spans := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(spans)).Tracer("test")
	locker, err := redlock.New(masters, redlock.Options{Observer: otelobserver.Requests(tracer)})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ctx, request := tracer.Start(ctx, "request")
	began := time.Now()
	lock, err := otelobserver.Trace(locker, tracer).Acquire(ctx, "a", time.Minute)
	must(t, err)
	cancel()
	must(t, lock.Release(context.Background()))
	must(t, locker.Close(context.Background())) // every event has been reported
	request.End()
	var acquire trace.ReadOnlySpan
	type part struct{ op, master string }
	parts := make(map[part]trace.ReadOnlySpan)
	for _, s := range spans.Ended() {
		switch s.Name() {
		case "redlock acquire":
			acquire = s
		case "redlock request":
			of := attribute.NewSet(s.Attributes()...)
			op, _ := of.Value("redlock.op")
			master, _ := of.Value("redlock.master")
			parts[part{op.AsString(), master.AsString()}] = s
		}
	}
	for _, op := range []string{"acquire", "release"} {
		for _, m := range masters {
			s := parts[part{op, m.Name()}]
			if s == nil {
				t.Errorf("no span of %s on %s", op, m.Name())
				continue
			}
			if s.Parent().SpanID() != acquire.SpanContext().SpanID() ||
				s.SpanContext().TraceID() != request.SpanContext().TraceID() {
				t.Errorf("%s on %s is not below its call", op, m.Name())
			}
			if s.StartTime().Before(began) || s.EndTime().Before(s.StartTime()) || s.EndTime().After(time.Now()) {
				t.Errorf("%s on %s from %v to %v", op, m.Name(), s.StartTime(), s.EndTime())
			}
		}
	}
	if len(parts) != 6 {
		t.Errorf("%d requests, want 6", len(parts))
	}
}
