package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/measure"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// Contention is many clients that all want one key, again and again.
type Contention struct {
	// Hold is how long each grant is kept.
	Hold time.Duration
	// Duration is how long they want the key. TTL is the ttl of each acquisition. It must be far longer than Hold, or
	// an expiry would look like an overlap.
	Duration, TTL time.Duration
	// Key is the key that they want. Every run needs a new one.
	Key string
}

// Handoff holds the results of a Contention.
type Handoff struct {
	measure.HandoffStats
	// Wait is the time from the first attempt to the grant, of every contender. A contender that still waits at the end
	// counts with its time so far, so that starving shows.
	Wait measure.Latency
	// Waiting is the number of contenders that still waited.
	Waiting int64
	// GrantsPerSecond is the rate of all grants.
	GrantsPerSecond float64
	// Fairness is Jain's index of the contenders' grants.
	Fairness float64
	// Errors counts failed attempts and releases; FirstError is the first of these errors.
	Errors     int64
	FirstError error
}

// Run has all clients compete, each from one goroutine, as separate processes would. The error is about the harness,
// never about the subject.
func (c Contention) Run(ctx context.Context, clients []subject.Client) (Handoff, error) {
	if len(clients) == 0 || c.Duration <= 0 {
		return Handoff{}, fmt.Errorf("load: %d clients for %v make no contention", len(clients), c.Duration)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Duration)
	defer cancel()
	r := &contention{
		Contention: c, asker: asker{ttl: c.TTL}, seen: measure.NewHandoffs(len(clients)), wait: measure.NewRecorder(),
	}
	start := time.Now()
	var workers sync.WaitGroup
	for i, client := range clients {
		workers.Go(func() { r.contend(ctx, i, client) })
	}
	<-ctx.Done()
	elapsed := time.Since(start)
	stats := r.seen.Stats()
	err := drained(ended(&workers), "contenders")
	out := Handoff{
		HandoffStats: stats, Wait: r.wait.Snapshot(), Waiting: r.waiting.Load(),
		Fairness: measure.Jain(stats.Grants), Errors: r.Count(), FirstError: r.First(),
	}
	// The grants at the time limit count, but an overlap is an overlap even after it.
	out.Overlaps = r.seen.Stats().Overlaps
	for _, n := range stats.Grants {
		out.GrantsPerSecond += float64(n) / elapsed.Seconds()
	}
	return out, err
}

type contention struct {
	Contention
	asker
	seen    *measure.Handoffs
	wait    *measure.Recorder
	waiting atomic.Int64
}

func (r *contention) contend(ctx context.Context, i int, client subject.Client) {
	for ctx.Err() == nil {
		asked := time.Now()
		handle := r.grant(ctx, client, r.Key)
		granted := time.Now()
		r.wait.Record(i, granted.Sub(asked))
		if handle == nil {
			r.waiting.Add(1)
			return
		}
		r.seen.Granted(i, granted)
		Wait(context.WithoutCancel(ctx), r.Hold)
		now := time.Now()
		r.seen.Releasing(now, now.Sub(granted))
		r.giveBack(ctx, handle)
	}
}
