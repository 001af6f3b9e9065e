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

// Cohort measures how fast a key passes from goroutine to goroutine. Its goroutines belong to few clients, all want one
// key, and do nothing while they have it. In contrast to a [Contention], goroutines share clients. A key may change
// hands a million times a second, so the harness reads the clock only twice for each handoff and takes no lock.
type Cohort struct {
	// Goroutines is the number of goroutines of each client.
	Goroutines int
	// Duration is how long they want the key. TTL is the ttl of each acquisition, far longer than a grant is kept.
	Duration, TTL time.Duration
	// Key is the key that they want. Every run needs a new one.
	Key string
}

// Passed holds the results of a Cohort.
type Passed struct {
	// Handoffs a second, of all goroutines.
	PerSecond float64
	// Moves a second: the handoffs from one client to another.
	MovesPerSecond float64
	// Wait is from a goroutine's first attempt to its grant.
	Wait measure.Latency
	// Away is how long a client with waiting goroutines was without the key. It begins when the client's last goroutine
	// released the key, or when its first one asked. It ends with the client's next grant. If goroutines still wait at
	// the end, their time so far counts too.
	Away measure.Latency
	// Fairness is Jain's index of the clients' grants, FairnessWithin the least of the clients' for the grants of its
	// goroutines.
	Fairness, FairnessWithin float64
	// Overlaps counts the grants that came while another goroutine still held the key. Anything but 0 is a broken lock.
	Overlaps int64
	// Errors counts failed attempts and releases; FirstError is the first of these errors.
	Errors     int64
	FirstError error
}

// Run has the goroutines of all clients compete for the key. The error is about the harness, never about the subject.
func (c Cohort) Run(ctx context.Context, clients []subject.Client) (Passed, error) {
	if len(clients) == 0 || c.Goroutines < 1 || c.Duration <= 0 {
		return Passed{}, fmt.Errorf("load: %d goroutines of %d clients for %v make no contention", c.Goroutines,
			len(clients), c.Duration)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Duration)
	defer cancel()
	r := &cohort{
		Cohort: c, asker: asker{ttl: c.TTL}, start: time.Now(), away: measure.NewRecorder(),
		clients: make([]cohortClient, len(clients)),
	}
	r.holder.Store(nobody)
	var workers sync.WaitGroup
	for i, client := range clients {
		r.clients[i].goroutines = make([]cohortGoroutine, c.Goroutines)
		for j := range c.Goroutines {
			r.clients[i].goroutines[j].wait = measure.NewHistogram()
			workers.Go(func() { r.contend(ctx, i, j, client) })
		}
	}
	<-ctx.Done()
	elapsed := time.Since(r.start)
	if err := drained(ended(&workers), "goroutines"); err != nil {
		return Passed{}, err
	}
	return r.passed(elapsed), nil
}

// nobody is in the place of a client's number before the first grant.
const nobody = -1

// cohort is a running Cohort. Only the holder of the key writes last, left and moves, so the lock itself orders the
// writes. The fields are atomic, so that the harness detects a lock with two holders without a data race.
type cohort struct {
	Cohort
	asker
	start    time.Time
	clients  []cohortClient
	holder   atomic.Int64 // the goroutine that holds the key
	last     atomic.Int64 // one more than the client that had the key last; 0: none yet
	moves    atomic.Int64
	overlaps atomic.Int64
	away     *measure.Recorder
}

type cohortClient struct {
	left       atomic.Int64 // nanoseconds after start at which one of its goroutines last released the key
	goroutines []cohortGoroutine
}

type cohortGoroutine struct {
	grants int64
	wait   *measure.Histogram
	_      [64]byte // keep two goroutines' counts off one cache line
}

func (r *cohort) contend(ctx context.Context, i, j int, client subject.Client) {
	me := &r.clients[i].goroutines[j]
	id := int64(i*r.Goroutines + j)
	asked := time.Since(r.start)
	for ctx.Err() == nil {
		handle := r.grant(ctx, client, r.Key)
		granted := time.Since(r.start)
		me.wait.Record(granted - asked)
		if handle == nil {
			return
		}
		if !r.holder.CompareAndSwap(nobody, id) {
			r.overlaps.Add(1)
		}
		me.grants++
		r.arrive(i, granted)
		// These lines come before the release: after it another goroutine may rightly hold the key.
		asked = time.Since(r.start)
		r.clients[i].left.Store(int64(asked))
		r.holder.Store(nobody)
		r.giveBack(ctx, handle)
	}
}

// arrive notes that client i has the key, and that it was away if another one had it before.
func (r *cohort) arrive(i int, granted time.Duration) {
	if last := r.last.Load(); last == int64(i+1) {
		return
	} else if last != 0 {
		r.moves.Add(1)
	}
	r.last.Store(int64(i + 1))
	r.away.Record(i, granted-time.Duration(r.clients[i].left.Load()))
}

// passed sums up when all goroutines have ended, elapsed after the start.
func (r *cohort) passed(elapsed time.Duration) Passed {
	out := Passed{Overlaps: r.overlaps.Load(), Errors: r.Count(), FirstError: r.First(), FairnessWithin: 1}
	var waits []measure.Latency
	var shares []int64
	total := int64(0)
	for i := range r.clients {
		var grants []int64
		share := int64(0)
		for j := range r.clients[i].goroutines {
			g := &r.clients[i].goroutines[j]
			waits = append(waits, g.wait.Snapshot())
			grants = append(grants, g.grants)
			share += g.grants
		}
		shares = append(shares, share)
		total += share
		out.FairnessWithin = min(out.FairnessWithin, measure.Jain(grants))
		if r.last.Load() != int64(i+1) { // it was waiting at the end
			r.away.Record(i, elapsed-time.Duration(r.clients[i].left.Load()))
		}
	}
	out.Wait, out.Away, out.Fairness = measure.Merge(waits...), r.away.Snapshot(), measure.Jain(shares)
	out.PerSecond, out.MovesPerSecond = float64(total)/elapsed.Seconds(), float64(r.moves.Load())/elapsed.Seconds()
	return out
}
