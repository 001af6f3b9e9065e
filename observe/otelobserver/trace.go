package otelobserver

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/observe"
)

// Locker can be traced: a *redlock.Locker or a *sharded.Locker.
type Locker interface {
	Acquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock, error)
	TryAcquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock, error)
	Do(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error,
		opts ...redlock.Option) error
	TryDo(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error,
		opts ...redlock.Option) error
}

// Traced is a Locker with a span for each call, below the span of the call's context. The key is an attribute of the
// span.
type Traced struct {
	locker Locker
	tracer trace.Tracer
}

// Trace makes spans of locker's calls. The locker stays the caller's to close.
func Trace(locker Locker, tracer trace.Tracer) *Traced { return &Traced{locker, tracer} }

// Acquire is the locker's, as a span "redlock acquire" that ends with the wait.
func (t *Traced) Acquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock,
	error,
) {
	ctx, span := t.start(ctx, "redlock acquire", key, ttl)
	lock, err := t.locker.Acquire(ctx, key, ttl, opts...)
	acquired(span, lock, err)
	return lock, err
}

// TryAcquire is the locker's, as a span "redlock try".
func (t *Traced) TryAcquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock,
	error,
) {
	ctx, span := t.start(ctx, "redlock try", key, ttl)
	lock, err := t.locker.TryAcquire(ctx, key, ttl, opts...)
	acquired(span, lock, err)
	return lock, err
}

// Do is the locker's, as a span "redlock do" for all of it, and below it "redlock held" for the time in fn.
func (t *Traced) Do(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error,
	opts ...redlock.Option,
) error {
	return t.do(ctx, "redlock do", t.locker.Do, key, ttl, fn, opts)
}

// TryDo is the locker's, as a span "redlock try do" with "redlock held" as in [Traced.Do].
func (t *Traced) TryDo(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error,
	opts ...redlock.Option,
) error {
	return t.do(ctx, "redlock try do", t.locker.TryDo, key, ttl, fn, opts)
}

// doer is the locker's Do or TryDo.
type doer = func(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error,
	opts ...redlock.Option) error

func (t *Traced) do(ctx context.Context, name string, do doer, key string, ttl time.Duration,
	fn func(ctx context.Context) error, opts []redlock.Option,
) error {
	ctx, span := t.start(ctx, name, key, ttl)
	work := fn
	if fn != nil {
		work = func(ctx context.Context) error {
			ctx, held := t.tracer.Start(ctx, "redlock held")
			defer held.End()
			return fn(ctx)
		}
	}
	err := do(ctx, key, ttl, work, opts...)
	end(span, err)
	return err
}

func (t *Traced) start(ctx context.Context, name, key string, ttl time.Duration) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("redlock.key", key), attribute.Float64("redlock.ttl", ttl.Seconds()),
	))
}

// acquired ends the span of an acquisition. The owner is a secret and stays out.
func acquired(span trace.Span, lock *redlock.Lock, err error) {
	if err == nil && lock.Token() > 0 {
		span.SetAttributes(attribute.Int64("redlock.token", int64(lock.Token()))) // at most 2^53
	}
	end(span, err)
}

func end(span trace.Span, err error) {
	span.SetAttributes(attribute.String("redlock.result", observe.Result(err)))
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, observe.Result(err))
	}
	span.End()
}

// Requests returns an observer that makes a span "redlock request" of each request to a master, below the span of the
// context with which the lock was acquired: those that take the lock, and later those that extend and release it. It
// traces masters of every kind. The hooks of a go-redis client do not: requests of several locks travel together.
func Requests(tracer trace.Tracer) func(redlock.Event) {
	return func(e redlock.Event) {
		if e.Kind != redlock.EventVote {
			return
		}
		_, span := tracer.Start(e.Context, "redlock request", trace.WithSpanKind(trace.SpanKindClient),
			trace.WithTimestamp(e.At.Add(-e.Took)),
			trace.WithAttributes(attribute.String("redlock.key", e.Key), ofMaster(e.Master), ofOp(e.Op),
				ofVote(e.Vote)))
		if e.Err != nil {
			span.RecordError(e.Err, trace.WithTimestamp(e.At))
			span.SetStatus(codes.Error, e.Vote.String())
		}
		span.End(trace.WithTimestamp(e.At))
	}
}
