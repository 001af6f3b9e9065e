package contend_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/contend"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/internal/soak"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// TestHazard103ATryOnAFreeKeyHasAWinner prints in how many ticks no caller got the key.
func TestHazard103ATryOnAFreeKeyHasAWinner(t *testing.T) {
	n := soak.Or(10, 100)
	var table strings.Builder
	for _, waits := range []bool{false, true} {
		for _, stopped := range []bool{false, true} {
			for _, delay := range []time.Duration{0, 200 * time.Microsecond, 2 * time.Millisecond} {
				fmt.Fprintf(&table, "\n%-16v stopped=%-5t delay=%-6v",
					map[bool]string{false: "TryAcquire", true: "MaxAttempts(1)"}[waits], stopped, delay)
				for _, callers := range []int{2, 3, 5, 8} {
					s := lockstep{callers: callers, delay: delay, stopped: stopped, waits: waits}
					o := s.run(t, n, seeded(uint64(callers)))
					fmt.Fprintf(&table, "  %d callers: %3d", callers, o.nobody)
					if !o.fine(n * callers) {
						t.Errorf("%+v: %+v", s, o)
					}
				}
			}
		}
	}
	t.Logf("ticks of %d without a winner: %s", n, table.String())
}

// With a stopped master two callers can split the votes of each round, and a timeout has room for few slow ones.
func TestHazard158ATryOnASlowNetworkHasAWinner(t *testing.T) {
	n, nobody := soak.Or(100, 1000), 0
	for _, three := range []bool{false, true} {
		s := lockstep{callers: 12, delay: 10 * time.Millisecond, three: three, stopped: true}
		o := s.run(t, n, seeded(158))
		if o.several+o.wrong > 0 {
			t.Errorf("%+v: %+v", s, o)
		}
		nobody += o.nobody
	}
	if nobody > n/25 {
		t.Errorf("of %d ticks %d had no winner", 2*n, nobody)
	}
}

// Where each message takes as long as the others, only the pauses part the callers.
func TestATryOnAnEvenNetworkHasAWinner(t *testing.T) {
	n := soak.Or(50, 1000)
	s := lockstep{callers: 6, delay: 40 * time.Millisecond, even: true}
	if o := s.run(t, n, seeded(158)); o.several+o.wrong > 0 || o.nobody > n/25 {
		t.Errorf("of %d ticks: %+v", n, o)
	}
}

// A quorum of the old masters names the owner in each round. The process that tries has the new masters, too.
func TestATryOfTheTransitionIsRefusedAtOnceByAHolderOfTheOldMasters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(7)
		holder, l := MemLocker(t, masters[:5]), MemJoint(t, masters[:5], masters[2:])
		lock := Acquire(t, holder, tryTTL)
		began := time.Now()
		_, err := l.TryAcquire(t.Context(), Key, tryTTL)
		OnlyIs(t, err, redlock.ErrHeld)
		if took := time.Since(began); took > tryTimeout/5 {
			t.Errorf("the try took %v", took)
		}
		_, err = l.TryAcquire(Within(t, time.Microsecond), Key, tryTTL) // which has no time for another round
		Is(t, err, redlock.ErrHeld)
		Must(t, lock.Release(t.Context()))
	})
}

// The context may end in the middle of a round. The error says what the rounds before it have found, too.
func TestATryThatItsContextEndsSaysThatTheLockIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(10)
		holder, l := MemLocker(t, masters[:5]), MemJoint(t, masters[:5], masters[5:])
		lock := Acquire(t, holder, time.Minute)
		masters.Behave(memmaster.Always(memmaster.Fate{Before: 5 * time.Millisecond, After: 5 * time.Millisecond}))
		for d := 11 * time.Millisecond; d < 40*time.Millisecond; d += time.Millisecond {
			_, err := l.TryAcquire(Within(t, d), Key, tryTTL)
			Is(t, err, redlock.ErrHeld)
			Settle(tryTimeout)
		}
		Must(t, lock.Release(t.Context()))
	})
}

// An owner that a quorum of one set of masters names for long has the lock, unless it may be a contender that has the
// same name in each round. Then the next round may be won. What is named for a moment may be a lost round that is just
// being released.
func TestHazard103ATryOfTheTransitionGivesUpForAHolderOnly(t *testing.T) {
	another := []redlock.Option{redlock.Reentrant("job-2")}
	for name, test := range map[string]struct {
		rival string
		from  time.Duration // before, they name another one
		until time.Duration
		wins  bool
		opts  []redlock.Option
	}{
		"a holder":                          {owner.New("a"), 0, tryTTL, false, nil},
		"a holder that has just come":       {owner.New("a"), 1, tryTTL, false, nil},
		"a contender's late release":        {owner.New("a"), 0, 2 * contend.FirstPause, true, nil},
		"a reentrant owner":                 {"job-1", 0, tryTimeout / 5, true, another},
		"a reentrant owner, to a plain try": {"job-1", 0, tryTimeout / 5, true, nil},
	} {
		RunVirtual(t, name, func(t *testing.T) {
			began := time.Now()
			var masters []redlock.Master
			for i, m := range memmaster.New(7) {
				masters = append(masters, &rumour{m, func(*single.Request) single.Reply {
					switch now := time.Since(began); {
					case i > 2 || now >= test.until:
						return single.Reply{Outcome: single.Granted}
					case now < test.from:
						return heldBy(owner.New("another"))
					default:
						return heldBy(test.rival)
					}
				}})
			}
			l, err := redlock.NewJoint(masters[:5], masters[2:], redlock.Options{Clock: memmaster.NewClock(0)})
			Must(t, err)
			ClosesAtLast(t, l)
			_, err = l.TryAcquire(t.Context(), Key, tryTTL, test.opts...)
			if test.wins {
				Must(t, err)
				return
			}
			OnlyIs(t, err, redlock.ErrHeld)
			if took := time.Since(began); took > tryTimeout/5 {
				t.Errorf("the try took %v", took)
			}
		})
	}
}

// reentrant lets each caller be an owner that may enter again.
func reentrant(i int) []redlock.Option {
	return []redlock.Option{redlock.Reentrant(fmt.Sprintf("job-%d", i))}
}

// Each of two callers may get a quorum of another set, in several rounds. And its next round may be faster than the
// release of the other's round, which then looks like a holder's.
func TestHazard103OneOfTwoWinsInTheTransition(t *testing.T) {
	n := soak.Or(200, 10_000)
	for name, opts := range map[string]func(int) []redlock.Option{"plain": nil, "reentrant": reentrant} {
		s := lockstep{callers: 2, delay: 2 * time.Millisecond, joint: true, opts: opts}
		if o := s.run(t, n, seeded(1)); !o.fine(n * s.callers) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// TestHazard103EveryKindOfTryHasAWinner draws kinds of lock, delays, a stopped master and an exchange of masters.
func TestHazard103EveryKindOfTryHasAWinner(t *testing.T) {
	kinds := map[string]func(i int) []redlock.Option{
		"plain":     nil,
		"fenced":    func(int) []redlock.Option { return []redlock.Option{redlock.Fenced()} },
		"published": func(i int) []redlock.Option { return []redlock.Option{redlock.Published(fmt.Sprint(i))} },
		"exclusive": func(int) []redlock.Option { return []redlock.Option{redlock.Exclusive()} },
		"reentrant": reentrant,
		"every pair": func(i int) []redlock.Option {
			return []redlock.Option{redlock.AndKeys(fmt.Sprint("a", i), fmt.Sprint("z", i))}
		},
	}
	unclear, tries, checks, enough := 0, 0, 0, soak.Or(40, 1000)
	rapid.Check(t, func(rt *rapid.T) {
		if checks++; checks > enough {
			return
		}
		s := lockstep{
			callers: rapid.IntRange(2, 8).Draw(rt, "callers"),
			delay:   time.Duration(rapid.SampledFrom([]int{0, 20, 200, 2000}).Draw(rt, "delay")) * time.Microsecond,
			stopped: rapid.Bool().Draw(rt, "stopped"),
			waits:   rapid.Bool().Draw(rt, "waits"),
			joint:   rapid.Bool().Draw(rt, "joint"),
			opts: kinds[rapid.SampledFrom([]string{
				"plain", "fenced", "published", "exclusive", "reentrant", "every pair",
			}).Draw(rt, "kind")],
		}
		o := s.run(t, 10, seeded(rapid.Uint64().Draw(rt, "delays")))
		if !o.kept() {
			rt.Errorf("%+v", o)
		}
		unclear, tries = unclear+o.unclear, tries+10*s.callers
	})
	if !rare(unclear, tries) {
		t.Errorf("of %d tries %d learned that the votes stay split", tries, unclear)
	}
}

// rumour is a master that refuses every acquisition and names the holder.
type rumour struct {
	*memmaster.Master
	reply func(*single.Request) single.Reply
}

func (m rumour) Do(ctx context.Context, batch []*single.Call) {
	m.Master.Do(ctx, batch)
	for _, c := range batch {
		if c.Request.Op == single.Acquire {
			c.Reply = m.reply(c.Request)
		}
	}
}

// disputed makes a Locker over five masters. The last three masters refuse and name the holder.
func disputed(t *testing.T, opts redlock.Options,
	who func(master int, r *single.Request) single.Reply,
) *redlock.Locker {
	t.Helper()
	var masters []redlock.Master
	for i, m := range memmaster.New(5) {
		if i < 2 {
			masters = append(masters, m)
			continue
		}
		masters = append(masters, rumour{m, func(r *single.Request) single.Reply { return who(i, r) }})
	}
	opts.Clock = memmaster.NewClock(0)
	return LockerOver(t, masters, opts)
}

// heldBy is the reply of a master on which another owner has the key.
func heldBy(owner string) single.Reply { return single.Reply{TTL: time.Second, Holder: owner} }

func TestHazard103AVoteThatStaysSplitIsNoRefusal(t *testing.T) {
	var n atomic.Int64
	newcomers := func(int, *single.Request) single.Reply { return heldBy(fmt.Sprint("newcomer ", n.Add(1))) }
	for name, test := range map[string]struct {
		who    func(master int, r *single.Request) single.Reply
		want   error
		opts   []redlock.Option
		rounds bool // it takes more than one
	}{
		"others come all the time": {newcomers, redlock.ErrContended, nil, true},
		"and for one that publishes": {
			newcomers, redlock.ErrContended, []redlock.Option{redlock.Published("x")}, true,
		},
		"one has all of them": {func(int, *single.Request) single.Reply {
			return heldBy("one")
		}, redlock.ErrHeld, nil, false},
		"nobody tells who has it": {func(int, *single.Request) single.Reply {
			return single.Reply{}
		}, redlock.ErrHeld, nil, false},
		"each of them has another, who stays": {func(i int, _ *single.Request) single.Reply {
			return heldBy(fmt.Sprint(i))
		}, redlock.ErrHeld, nil, true},
		"two have another, who stays": {func(i int, r *single.Request) single.Reply {
			if i > 2 {
				return heldBy(fmt.Sprint(i))
			}
			return newcomers(i, r)
		}, redlock.ErrContended, nil, true},
		"readers share it": {func(int, *single.Request) single.Reply {
			return single.Reply{TTL: time.Second, Holder: fmt.Sprint("reader ", n.Add(1)), Token: 1}
		}, redlock.ErrHeld, []redlock.Option{redlock.Exclusive()}, false},
		"counters are always ahead": {func(_ int, r *single.Request) single.Reply {
			return single.Reply{Token: r.Token}
		}, redlock.ErrContended, []redlock.Option{redlock.Published("x")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, attempts := range []int{0, 1, 3} {
				synctest.Test(t, func(t *testing.T) {
					var seen returned
					l := disputed(t, redlock.Options{Observer: seen.observe}, test.who)
					began := time.Now()
					var err error
					if attempts == 0 {
						_, err = l.TryAcquire(t.Context(), Key, tryTTL, test.opts...)
					} else {
						_, err = l.Acquire(t.Context(), Key, tryTTL,
							append(test.opts, redlock.MaxAttempts(attempts))...)
					}
					OnlyIs(t, err, test.want)
					took := time.Since(began)
					Pass(time.Millisecond)
					if rounds := seen.rounds(t); (rounds > max(1, attempts)) != test.rounds ||
						took > tryTimeout+time.Second*time.Duration(attempts/2) {
						t.Errorf("%d attempts: %d rounds in %v: %v", attempts, rounds, took, err)
					}
				})
			}
		})
	}
}

// returned notes the event of an acquisition that has returned.
type returned struct {
	mu    sync.Mutex
	event *redlock.Event
}

func (r *returned) observe(e redlock.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Kind == redlock.EventReturned {
		r.event = &e
	}
}

func (r *returned) rounds(t *testing.T) int {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.event == nil {
		t.Fatal("no event of the return")
	}
	return r.event.Rounds
}

func TestATryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		l := disputed(t, redlock.Options{}, func(int, *single.Request) single.Reply {
			return heldBy(fmt.Sprint(n.Add(1)))
		})
		ctx := Within(t, 20*time.Millisecond)
		began := time.Now()
		_, err := l.TryAcquire(ctx, Key, tryTTL)
		OnlyIs(t, err, redlock.ErrContended, context.DeadlineExceeded)
		if took := time.Since(began); took != 20*time.Millisecond {
			t.Errorf("the try took %v", took)
		}
	})
}

// A lost round may leave keys on a master. They must not refuse the next round of the same try, even if the releases
// arrive late.
func TestATryIsNotRefusedByItsOwnEarlierRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		own := make(map[string]bool)
		l := disputed(t, redlock.Options{}, func(i int, r *single.Request) single.Reply {
			mu.Lock()
			defer mu.Unlock()
			own[r.Owner] = true
			for owner := range own {
				if owner != r.Owner && len(own) < 4 {
					return heldBy(owner) // on all three
				}
			}
			if len(own) == 1 {
				return heldBy(fmt.Sprint("newcomer ", i))
			}
			return single.Reply{Outcome: single.Granted}
		})
		lock, err := l.TryAcquire(t.Context(), Key, tryTTL)
		Must(t, err)
		if left := lock.Remaining(); left < tryTTL*98/100-tryTTL/1000 {
			t.Errorf("its validity is %v, and should count from the last round", left)
		}
		Must(t, lock.Release(t.Context()))
	})
}

// A round that only waits for a master which is late is over soon, and no sooner than a master that is far away can
// answer.
func TestATryWaitsForMastersThatAreFarAwayAndNotForStoppedOnes(t *testing.T) {
	for _, test := range []struct {
		last, most time.Duration
		want       error
	}{
		{100 * time.Millisecond, 100 * time.Millisecond, nil},
		{0, 550 * time.Millisecond, redlock.ErrHeld}, // never
	} {
		synctest.Test(t, func(t *testing.T) {
			masters := memmaster.New(5)
			l := MemLocker(t, masters)
			masters[4].Behave(memmaster.Always(memmaster.Fate{Before: test.last, Lost: test.last == 0}))
			if test.want == nil { // its distance is known
				Must(t, Acquire(t, l, tryTTL).Release(t.Context()))
				Settle(time.Second)
			}
			for _, m := range masters[2:4] {
				m.Do(t.Context(),
					[]*single.Call{
						{Request: &single.Request{
							Op: single.Acquire, Keys: []string{Key}, Owner: "other", TTL: time.Minute,
						}},
					})
			}
			began := time.Now()
			lock, err := l.TryAcquire(t.Context(), Key, tryTTL)
			if !errors.Is(err, test.want) || time.Since(began) > test.most {
				t.Errorf("a master answers after %v: %v after %v", test.last, err, time.Since(began))
			}
			if lock != nil {
				Must(t, lock.Release(t.Context()))
			}
			Settle(time.Minute)
		})
	}
}
