package scenarios_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// shareBackoff bounds the pause between two attempts of a waiter that gets no notification, on a starved machine too.
const shareBackoff = 10 * time.Second

func TestS4ReadersShareAndAWriterExcludes(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})

	first, second := take(t, a, key, longTTL, redlock.Shared()), take(t, b, key, longTTL, redlock.Shared())
	is(t, try(t, b, key, redlock.Exclusive()), redlock.ErrHeld)
	give(t, first)
	is(t, try(t, a, key, redlock.Exclusive()), redlock.ErrHeld) // b still reads
	must(t, second.Verify(t.Context()))
	give(t, second)

	writer := take(t, a, key, longTTL, redlock.Exclusive())
	is(t, try(t, b, key, redlock.Shared()), redlock.ErrHeld)
	is(t, try(t, b, key, redlock.Exclusive()), redlock.ErrHeld)
	give(t, writer)
	must(t, try(t, b, key, redlock.Shared()))
}

// SOURCES S4: one key, so that it works on Cluster, and none left behind.
func TestS4ASharedLockIsOneKeyOnTheMaster(t *testing.T) {
	servers := redistest.StartN(t, 3)
	l := dial(t, servers, redlock.Options{})
	locks := []*redlock.Lock{
		take(t, l, key, longTTL, redlock.Shared()), take(t, l, key, longTTL, redlock.Shared()),
		take(t, l, "other", longTTL, redlock.Exclusive()),
	}
	for _, lock := range locks {
		everywhere(t, servers, lock)
	}
	for _, s := range servers {
		redistest.Eventually(t, promptly, func() bool {
			keys := s.Client().Keys(t.Context(), "*").Val()
			slices.Sort(keys)
			return slices.Equal(keys, []string{key, "other"})
		}, "two keys on each master for three holds of two")
	}
	for _, lock := range locks {
		give(t, lock)
	}
	for _, s := range servers {
		redistest.Eventually(t, promptly, func() bool { return s.Client().DBSize(t.Context()).Val() == 0 },
			"nothing to be left")
	}
}

// SOURCES S4: a release removes its own hold only.
func TestS4AReaderRemovesOnlyItsOwnHold(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	mine, yours := take(t, a, key, longTTL, redlock.Shared()), take(t, b, key, longTTL, redlock.Shared())
	give(t, mine)
	must(t, mine.Release(t.Context())) // once more: the same answer, and nothing happens
	must(t, yours.Verify(t.Context()))
	must(t, yours.Extend(t.Context(), longTTL))
	is(t, try(t, a, key, redlock.Exclusive()), redlock.ErrHeld)
	give(t, yours)
}

func TestS4EachReadersHoldEndsByItself(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	long := take(t, a, key, longTTL, redlock.Shared())
	short := take(t, b, key, 500*time.Millisecond, redlock.Shared())
	<-short.Done()
	is(t, short.Err(), redlock.ErrNotHeld)
	must(t, long.Verify(t.Context()))
	is(t, try(t, b, key, redlock.Exclusive()), redlock.ErrHeld)
	give(t, long)
	// the masters keep the short one a little longer than its holder may use it
	give(t, take(t, b, key, longTTL, redlock.Exclusive()))
}

// A holder has died. It keeps other owners out only until its ttl is over, and no client has to help.
func TestS4ExpiredHoldsVanishWithoutHelp(t *testing.T) {
	t.Parallel()
	for i, left := range []redlock.Option{redlock.Shared(), redlock.Exclusive()} {
		for j, wanted := range []redlock.Option{redlock.Exclusive(), redlock.Shared(), redlock.AndKeys(key)} {
			t.Run([]string{"shared", "exclusive"}[i]+", then "+[]string{"exclusive", "shared", "plain"}[j],
				func(t *testing.T) {
					t.Parallel()
					vanishes(t, left, wanted)
				})
		}
	}
}

// vanishes takes a lock as its holder's death leaves it, and takes it as wanted.
func vanishes(t *testing.T, left, wanted redlock.Option) {
	t.Helper()
	servers := redistest.StartN(t, 3)
	l, dead := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	const ttl = 1500 * time.Millisecond
	lock := take(t, dead, key, ttl, left)
	everywhere(t, servers, lock)
	hard, cancel := context.WithCancel(t.Context())
	cancel()
	if err := dead.Close(hard); err == nil {
		t.Fatal("the dead Locker has released its lock")
	}
	is(t, try(t, l, key, redlock.Reentrant("other")), redlock.ErrHeld) // it is in the way while it lasts
	began := time.Now()
	give(t, take(t, l, key, longTTL, wanted))
	if took := time.Since(began); took > ttl+shareBackoff {
		t.Errorf("the lock came after %v", took)
	}
	nowhere(t, servers, key)
}

func TestOtherKindsOfLocksAreExcludedBySharedOnes(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	kinds := map[string][]redlock.Option{
		"plain": nil, "fenced": {redlock.Fenced()}, "several": {redlock.AndKeys("more")},
		"shared": {redlock.Shared()}, "exclusive": {redlock.Exclusive()}, "reentrant": {redlock.Reentrant("somebody")},
	}
	for holds, opts := range kinds {
		held := take(t, a, key, longTTL, opts...)
		everywhere(t, servers, held)
		for wants, opts := range kinds {
			err := try(t, b, key, opts...)
			if holds == wants && (holds == "shared" || holds == "reentrant") {
				must(t, err) // the control
			} else {
				is(t, err, redlock.ErrHeld)
			}
		}
		give(t, held)
		nowhere(t, servers, key)
	}
}

// New readers keep coming, so that there is always one. They do not keep a writer out: once it waits, new readers
// wait for the writer.
func TestS4AWaitingWriterIsNotStarved(t *testing.T) {
	servers := redistest.StartN(t, 3)
	ctx, stop := context.WithTimeout(t.Context(), 60*time.Second)
	defer stop()
	var reads atomic.Int64
	var all sync.WaitGroup
	const readers, span = 6, 60 * time.Millisecond
	for range readers {
		l := dial(t, servers, redlock.Options{})
		all.Go(func() {
			for ctx.Err() == nil {
				lock, err := l.Acquire(ctx, key, 10*time.Second, redlock.Shared())
				if err != nil {
					continue
				}
				reads.Add(1)
				select { // it reads, overlapping with the others
				case <-time.After(span/2 + rand.N(span)):
				case <-ctx.Done():
				}
				_ = lock.Release(ctx)
			}
		})
	}
	more := func(n int64) {
		before := reads.Load()
		redistest.Eventually(t, promptly, func() bool { return reads.Load() >= before+n }, "readers to come")
	}
	writer := dial(t, servers, redlock.Options{})
	more(2 * readers)
	// The control: a writer that does not wait, and so claims nothing, hardly finds a moment without a reader.
	const tries = 50
	refused := 0
	for range tries {
		if try(t, writer, key, redlock.Exclusive()) != nil {
			refused++
		}
		more(1)
	}
	if refused < tries*3/4 {
		t.Errorf("control: a writer that does not wait was refused %d times of %d: there are too few readers", refused,
			tries)
	}

	var waits []time.Duration
	var during int64
	const writes = 10
	for range writes {
		more(2 * readers)
		began, before := time.Now(), reads.Load()
		lock := take(t, writer, key, 10*time.Second, redlock.Exclusive())
		waits = append(waits, time.Since(began))
		during += reads.Load() - before
		give(t, lock)
	}
	stop()
	all.Wait()
	slices.Sort(waits)
	t.Logf("refused at once %d times of %d; waited %v to %v, while %d readers got in", refused, tries, waits[0],
		waits[writes-1], during)
	// The readers that are inside end; a split vote costs a backoff.
	if waits[writes-1] > shareBackoff {
		t.Errorf("the writer waited up to %v, and each reader holds the key for %v", waits[writes-1], span)
	}
	if during > 2*writes*readers {
		t.Errorf("%d readers got in while a writer waited %d times", during, writes)
	}
}

// A writer that tries once keeps no reader out.
func TestAWriterThatDoesNotWaitKeepsNoReadersOut(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	held := take(t, a, key, longTTL, redlock.Shared())
	everywhere(t, servers, held)
	is(t, try(t, b, key, redlock.Exclusive()), redlock.ErrHeld)
	must(t, try(t, b, key, redlock.Shared()))
	give(t, held)
}

// A writer that gave up keeps readers out for a moment only.
func TestACancelledWriterLetsReadersIn(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	held := take(t, a, key, longTTL, redlock.Shared())
	everywhere(t, servers, held)
	ctx, cancel := context.WithCancel(t.Context())
	w := wait(t, ctx, b, key, longTTL, redlock.Exclusive())
	awaitQueue(t, servers, key, 1)
	is(t, try(t, a, key, redlock.Shared()), redlock.ErrHeld)
	cancel()
	is(t, w.Fail(t), context.Canceled)
	began := time.Now()
	give(t, take(t, a, key, longTTL, redlock.Shared()))
	if took := time.Since(began); took > shareBackoff {
		t.Errorf("the reader waited %v for a writer that had gone", took)
	}
	give(t, held)
}
