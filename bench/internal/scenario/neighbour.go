package scenario

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/bench/internal/fleet"
	"github.com/seed-624411e5/redlock/bench/internal/load"
	"github.com/seed-624411e5/redlock/bench/internal/measure"
	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
	"github.com/seed-624411e5/redlock/semaphore"
)

// crowd is goroutines that use the same Locker as some quiet locks, and want other keys.
type crowd struct {
	kind string
	most int  // the largest of these crowds; 0: any
	far  bool // requests of the crowd time out, because the masters are too far away
	join func(ctx context.Context, n *neighbourhood, i int)
}

const (
	// farAway is more than the request timeout of 10 ms that a ttl of shortTTL makes.
	farAway  = 14 * time.Millisecond
	shortTTL = 200 * time.Millisecond
	// together is the interval at which all waiters of a crowd cancel, in the same moment.
	together = 500 * time.Millisecond
	// keepPermit is the MinHold of permits.
	keepPermit = 300 * time.Millisecond
)

// crowds are the kinds of the rows.
func crowds() []crowd {
	waiting := func(options ...redlock.Option) func(context.Context, *neighbourhood, int) {
		return func(ctx context.Context, n *neighbourhood, _ int) { n.take(ctx, n.prefix+"held", ttl, options...) }
	}
	givingUp := func(options ...redlock.Option) func(context.Context, *neighbourhood, int) {
		return func(ctx context.Context, n *neighbourhood, _ int) {
			for ctx.Err() == nil {
				at, cancel := context.WithDeadline(ctx, n.began.Add(time.Since(n.began).Truncate(together)+together))
				n.take(at, n.prefix+"held", ttl, options...)
				<-at.Done()
				cancel()
			}
		}
	}
	return []crowd{
		{kind: "plain", join: waiting()},
		{kind: "exclusive", join: waiting(redlock.Exclusive())},
		{kind: "shared", join: waiting(redlock.Shared())},
		{kind: "reentrant", join: func(ctx context.Context, n *neighbourhood, i int) {
			n.take(ctx, n.prefix+"held", ttl, redlock.Reentrant(strconv.Itoa(i)))
		}},
		{kind: "several keys", join: func(ctx context.Context, n *neighbourhood, _ int) {
			n.take(ctx, n.prefix+"held", ttl, redlock.AndKeys(n.prefix+"other"))
		}},
		{kind: "fenced", join: waiting(redlock.Fenced())},
		{kind: "plain, giving up", join: givingUp()},
		{kind: "several keys, giving up", join: func(ctx context.Context, n *neighbourhood, i int) {
			givingUp(redlock.AndKeys(n.prefix+"other"))(ctx, n, i)
		}},
		{
			kind: "short ttls, far masters", most: 100, far: true,
			join: func(ctx context.Context, n *neighbourhood, i int) {
				n.take(ctx, n.prefix+"crowd:"+strconv.Itoa(i), shortTTL)
			},
		},
		{kind: "one lock of many keys", most: 1000, join: manyKeys},
		{kind: "permits of a semaphore", most: 10, join: permits},
	}
}

// Crowds are the kinds of the rows of the scenario neighbour.
func Crowds() (kinds []string) {
	for _, c := range crowds() {
		kinds = append(kinds, c.kind)
	}
	return kinds
}

// neighbour measures quiet locks, which have no other users, alone and together with crowds on the same Locker.
func neighbour(e *Env) ([]group, error) {
	groups := e.groups(e.workersOr(10, 1000, 10_000), nil, nil)
	for i := range groups {
		for _, c := range crowds() {
			if c.most == 0 || groups[i].workers <= c.most {
				run := func(ctx context.Context, at place) (result.Slice, error) { return e.beside(ctx, at, c) }
				groups[i].entries = append(groups[i].entries,
					entry{subject: subject.Redlock(), kind: c.kind, run: run})
			}
		}
	}
	return groups, nil
}

// neighbourhood is one measurement while it lasts.
type neighbourhood struct {
	prefix string
	size   int
	locker *redlock.Locker // of the quiet locks
	other  *redlock.Locker // a crowd on it costs the machine the same
	theirs *redlock.Locker // of the crowd: one of the two
	began  time.Time
	holds  []*redlock.Lock // quiet, and renewed
	// These fields are of the present phase.
	free, extend *measure.Recorder
	used         []float64 // for each hold: the greatest share of its ttl that passed before a renewal
	failed       *load.Failures
}

// beside measures quiet locks alone, with a crowd on another Locker, and with a crowd on theirs.
func (e *Env) beside(ctx context.Context, at place, c crowd) (out result.Slice, err error) {
	m := openMeters(at.addrs)
	defer func() { err = errors.Join(err, m.close()) }()
	if !c.far {
		return e.withCrowd(ctx, at, c, m)
	}
	err = behind(at, slices.Repeat([]time.Duration{farAway}, len(at.addrs)), func(at place, _ *fleet.Delayed) error {
		out, err = e.withCrowd(ctx, at, c, m)
		return err
	})
	return out, err
}

func (e *Env) withCrowd(ctx context.Context, at place, c crowd, m meters) (out result.Slice, err error) {
	urls := subject.URLs(at.addrs)
	other, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		return out, err
	}
	defer e.shut(ctx, other)
	held, err := other.Acquire(ctx, at.prefix+"held", ttl, redlock.AutoRenew())
	if err != nil {
		return out, err
	}
	defer giveBack(ctx, held)
	n := &neighbourhood{prefix: at.prefix, size: at.workers, failed: new(load.Failures)}
	for _, l := range []**redlock.Locker{&n.locker, &n.other} {
		if *l, err = redlock.Dial(ctx, urls, redlock.Options{}); err != nil {
			return out, err
		}
		defer e.shut(ctx, *l) //nolint:gocritic // two, until the end
	}
	return n.measure(ctx, e, c, m)
}

// shut closes a Locker. Keys that a crowd leaves behind are no failure of the measurement.
func (e *Env) shut(ctx context.Context, l *redlock.Locker) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		e.Logf("close: %v", err)
	}
}

func (n *neighbourhood) measure(ctx context.Context, e *Env, c crowd, m meters) (out result.Slice, err error) {
	ttls := []time.Duration{300 * time.Millisecond, time.Second, 10 * time.Second}
	if c.far {
		ttls[0] *= 2
	}
	for _, d := range ttls {
		h, err := n.locker.Acquire(ctx, n.prefix+"hold:"+d.String(), d, redlock.AutoRenew())
		if err != nil {
			return out, err
		}
		defer giveBack(ctx, h) //nolint:gocritic // three, until the end
		n.holds = append(n.holds, h)
	}
	n.watch(ctx, e.Duration, ttls)
	alone := n.seen()
	n.theirs = n.other
	if err := n.crowded(ctx, c, func() error { n.watch(ctx, e.Duration, ttls); return nil }); err != nil {
		return out, err
	}
	apart := n.seen()
	n.theirs = n.locker
	err = n.crowded(ctx, c, func() error {
		before, err := m.read(ctx)
		if err != nil {
			return err
		}
		n.watch(ctx, e.Duration, ttls)
		after, err := m.read(ctx)
		out = n.slice(alone, apart, after.less(before), len(m))
		return err
	})
	return out, err
}

// crowded calls do while the crowd is there.
func (n *neighbourhood) crowded(ctx context.Context, c crowd, do func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	var members sync.WaitGroup
	n.failed, n.began = new(load.Failures), time.Now()
	for i := range n.size {
		members.Go(func() { c.join(ctx, n, i) })
	}
	err := do()
	cancel()
	members.Wait()
	return err
}

// phase is what quiet keys met.
type phase struct {
	free, extend measure.Latency
	failed       int64 // on a busy machine requests time out, too
}

func (n *neighbourhood) seen() phase {
	return phase{n.free.Snapshot(), n.extend.Snapshot(), n.failed.Count()}
}

// slice returns the quiet locks' results with the crowd.
func (n *neighbourhood) slice(alone, apart phase, cost spent, masters int) result.Slice {
	us, lasted := measure.Micros, time.Since(n.began)
	with := n.seen()
	out := result.Slice{
		OpsPerSecond: float64(with.free.Count()) / lasted.Seconds(), Latency: with.free,
		Errors: with.failed, FirstError: n.failed.First(),
		Extra: map[string]float64{
			"extend_p50_us":  us(with.extend.Quantile(0.5)),
			"extend_p99_us":  us(with.extend.Quantile(0.99)),
			"commands_per_s": cost.commands / lasted.Seconds() / float64(masters),
		},
		Worst: map[string]float64{},
		Count: map[string]int64{"lost": 0, "alone_failed": alone.failed, "apart_failed": apart.failed},
	}
	for name, before := range map[string]phase{"alone": alone, "apart": apart} {
		for of, p99 := range map[string][2]float64{
			"p99_" + name:        {us(with.free.Quantile(0.99)), us(before.free.Quantile(0.99))},
			"extend_p99_" + name: {us(with.extend.Quantile(0.99)), us(before.extend.Quantile(0.99))},
		} {
			if p99[1] > 0 { // a short or slow measurement may have none
				out.Extra[of] = p99[0] / p99[1]
			}
		}
	}
	for i, h := range n.holds {
		out.Worst["used_"+strconv.Itoa(i)] = 100 * n.used[i]
		select {
		case <-h.Done():
			out.Count["lost"]++
		default:
		}
	}
	return out
}

// watch uses quiet keys for d: a free one, one with a lock that is extended, and the renewed ones.
func (n *neighbourhood) watch(ctx context.Context, d time.Duration, ttls []time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	n.free, n.extend, n.used = measure.NewRecorder(), measure.NewRecorder(), make([]float64, len(ttls))
	var all sync.WaitGroup
	every := func(pause time.Duration, do func(i int)) {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				do(i)
				load.Wait(ctx, pause)
			}
		})
	}
	to := context.WithoutCancel(ctx) // an operation in progress is not cut short
	every(2*time.Millisecond, func(i int) {
		start := time.Now()
		lock, err := n.locker.TryAcquire(to, n.prefix+"free", ttls[i%len(ttls)])
		n.free.Record(i, time.Since(start))
		if n.failed.Note(err); err == nil {
			n.failed.Note(lock.Release(to))
		}
	})
	var extended *redlock.Lock
	every(5*time.Millisecond, func(i int) {
		if extended == nil || extended.Err() != nil {
			var err error
			if extended, err = n.locker.Acquire(to, n.prefix+"extended:"+rand.Text(), time.Second); err != nil {
				n.failed.Note(err)
				return
			}
		}
		start := time.Now()
		err := extended.Extend(to, time.Second)
		n.extend.Record(i, time.Since(start))
		n.failed.Note(err)
	})
	every(2*time.Millisecond, func(int) {
		for i, h := range n.holds {
			n.used[i] = max(n.used[i], 1-float64(h.Remaining())/float64(ttls[i]))
		}
	})
	all.Wait()
	if extended != nil {
		giveBack(to, extended)
	}
}

// giveBack releases a lock outside the measurement.
func giveBack(ctx context.Context, lock *redlock.Lock) { _ = lock.Release(context.WithoutCancel(ctx)) }

// take waits for a lock and releases it. The crowd's own locks are not measured.
func (n *neighbourhood) take(ctx context.Context, key string, ttl time.Duration, options ...redlock.Option) {
	if lock, err := n.theirs.Acquire(ctx, key, ttl, options...); err == nil {
		giveBack(ctx, lock)
	}
}

// manyKeys takes and releases a lock on as many keys as the crowd would have members.
func manyKeys(ctx context.Context, n *neighbourhood, i int) {
	if i > 0 {
		return
	}
	var others []string
	for k := range n.size - 1 {
		others = append(others, n.prefix+"many:"+strconv.Itoa(k))
	}
	for ctx.Err() == nil {
		n.take(ctx, n.prefix+"many", ttl, redlock.AndKeys(others...))
		load.Wait(ctx, 10*time.Millisecond)
	}
}

// permits has goroutines wait for the permits of a semaphore. All permits are released at once, and then held for a
// while. Every waiter must get one; its wait counts like the wait for a free key.
func permits(ctx context.Context, n *neighbourhood, i int) {
	if i > 0 {
		return
	}
	s, err := semaphore.New(n.theirs, n.prefix+rand.Text(), n.size)
	n.failed.Note(err)
	for err == nil && ctx.Err() == nil {
		var held []*semaphore.Permit
		for range n.size {
			p, err := s.Acquire(ctx, ttl)
			if err != nil {
				return
			}
			held = append(held, p)
		}
		var waiters, releases sync.WaitGroup
		var free atomic.Int64 // since when, after n.began
		for w := range n.size {
			waiters.Go(func() {
				p, err := s.Acquire(ctx, ttl, redlock.MinHold(keepPermit))
				if err == nil {
					n.free.Record(w, time.Since(n.began)-time.Duration(free.Load()))
					releases.Go(func() { giveBack(ctx, p.Lock) })
				}
			})
		}
		load.Wait(ctx, 50*time.Millisecond)
		free.Store(int64(time.Since(n.began)))
		for _, p := range held {
			giveBack(ctx, p.Lock)
		}
		waiters.Wait()
		releases.Wait()
		load.Wait(ctx, keepPermit)
	}
}
