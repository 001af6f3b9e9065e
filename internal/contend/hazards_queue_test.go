package contend_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/soak"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

// counting is a master that counts the requests it gets.
type counting struct {
	*redlocktest.Master
	asked *atomic.Int64
}

func (m counting) Do(ctx context.Context, batch []*single.Call) {
	for _, c := range batch {
		undoes := c.Request.Op == single.Release && c.Request.Waiter == "" // and leaves no queue
		if !undoes {
			m.asked.Add(1)
		}
	}
	m.Master.Do(ctx, batch)
}

// counted makes three masters and a Locker with these masters. asked counts the requests from this Locker to the
// first master. Releases that undo an attempt do not count: only the master that answers last gets them, and which
// one that is, is a matter of chance.
func counted(t *testing.T) (masters redlocktest.Masters, l *redlock.Locker, asked *atomic.Int64) {
	t.Helper()
	masters, asked = redlocktest.New(t, redlocktest.Count(3)), new(atomic.Int64)
	all := masters.All()
	all[0] = counting{masters[0], asked}
	l = LockerOver(t, all, redlock.Options{})
	return masters, l, asked
}

// Three readers of another process take the key again and again, so that one of the three always has it, until stop
// is called. Each hold takes about span.
func readFor(t *testing.T, masters redlocktest.Masters, span time.Duration, keys ...string) (stop func()) {
	t.Helper()
	l := masters.Locker(t, redlock.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	random := rand.New(rand.NewPCG(1, 2))
	var readers sync.WaitGroup
	for _, k := range keys {
		for i := range 3 {
			var spans [32]time.Duration
			for j := range spans {
				spans[j] = span*3/4 + time.Duration(random.Int64N(int64(span/4)))
			}
			readers.Go(func() {
				Pass(time.Duration(i) * span / 3)
				for j := 0; ctx.Err() == nil; j++ {
					if lock, err := l.Acquire(ctx, k, time.Minute, redlock.Shared()); err == nil {
						Pass(spans[j%len(spans)])
						_ = lock.Release(context.WithoutCancel(ctx))
					}
				}
			})
		}
	}
	Settle(2 * span)
	return func() { cancel(); readers.Wait() }
}

// had records when a lock was acquired, and when it was released.
type had struct {
	what string
	took chan time.Duration
}

// takesOnce begins to wait for a lock, and releases the lock as soon as it gets it.
func takesOnce(t *testing.T, l *redlock.Locker, what string, opts ...redlock.Option) had {
	t.Helper()
	h, began := had{what, make(chan time.Duration, 1)}, time.Now()
	go func() {
		lock, err := l.Acquire(t.Context(), Key, LongTTL, opts...)
		if err == nil {
			h.took <- time.Since(began)
			_ = lock.Release(context.WithoutCancel(t.Context()))
		}
	}()
	return h
}

// within fails the test if the lock was not had within d.
func (h had) within(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case took := <-h.took:
		t.Logf("%s: after %v", h.what, took)
		if took > d {
			t.Errorf("%s: after %v, want %v at the most", h.what, took, d)
		}
	case <-time.After(10 * time.Minute):
		t.Errorf("%s: not in ten minutes", h.what)
	}
}

func TestHazard97TheFirstWaiterDoesNotStarveOthersWhileReadersOverlap(t *testing.T) {
	const span = 2 * time.Second
	exclusive, several := redlock.Exclusive(), redlock.AndKeys("more")
	for name, wants := range map[string][][]redlock.Option{
		"plain, exclusive, shared": {nil, {exclusive}, {redlock.Shared()}},
		"plain":                    {nil},
		"fenced":                   {{redlock.Fenced()}},
		"several keys":             {{several}},
		"plain, asks seldom":       {{redlock.RetryEvery(time.Hour)}},
		"shared, several, plain":   {{redlock.Shared()}, {several}, {redlock.RetryEvery(time.Minute)}},
	} {
		RunVirtual(t, name, func(t *testing.T) {
			masters := redlocktest.New(t, redlocktest.Count(3))
			l := masters.Locker(t, redlock.Options{})
			keys := []string{Key}
			if name == "several keys" { // both in constant use
				keys = append(keys, "more")
			}
			stop := readFor(t, masters, span, keys...)
			var all []had
			for i, opts := range wants {
				all = append(all, takesOnce(t, l, fmt.Sprint("number ", i), opts...))
				synctest.Wait()
			}
			bound := time.Duration(len(wants)) * (span + livenessBound)
			if len(keys) > 1 { // the readers of one, and then those of the other
				bound += span
			}
			// the readers inside end; who gets the key gives it back, and readers may come before the next one
			for _, h := range all {
				h.within(t, bound)
			}
			stop()
		})
	}
}

func TestHazard98AWriterWithALongRetryEveryKeepsNewReadersOut(t *testing.T) {
	const span = 6 * time.Second // longer than a claim
	for _, every := range []time.Duration{time.Millisecond, 3 * time.Second, 10 * time.Second, time.Minute, time.Hour} {
		RunVirtual(t, every.String(), func(t *testing.T) {
			masters := redlocktest.New(t, redlocktest.Count(3))
			l := masters.Locker(t, redlock.Options{})
			stop := readFor(t, masters, span, Key)
			takesOnce(t, l, "the writer", redlock.Exclusive(), redlock.RetryEvery(every)).
				within(t, span+livenessBound)
			stop()
		})
	}
}

// A writer's claim lasts exactly as long as the wait: until the writer's context ends, its Locker is closed, or its
// process dies.
func TestHazard98AClaimEndsWithItsWriter(t *testing.T) {
	for name, test := range map[string]struct {
		ends func(cancel func(), l *redlock.Locker, masters []*redlocktest.Master)
		most time.Duration
	}{
		"gives up": {func(cancel func(), _ *redlock.Locker, _ []*redlocktest.Master) { cancel() }, livenessBound},
		"is closed": {func(_ func(), l *redlock.Locker, _ []*redlocktest.Master) {
			_ = l.Close(context.Background())
		}, livenessBound},
		"is gone": {nil, single.WriterClaim + livenessBound},
	} {
		RunVirtual(t, name, func(t *testing.T) {
			masters := redlocktest.New(t, redlocktest.Count(3))
			var cut atomic.Bool
			over := masters.All()
			for i, m := range masters {
				over[i] = detour{m, func(*single.Request) time.Duration {
					if cut.Load() {
						return 10 * time.Minute
					}
					return 0
				}}
			}
			l := LockerOver(t, over, redlock.Options{})
			other := masters.Locker(t, redlock.Options{})
			reads := Acquire(t, other, LongTTL, redlock.Shared(), redlock.AutoRenew())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			writer := Wait(t, ctx, l, Key, LongTTL, redlock.Exclusive(), redlock.RetryEvery(time.Hour))
			Settle(time.Second)
			for range 100 { // it is there at any time
				Is(t, Try(t, other, Key, redlock.Shared()), redlock.ErrHeld)
				Pass(137 * time.Millisecond)
			}
			began := time.Now()
			if test.ends == nil {
				cut.Store(true)
			} else {
				test.ends(cancel, l, masters)
			}
			Give(t, Take(t, other, Key, LongTTL, redlock.Shared()))
			if took := time.Since(began); took > test.most {
				t.Errorf("a reader came %v after the writer had gone", took)
			}
			cut.Store(false)
			cancel()
			_ = writer.Fail(t)
			Give(t, reads)
		})
	}
}

// kindsOfWaiters is every way to wait for one key.
var kindsOfWaiters = map[string]func(i int) []redlock.Option{
	"plain":     func(int) []redlock.Option { return nil },
	"fenced":    func(int) []redlock.Option { return []redlock.Option{redlock.Fenced()} },
	"exclusive": func(int) []redlock.Option { return []redlock.Option{redlock.Exclusive()} },
	"shared":    func(int) []redlock.Option { return []redlock.Option{redlock.Shared()} },
	"reentrant": func(i int) []redlock.Option {
		return []redlock.Option{redlock.Reentrant(fmt.Sprint("job ", i))}
	},
	"reentrant alike": func(int) []redlock.Option { return []redlock.Option{redlock.Reentrant("job")} },
	"several keys":    func(int) []redlock.Option { return []redlock.Option{redlock.AndKeys("more", "and more")} },
	"another key":     func(int) []redlock.Option { return []redlock.Option{redlock.AndKeys("a first one")} },
	"seldom": func(int) []redlock.Option {
		return []redlock.Option{redlock.Exclusive(), redlock.RetryEvery(time.Hour)}
	},
}

// costs counts the requests to one master from n waiters of one Locker, for a key that another Locker holds. It
// counts three phases: while the waiters arrive, half a minute while they wait, and when all are cancelled at once.
func costs(t *testing.T, n int, held []redlock.Option,
	kind func(i int) []redlock.Option,
) (coming, waiting, cancelled int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		masters, l, asked := counted(t)
		lock := Acquire(t, masters.Locker(t, redlock.Options{}), LongTTL, append(held, redlock.AutoRenew())...)
		var cancels []func()
		var waiters sync.WaitGroup
		for i := range n {
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			waiters.Go(func() {
				if lock, err := l.Acquire(ctx, Key, LongTTL, kind(i)...); err == nil {
					t.Error("a waiter has got the key")
					_ = lock.Release(context.WithoutCancel(ctx))
				}
			})
		}
		Settle(2 * time.Second)
		coming = int(asked.Swap(0))
		Settle(30 * time.Second)
		waiting = int(asked.Swap(0))
		for _, cancel := range cancels {
			cancel()
		}
		waiters.Wait()
		Settle(time.Second)
		cancelled = int(asked.Swap(0))
		Give(t, lock)
	})
	return coming, waiting, cancelled
}

// Many waiters for a key, of any kind, cost the masters as many requests as one waiter.
func TestHazard99And101ManyWaitersCostAsMuchAsOne(t *testing.T) {
	for _, holder := range []struct {
		name string
		opts []redlock.Option
	}{{"a plain lock", nil}, {"a writer", []redlock.Option{redlock.Exclusive()}}, {
		"a reentrant lock", []redlock.Option{redlock.Reentrant("holder")},
	}} {
		for name, kind := range kindsOfWaiters {
			t.Run(name+" behind "+holder.name, func(t *testing.T) {
				one := [3]int{}
				one[0], one[1], one[2] = costs(t, 1, holder.opts, kind)
				for _, n := range []int{10, soak.Or(100, 10_000)} {
					many := [3]int{}
					many[0], many[1], many[2] = costs(t, n, holder.opts, kind)
					t.Logf("one waiter: %v, %d waiters: %v requests while they come, wait and are cancelled", one, n,
						many)
					for i, most := range []int{2*one[0] + 10, 2*one[1] + 20, 30} {
						if name == "seldom" && i < 2 { // for those behind it the first one asks as often as they would
							most = 450
						}
						if many[i] > most {
							t.Errorf("%d waiters cost %d requests, one costs %d", n, many[i], one[i])
						}
					}
				}
			})
		}
	}
}

// An owner that has the key may enter it again, although other waiters of its process came before: the masters tell
// the first of these waiters who the owner is.
func TestHazard99AReentrantOwnerGetsInBehindWaiters(t *testing.T) {
	for name, first := range map[string][]redlock.Option{
		"plain": nil, "exclusive": {redlock.Exclusive()}, "asks seldom": {redlock.RetryEvery(time.Hour)},
		"several keys": {redlock.AndKeys("a first one")},
	} {
		for where, same := range map[string]bool{"this process": true, "another": false} {
			t.Run(name+", held in "+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { entersBehind(t, first, same) })
			})
		}
	}
}

// entersBehind lets an owner's waiters queue behind another waiter, before the owner gets the key and afterwards. The
// other waiter is in the same process or in another.
func entersBehind(t *testing.T, first []redlock.Option, same bool) {
	t.Helper()
	masters := redlocktest.New(t, redlocktest.Count(3))
	l := masters.Locker(t, redlock.Options{})
	holders := l
	if !same {
		holders = masters.Locker(t, redlock.Options{})
	}
	blocker := Acquire(t, masters.Locker(t, redlock.Options{}), LongTTL)
	holds := Wait(t, t.Context(), holders, Key, LongTTL, redlock.Reentrant("me"))
	Settle(time.Second)
	before := Wait(t, t.Context(), l, Key, LongTTL, first...)
	Settle(time.Second)
	var entering []*Waiting
	enter := func() {
		for range 20 {
			entering = append(entering, Wait(t, t.Context(), l, Key, LongTTL, redlock.Reentrant("me")))
		}
		Settle(time.Second)
	}
	if !same { // or they would have it before the other waiter's turn, one after the other
		enter()
	}
	Give(t, blocker)
	outer := holds.Get(t)
	Settle(time.Second)
	began := time.Now()
	enter()
	for _, w := range entering {
		Give(t, w.Get(t))
		if took := w.At.Sub(began); took > livenessBound {
			t.Errorf("an owner entered after %v", took)
		}
	}
	Give(t, outer)
	Give(t, before.Get(t))
}

// aboutToEnd is a context that has ended before its Done channel is closed.
type aboutToEnd struct {
	context.Context
	over *atomic.Bool
}

func (c aboutToEnd) Done() <-chan struct{} { return nil }

func (c aboutToEnd) Err() error {
	if c.over.Load() {
		return context.Canceled
	}
	return nil
}

func TestHazard101AWaiterWhoseContextHasEndedAsksNothing(t *testing.T) {
	for name, kind := range kindsOfWaiters {
		RunVirtual(t, name, func(t *testing.T) {
			masters, l, asked := counted(t)
			lock := Acquire(t, masters.Locker(t, redlock.Options{}), LongTTL)
			ctx, cancel := context.WithCancel(t.Context())
			first := Wait(t, ctx, l, Key, LongTTL, kind(1)...)
			Settle(time.Second)
			var over atomic.Bool
			var behind []*Waiting
			for range 3 {
				behind = append(behind,
					Wait(t, aboutToEnd{context.Background(), &over}, l, Key, LongTTL, kind(1)...))
			}
			Settle(time.Second)
			over.Store(true)
			asked.Store(0)
			cancel() // each of those behind it becomes the first
			_ = first.Fail(t)
			for _, w := range behind {
				Is(t, w.Fail(t), context.Canceled)
			}
			Settle(time.Second)
			if n := asked.Load(); n > 3 { // the process leaves the queues of as many keys
				t.Errorf("a master got %d requests", n)
			}
			Give(t, lock)
		})
	}
}

// endsOfCrowds lists how many waiters leave: all at one instant or one after the other. Each function makes the
// contexts of n waiters.
var endsOfCrowds = map[string]func(ctx context.Context, n int) (waiters []context.Context, cancel func()){
	"cancelled each": func(ctx context.Context, n int) (waiters []context.Context, cancel func()) {
		var cancels []func()
		for range n {
			ctx, cancel := context.WithCancel(ctx)
			waiters, cancels = append(waiters, ctx), append(cancels, cancel)
		}
		return waiters, func() {
			for _, cancel := range cancels {
				cancel()
			}
		}
	},
	"cancelled together": func(ctx context.Context, n int) (waiters []context.Context, cancel func()) {
		ctx, cancel = context.WithCancel(ctx)
		return slices.Repeat([]context.Context{ctx}, n), cancel
	},
	"deadlines at once": func(ctx context.Context, n int) ([]context.Context, func()) { return deadlines(ctx, n, 0) },
	"deadlines in turn": func(ctx context.Context, n int) ([]context.Context, func()) {
		return deadlines(ctx, n, time.Millisecond)
	},
}

// deadlines are contexts that end after two seconds and gap apart.
func deadlines(ctx context.Context, n int, gap time.Duration) (waiters []context.Context, wait func()) {
	var cancels []func()
	for i := range n {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second+time.Duration(i)*gap)
		waiters, cancels = append(waiters, ctx), append(cancels, cancel)
	}
	return waiters, func() {
		Pass(2*time.Second + time.Duration(n)*gap)
		for _, cancel := range cancels {
			cancel()
		}
	}
}

// leaving lets n waiters leave within five seconds, and counts the requests to one master in that time. A few
// survivors stay and get the key in the end.
func leaving(t *testing.T, n, survivors int, held []redlock.Option, kind func(i int) []redlock.Option,
	end func(context.Context, int) ([]context.Context, func()),
) (requests int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		masters, l, asked := counted(t)
		lock := Acquire(t, masters.Locker(t, redlock.Options{}), LongTTL, append(held, redlock.AutoRenew())...)
		ctxs, cancel := end(t.Context(), n)
		for i := range survivors {
			ctxs[(i+1)*n/(survivors+1)] = t.Context()
		}
		var waiters sync.WaitGroup
		var got atomic.Int64
		for i, ctx := range ctxs {
			waiters.Go(func() {
				if lock, err := l.Acquire(ctx, Key, LongTTL, kind(i)...); err == nil {
					got.Add(1)
					_ = lock.Release(context.WithoutCancel(ctx))
				}
			})
			synctest.Wait() // in the order of their deadlines: the first waiter leaves soon after its attempt
		}
		Settle(time.Second)
		began := time.Now()
		asked.Store(0)
		cancel()
		Settle(5*time.Second - time.Since(began))
		requests = int(asked.Load())
		Give(t, lock)
		waiters.Wait()
		if int(got.Load()) != survivors {
			t.Errorf("%d waiters got the key, want the %d that stayed", got.Load(), survivors)
		}
	})
	return requests
}

// However many waiters leave, and however many stay, the masters get as many requests as if one left or stayed. A
// waiter that leaves in a crowd sends nothing at that moment.
func TestHazard101ManyCancelledWaitersCostTheMastersAsMuchAsOne(t *testing.T) {
	for end, contexts := range endsOfCrowds {
		crowd := soak.Or(200, 1000)
		if end == "deadlines in turn" { // of fewer waiters, those that ask too soon add too little
			crowd = 1000
		}
		for name, kind := range kindsOfWaiters {
			for holder, held := range map[string][]redlock.Option{"a plain lock": nil, "a reader": {redlock.Shared()}} {
				// asks as often as those behind it would, or gets the key
				if name == "seldom" || name == "shared" && held != nil {
					continue
				}
				t.Run(end+", "+name+" behind "+holder, func(t *testing.T) {
					for _, survivors := range []int{0, 3} {
						one := leaving(t, 1+survivors, survivors, held, kind, contexts)
						many := leaving(t, crowd, survivors, held, kind, contexts)
						t.Logf("%d remain: one %d requests, %d of them %d", survivors, one, crowd, many)
						most := one*3/2 + 30 // while they leave, one asks every 32 ms
						if end == "deadlines in turn" && survivors == 0 && strings.Contains(name, "key") {
							most += 35 // and then leaves the queues of its other keys
						}
						if many > most {
							t.Errorf("%d waiters that leave cost %d requests, one waiter costs %d; %d remain",
								crowd, many, one, survivors)
						}
					}
				})
			}
		}
	}
}
