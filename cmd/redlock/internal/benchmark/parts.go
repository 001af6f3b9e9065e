package benchmark

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock"
)

const (
	// keysPerWorker is how many keys a worker uses in turn. With one key, a slow master might not have the release of
	// the last lock when the next one is taken.
	keysPerWorker = 8
	// cutOff is how long a window waits after its end for operations in progress.
	cutOff = 3 * time.Second
	// failurePause is a worker's pause after a failure, so that operations which fail at once do not spin.
	failurePause = 20 * time.Millisecond
)

// Names of the measures. The master's name follows the name of a round trip.
const (
	roundTrip        = "round trip"
	acquireFree      = "acquire, free"
	releaseFree      = "release, free"
	acquireContended = "acquire, contended"
	releaseContended = "release, contended"
	handoff          = "handoff"
	renew            = "renew"
)

// partOf returns the part that takes a measure.
func partOf(measure string) int {
	switch measure {
	case acquireFree, releaseFree:
		return 1
	case acquireContended, releaseContended, handoff:
		return 2
	case renew:
		return 3
	}
	return 0 // a round trip
}

// window is one part of one round in progress.
type window struct {
	*run
	length time.Duration
	series map[string]*series
}

// play measures a part, and returns when all its operations have ended or were cut off.
func (w *window) play(ctx context.Context, part int) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(w.length+cutOff, func() { cancel(errCutOff) })
	defer timer.Stop()
	[]func(context.Context){w.roundTrips, w.free, w.contended, w.renewals}[part](ctx)
}

// roundTrips pings every master that can be used, one PING at a time each.
func (w *window) roundTrips(ctx context.Context) {
	atOnce(len(w.target.Masters), func(i int) {
		if !w.usable(i) {
			return
		}
		m := w.target.Masters[i]
		pings, s := newPace(w.config, 1, time.Now(), w.length), w.series[roundTrip+" "+m.Name()]
		w.loop(ctx, pings, s, func(from time.Time) error {
			return w.timed(ctx, s, from, func() error { return m.Client().Ping(ctx).Err() })
		})
	})
}

// free has workers take and release locks that no one else wants.
func (w *window) free(ctx context.Context) {
	cycles := newPace(w.config, cycleOps, time.Now(), w.length)
	atOnce(w.config.Workers, func(worker int) {
		n := 0
		w.loop(ctx, cycles, w.series[acquireFree], func(from time.Time) error {
			n++
			lock, err := w.acquire(ctx, w.target.Locker, freeKey(w.prefix, worker, n%keysPerWorker), from,
				w.series[acquireFree])
			if err != nil {
				return err
			}
			return w.release(ctx, lock, w.series[releaseFree])
		})
	})
}

// renewals has workers extend locks, each worker its own.
func (w *window) renewals(ctx context.Context) {
	extensions := newPace(w.config, 1, time.Now(), w.length)
	atOnce(w.config.Workers, func(worker int) {
		var lock *redlock.Lock
		w.loop(ctx, extensions, w.series[renew], func(from time.Time) (err error) {
			if lock == nil || lock.Err() != nil {
				if lock, err = w.target.Locker.Acquire(ctx, heldKey(w.prefix, worker), w.config.TTL,
					w.options...); err != nil {
					w.series[renew].note(ctx, time.Since(from), err)
					return err
				}
				if !w.pacedOpen() {
					from = time.Now() // the extension alone is measured
				}
			}
			return w.timed(ctx, w.series[renew], from, func() error { return lock.Extend(ctx, w.config.TTL) })
		})
		if lock != nil {
			_ = lock.Release(ctx) // the end of the run removes the rest
		}
	})
}

// contended has contenders want the same lock, each with a separate Locker, so the lock changes hands through the
// masters. In a closed loop only the holder waits for the pace, so that the others always wait for the lock.
func (w *window) contended(ctx context.Context) {
	cycles := newPace(w.config, cycleOps, time.Now(), w.length)
	taken := w.series[acquireContended]
	between := &relay{handoffs: w.series[handoff], overlaps: &w.overlaps}
	atOnce(w.config.Contenders, func(i int) {
		cycle := func(from time.Time) error {
			wanted := time.Now()
			lock, err := w.acquire(ctx, w.target.Contenders[i], contendedKey(w.prefix), from, taken)
			if err != nil {
				return err
			}
			between.granted(i, lock, wanted, time.Now())
			if !w.pacedOpen() {
				cycles.await(ctx)
			}
			between.releasing(i, time.Now())
			return w.release(ctx, lock, w.series[releaseContended])
		}
		if w.pacedOpen() {
			w.loop(ctx, cycles, taken, cycle)
			return
		}
		for time.Now().Before(cycles.end) && ctx.Err() == nil {
			if cycle(time.Now()) != nil {
				sleep(ctx, failurePause)
			}
		}
	})
}

func (w *window) pacedOpen() bool { return w.config.Rate > 0 }

// atOnce works for each of n at the same time, and waits for all.
func atOnce(n int, work func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { work(i) })
	}
	all.Wait()
}

// loop does operations at a pace. It also records those that did not begin because earlier ones were cut off.
func (w *window) loop(ctx context.Context, p *pace, s *series, do func(from time.Time) error) {
	for {
		from, ok := p.await(ctx)
		switch {
		case ctx.Err() != nil:
			if ok || from.Before(p.end) {
				s.note(ctx, time.Since(from), errCutOff)
			}
			for _, at := range p.missed() {
				s.note(ctx, time.Since(at), errCutOff)
			}
			return
		case !ok:
			return
		case do(from) != nil && !w.pacedOpen(): // an open loop keeps its pace
			sleep(ctx, failurePause)
		}
	}
}

// timed does one operation, which counts from this time.
func (w *window) timed(ctx context.Context, s *series, from time.Time, do func() error) error {
	w.operations.Add(1)
	err := do()
	s.note(ctx, time.Since(from), err)
	return err
}

func (w *window) acquire(ctx context.Context, l *redlock.Locker, key string, from time.Time, s *series) (*redlock.Lock,
	error,
) {
	w.operations.Add(1)
	lock, err := l.Acquire(ctx, key, w.config.TTL, w.options...)
	s.note(ctx, time.Since(from), err)
	return lock, err
}

func (w *window) release(ctx context.Context, lock *redlock.Lock, s *series) error {
	return w.timed(ctx, s, time.Now(), func() error { return lock.Release(ctx) })
}

// relay watches the lock as it changes hands.
type relay struct {
	handoffs *series
	overlaps *int

	mu       sync.Mutex
	lock     *redlock.Lock // the lock held now; nil if none
	last     int           // the last holder that released it
	released time.Time     // when that release began; zero: never
}

// granted records that contender i has the lock, which it has wanted since wanted. If it already waited when another
// contender released the lock, this is a handoff. Otherwise the time in between is the contenders' own pause.
func (r *relay) granted(i int, lock *redlock.Lock, wanted, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lock != nil && r.lock.Err() == nil {
		*r.overlaps++
	}
	if !r.released.IsZero() && r.last != i && wanted.Before(r.released) {
		r.handoffs.note(context.Background(), now.Sub(r.released), nil)
	}
	r.lock = lock
}

// releasing notes that a contender is about to release the lock: from now on another may have it.
func (r *relay) releasing(i int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lock, r.last, r.released = nil, i, now
}

func freeKey(prefix string, worker, n int) string {
	return fmt.Sprintf("%sfree:%d:%d", prefix, worker, n)
}

func heldKey(prefix string, worker int) string { return fmt.Sprintf("%sheld:%d", prefix, worker) }
func contendedKey(prefix string) string        { return prefix + "contended" }
