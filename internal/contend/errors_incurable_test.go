package contend_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/soak"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

// Some masters fail permanently while others fail temporarily. An error that waiting can't mend ends the wait, even
// if the outage decides every round.

// awayFor lists the temporary outages of a master.
var awayFor = map[string]Act{
	"silent":  {Lost: true},
	"refused": {Err: errors.New("connection refused")},
	"guarded": {Err: &single.GuardError{Guard: time.Minute, Remaining: time.Second}},
	"loading": {Err: ReplyError("LOADING Redis is loading the dataset in memory"), After: time.Millisecond},
}

// forGood lists the permanent errors. An error about the generation alone does not affect locks that are held.
var forGood = map[string]Act{
	"password": {Err: ReplyError("WRONGPASS invalid username-password pair or user is disabled.")},
	"password, slowly": {
		Err: ReplyError("WRONGPASS invalid username-password pair or user is disabled."), After: 90 * time.Millisecond,
	},
	"right": {
		Err:   ReplyError("NOPERM this user has no permissions to run the 'evalsha' command"),
		After: 3 * time.Millisecond,
	},
	"age not known": {
		Err: &single.GuardError{
			Guard: time.Minute, Remaining: time.Minute, Unclear: "NOPERM this user has no permissions to run the " +
				"'info' command",
		},
	},
	"something in the way": {
		Err: ReplyError("WRONGTYPE something of somebody else is no generation: redlock:generation"),
	},
}

// half is two sets of masters. The one called set fails permanently, the other one temporarily.
type half struct {
	set                   string
	broken, away, masters Fakes
	fails, misses         Act
}

// halves calls f for combinations of faults. Each pair of faults is among them, with the sets, their sizes and the
// options in turn; with time, each combination is.
func halves(t *testing.T, f func(t *testing.T, l *redlock.Locker, h half)) {
	t.Helper()
	for i, what := range slices.Sorted(maps.Keys(forGood)) {
		for j, how := range slices.Sorted(maps.Keys(awayFor)) {
			for k := range 8 {
				if !soak.On() && k != (i+3*j)%8 {
					continue
				}
				n, opts := 1+k/2%2*2, []redlock.Options{{}, {Generation: 1}}[k/4]
				h := half{set: []string{"old", "new"}[k%2], fails: forGood[what], misses: awayFor[how]}
				RunVirtual(t, fmt.Sprint(h.set, " ", what, " and the others ", how, " ", n, k/4), func(t *testing.T) {
					masters := NewFakes(2 * n)
					h.masters, h.broken, h.away = masters, masters[:n], masters[n:]
					l := Joint(t, h.broken, h.away, opts)
					if h.set == "new" {
						h.broken, h.away = h.away, h.broken
					}
					f(t, l, h)
					masters.Behave(nil)
				})
			}
		}
	}
}

func always(a Act) func(*single.Request) Act { return func(*single.Request) Act { return a } }

func TestARefusalByOneSetIsReportedDuringAnOutageOfTheOther(t *testing.T) {
	halves(t, func(t *testing.T, l *redlock.Locker, h half) {
		h.broken.Behave(always(h.fails))
		h.away.Behave(always(h.misses))
		began := time.Now()
		_, err := l.Acquire(Within(t, time.Minute), Key, LongTTL)
		OnlyIs(t, err, redlock.ErrNoQuorum)
		Is(t, err, redlock.ErrMisconfigured)
		OfSet(t, err, redlock.ErrNoQuorum, h.set)
		if !strings.Contains(err.Error(), h.fails.Err.Error()) {
			t.Errorf("%v does not say %v", err, h.fails.Err)
		}
		if took := time.Since(began); took < redlock.MendTime || took > redlock.MendTime+3*time.Second {
			t.Errorf("the wait took %v", took)
		}
	})
}

// A call that asks once reports what it has learned when it is decided. The outage takes longer than that here.
func TestASingleRequestNamesTheSetThatFailsForGood(t *testing.T) {
	const late = 40 * time.Millisecond
	for name, ask := range map[string]func(t *testing.T, l *redlock.Locker, held *redlock.Lock) error{
		"extend": func(t *testing.T, _ *redlock.Locker, held *redlock.Lock) error {
			return held.Extend(t.Context(), LongTTL)
		},
		"verify":   func(t *testing.T, _ *redlock.Locker, held *redlock.Lock) error { return held.Verify(t.Context()) },
		"announce": func(t *testing.T, l *redlock.Locker, _ *redlock.Lock) error { return l.Announce(t.Context(), 2) },
		"holder": func(t *testing.T, l *redlock.Locker, _ *redlock.Lock) error {
			_, err := l.Holder(t.Context(), Key)
			return err
		},
		"try": func(t *testing.T, l *redlock.Locker, _ *redlock.Lock) error {
			_, err := l.TryAcquire(t.Context(), "another", LongTTL, redlock.Fenced())
			return err
		},
	} {
		halves(t, func(t *testing.T, l *redlock.Locker, h half) {
			held := Acquire(t, l, LongTTL)
			h.fails.After, h.misses.After = min(h.fails.After, late/2), late
			h.broken.Behave(always(h.fails))
			h.away.Behave(always(h.misses))
			Settle(11 * time.Second) // the known generation may be out of date
			err := ask(t, l, held)
			if OfSet(t, err, redlock.ErrMisconfigured, h.set); t.Failed() {
				t.Log(name)
			}
			Must(t, held.Err())
			h.masters.Behave(nil)
			Settle(time.Second)
			Must(t, held.Extend(t.Context(), LongTTL))
			Must(t, held.Release(t.Context()))
		})
	}
}

// One of two sets knows a generation that is two ahead, and the other set is away. The wait ends at once.
func TestAnOutageOfOneSetDoesNotHideThatTheConfigurationIsOutOfDate(t *testing.T) {
	for how, misses := range awayFor {
		for _, after := range []time.Duration{0, 20 * time.Millisecond, 300 * time.Millisecond} {
			for away := range 2 {
				Bubble(t, 2, func(t *testing.T, masters Fakes) {
					masters[away].Behave(always(misses))
					masters[1-away].Known = 3
					masters[1-away].Behave(always(Act{After: after}))
					_, err := Joint(t, masters[:1], masters[1:], redlock.Options{Generation: 1}).
						Acquire(Within(t, time.Minute), Key, LongTTL)
					if Is(t, err, redlock.ErrOutdated); err != nil &&
						!strings.Contains(err.Error(), masters[1-away].Name()) {
						t.Errorf("%s, %v: %v does not name the master", how, after, err)
					}
					masters.Behave(nil)
				})
			}
		}
	}
}

// The same within one set: two of five are away and are the first to say so, three have another password.
func TestARefusalByASetIsReportedDuringItsOwnOutage(t *testing.T) {
	for _, opts := range []redlock.Options{{}, {Generation: 1}} {
		Bubble(t, 5, func(t *testing.T, masters Fakes) {
			l := masters.Locker(t, opts)
			fails := forGood["right"]
			masters[:2].Behave(RefuseAll)
			masters[2:].Behave(always(fails))
			_, err := l.Acquire(Within(t, time.Minute), Key, LongTTL)
			OnlyIs(t, err, redlock.ErrNoQuorum)
			Is(t, err, redlock.ErrMisconfigured)
			masters.Behave(nil)
		})
	}
}

// An error counts only while it lasts. An error that has been mended ends no wait, and neither does an error that an
// earlier acquisition met.
func TestAMendedFaultEndsNoWait(t *testing.T) {
	for _, opts := range []redlock.Options{{}, {Generation: 1}} {
		Bubble(t, 2, func(t *testing.T, masters Fakes) {
			l := Joint(t, masters[:1], masters[1:], opts)
			refused := forGood["password"]
			for range 3 {
				masters[0].Behave(RefuseAll)
				masters[1].Behave(always(refused))
				_, err := l.Acquire(Within(t, time.Minute), Key, LongTTL)
				Is(t, err, redlock.ErrMisconfigured)
				masters[1].Behave(always(awayFor["loading"]))
				Settle(time.Second)
				w := Wait(t, Within(t, time.Minute), l, Key, LongTTL)
				Settle(3 * time.Second)
				masters.Behave(nil)
				Must(t, w.Get(t).Release(t.Context()))
				Settle(11 * time.Second)
			}
		})
		// Two of five are not enough, also while another is away.
		Bubble(t, 5, func(t *testing.T, masters Fakes) {
			l := masters.Locker(t, opts)
			masters[0].Behave(RefuseAll)
			masters[1:3].Behave(always(forGood["password"]))
			w := Wait(t, Within(t, time.Minute), l, Key, LongTTL)
			Settle(5 * time.Second)
			masters.Behave(nil)
			Must(t, w.Get(t).Release(t.Context()))
		})
	}
}

// TestWrongPasswordsOfDifferentMastersAtDifferentTimesEndNoWait: no majority ever fails at once, and the first was
// mended long ago.
func TestWrongPasswordsOfDifferentMastersAtDifferentTimesEndNoWait(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		masters.Take("somebody", time.Hour)
		l := masters.Locker(t, redlock.Options{})
		masters[0].Behave(always(forGood["password"]))
		w := Wait(t, Within(t, time.Minute), l, Key, LongTTL, redlock.RetryEvery(10*time.Second))
		Settle(time.Second)
		masters[0].Behave(always(Act{After: 10 * time.Millisecond})) // mended, nine seconds before anybody asks
		masters[1].Behave(always(forGood["password"]))
		masters[2].Behave(RefuseAll)
		Settle(10 * time.Second)
		masters.Behave(nil)
		masters.Forget()
		Must(t, w.Get(t).Release(t.Context()))
	})
}

// A master that grants does not fail permanently: an error from a request that had to queue behind another one is
// older than the master's grant.
func TestAMasterThatGrantsDoesNotFailForGood(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		var extensions atomic.Int64
		masters[0].Behave(func(r *single.Request) Act {
			switch {
			case r.Op == single.Acquire:
				return Act{After: 900 * time.Millisecond}
			case r.Op == single.Extend && extensions.Add(1) == 1:
				return forGood["password"]
			}
			return Act{}
		})
		lock := Acquire(t, masters.Locker(t, redlock.Options{}), LongTTL)
		Settle(100 * time.Millisecond)
		Must(t, lock.Extend(t.Context(), LongTTL)) // on the first master it follows the acquisition
		Settle(850 * time.Millisecond)
		Must(t, lock.Verify(t.Context())) // which has recovered
		masters[1].Behave(func(*single.Request) Act {
			a := forGood["password"]
			a.After = 20 * time.Millisecond
			return a
		})
		masters[2].Behave(always(Act{Err: RefuseAll(nil).Err, After: 20 * time.Millisecond}))
		err := lock.Extend(t.Context(), LongTTL)
		Is(t, err, redlock.ErrNoQuorum)
		IsNot(t, err, redlock.ErrMisconfigured)
		masters.Behave(nil)
		Must(t, lock.Release(t.Context()))
	})
}

func TestAWaitThatIsEndedByARoundDoesNotMatchTheRoundBefore(t *testing.T) {
	for _, c := range []struct {
		name string
		opts redlock.Options
		ends func(masters Fakes)
		want error
	}{
		{"misconfigured", redlock.Options{}, func(m Fakes) {
			m.Behave(always(forGood["password"]))
		}, redlock.ErrNoQuorum},
		{"outdated", redlock.Options{Generation: 1}, func(m Fakes) {
			for _, one := range m {
				one.Mu.Lock()
				one.Known = 3
				one.Mu.Unlock()
			}
		}, redlock.ErrOutdated},
	} {
		RunVirtual(t, c.name, func(t *testing.T) {
			masters := NewFakes(3)
			masters.Take("somebody", time.Hour)
			w := Wait(t, Within(t, time.Minute), masters.Locker(t, c.opts), Key, LongTTL,
				redlock.RetryEvery(11*time.Second))
			Settle(time.Second)
			c.ends(masters)
			Settle(11 * time.Second)
			OnlyIs(t, w.Fail(t), c.want)
			masters.Behave(nil)
		})
	}
}

type bigKey struct{}

// A failed wait leaves nothing of its context in the Locker.
func TestAFailedWaitLeavesNothingOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		l := masters.Locker(t, redlock.Options{Observer: func(redlock.Event) {}})
		masters.Fail(redlocktest.ReplyError("NOPERM this user has no permissions"))
		freed := new(atomic.Bool)
		func() {
			big := new([1 << 20]byte)
			runtime.AddCleanup(big, func(c *atomic.Bool) { c.Store(true) }, freed)
			ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), bigKey{}, big), 3*time.Second)
			defer cancel()
			_, err := l.Acquire(ctx, "key", 10*time.Second)
			Is(t, err, redlock.ErrMisconfigured)
		}()
		masters.Fail(nil)
		<-time.After(10 * time.Minute) // long after everything
		lock, err := l.Acquire(t.Context(), "another", 10*time.Second)
		Must(t, err)
		Must(t, lock.Release(t.Context()))
		<-time.After(time.Minute)
		runtime.GC()
		redistest.Eventually(t, time.Minute, freed.Load, "the context of a wait that has ended is freed")
		runtime.KeepAlive(l)
	})
}
