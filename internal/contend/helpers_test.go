package contend_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/internal/mutant/mutanttest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

func TestMain(m *testing.M) { Main(m) }

// TestTheTestsNoticeMutants runs this package's tests for single mistakes in builds with the mistakes.
func TestTheTestsNoticeMutants(t *testing.T) { mutanttest.MustFail(t) }

// lockstep is a number of processes that try to take one free key at the same moment, again and again.
type lockstep struct {
	callers int
	delay   time.Duration // each request and each reply is up to this long on its way, and callers start within it
	even    bool          // each is that long, and callers start within a millisecond
	three   bool          // masters instead of five
	stopped bool          // one master does not answer
	waits   bool          // Acquire with MaxAttempts(1) instead of TryAcquire
	joint   bool          // masters are being exchanged: three of five stay
	opts    func(caller int) []redlock.Option
}

const (
	tryTTL     = 10 * time.Second
	tryTimeout = tryTTL / 20
)

// outcome counts the results of the ticks. unclear counts the losers that learned that the votes stay split. With a
// stopped master that happens once in thousands of tries: in its last round a loser met the winner on too few
// masters.
type outcome struct{ nobody, several, wrong, slow, unclear int }

// fine reports whether the promise was kept, for this number of tries.
func (o outcome) fine(tries int) bool { return o.kept() && rare(o.unclear, tries) }

// kept is fine, but for how many losers learned that the votes stay split: of few tries that number is chance.
func (o outcome) kept() bool {
	o.unclear = 0
	return o == (outcome{})
}

func rare(unclear, tries int) bool { return unclear <= 1+tries/200 }

// run runs n ticks. Every tenth tick begins with new processes, which do not know the masters yet.
func (s lockstep) run(t *testing.T, n int, delay func(most time.Duration) time.Duration) (o outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(7)
		switch {
		case s.three:
			masters = masters[:3]
		case !s.joint:
			masters = masters[:5]
		}
		masters.Behave(func(*single.Request) memmaster.Fate {
			if s.even {
				return memmaster.Fate{Before: s.delay, After: s.delay}
			}
			return memmaster.Fate{Before: delay(s.delay), After: delay(s.delay)}
		})
		if s.stopped {
			masters[2].Behave(memmaster.Always(memmaster.Fate{Lost: true}))
		}
		var lockers []*redlock.Locker
		for i := range n {
			if i%10 == 0 {
				lockers = lockers[:0]
				for range s.callers {
					if s.joint {
						lockers = append(lockers, MemJoint(t, masters[:5], masters[2:]))
					} else {
						lockers = append(lockers, MemLocker(t, masters))
					}
				}
			}
			s.tick(t, lockers, delay, &o)
		}
	})
	return o
}

// tick lets all callers try. The winner keeps the lock until all callers have their results.
func (s lockstep) tick(t *testing.T, lockers []*redlock.Locker, delay func(time.Duration) time.Duration, o *outcome) {
	locks, errs := make([]*redlock.Lock, s.callers), make([]error, s.callers)
	began := time.Now()
	var all sync.WaitGroup
	for i, l := range lockers {
		start := delay(s.delay)
		if s.even {
			start = min(start, time.Millisecond)
		}
		all.Go(func() {
			Pass(start)
			var opts []redlock.Option
			if s.opts != nil {
				opts = s.opts(i)
			}
			if s.waits {
				locks[i], errs[i] = l.Acquire(t.Context(), Key, tryTTL, append(opts, redlock.MaxAttempts(1))...)
			} else {
				locks[i], errs[i] = l.TryAcquire(t.Context(), Key, tryTTL, opts...)
			}
		})
	}
	all.Wait()
	if time.Since(began) > tryTimeout+s.delay {
		o.slow++
	}
	winners := 0
	for i, lock := range locks {
		switch {
		case lock != nil:
			winners++
			_ = lock.Release(t.Context()) // a stopped master confirms nothing
		case errors.Is(errs[i], redlock.ErrContended):
			o.unclear++
		case !errors.Is(errs[i], redlock.ErrHeld):
			t.Log(errs[i])
			o.wrong++
		}
	}
	switch {
	case winners == 0:
		o.nobody++
	case winners > 1:
		o.several++
	}
	Settle(tryTimeout)
}

// seeded returns delays of up to most.
func seeded(seed uint64) func(most time.Duration) time.Duration {
	r := rand.New(rand.NewPCG(seed, 103))
	var mu sync.Mutex
	return func(most time.Duration) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(r.Int64N(int64(most) + 1))
	}
}
