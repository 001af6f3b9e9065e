package redlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// Two sets of masters at a time (NewJoint), with masters in memory. internal/scenarios has real servers.

// sixes are the fakes of two sets of three that have none in common.
func sixes(t *testing.T, body func(t *testing.T, masters Fakes, l *redlock.Locker)) {
	t.Helper()
	Bubble(t, 6, func(t *testing.T, masters Fakes) {
		body(t, masters, Joint(t, masters[:3], masters[3:], redlock.Options{}))
	})
}

func TestOneMasterDownInEachSetCostsNothing(t *testing.T) {
	sixes(t, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		masters[0].Behave(RefuseAll)
		masters[4].Behave(On(single.Acquire, Act{Lost: true}))
		lock := Acquire(t, l, LongTTL)
		Must(t, lock.Extend(t.Context(), LongTTL))
		Must(t, lock.Verify(t.Context()))
		Must(t, lock.Release(t.Context()))
	})
}

func TestAMajorityOfOneSetDownIsNoQuorumOfThatSet(t *testing.T) {
	for set, down := range map[string][]int{"old": {0, 2}, "new": {3, 4}} {
		sixes(t, func(t *testing.T, masters Fakes, l *redlock.Locker) {
			lock := Acquire(t, l, LongTTL)
			for _, i := range down {
				masters[i].Behave(RefuseAll)
			}
			OfSet(t, lock.Extend(t.Context(), LongTTL), redlock.ErrNoQuorum, set)
			Must(t, lock.Err())
			OfSet(t, lock.Verify(t.Context()), redlock.ErrNoQuorum, set)
			OfSet(t, lock.Release(t.Context()), redlock.ErrNoQuorum, set)
			_, err := l.TryAcquire(t.Context(), Key, LongTTL)
			OfSet(t, err, redlock.ErrNoQuorum, set)
			for _, i := range down {
				masters[i].Behave(nil)
			}
			Settle(2 * time.Second) // the janitor has removed what was left
			Must(t, Acquire(t, l, LongTTL).Release(t.Context()))
			Settle(time.Second)
			masters.AllFree(t)
		})
	}
}

func TestAKeyThatIsHeldInOneSetIsHeldAndTheErrorNamesTheSet(t *testing.T) {
	for set, at := range map[string]int{"old": 0, "new": 3} {
		sixes(t, func(t *testing.T, masters Fakes, l *redlock.Locker) {
			masters[at].Take("another", LongTTL)
			lock := Acquire(t, l, LongTTL) // a minority is in nobody's way
			Must(t, lock.Release(t.Context()))
			masters[at+1].Take("another", LongTTL)
			_, err := l.TryAcquire(t.Context(), Key, LongTTL)
			OfSet(t, err, redlock.ErrHeld, set)
			IsNot(t, err, redlock.ErrNoQuorum)
			Settle(time.Second)
			if n := masters.Holders("") - masters.Holders("another"); n > 0 {
				t.Errorf("the refused attempt left %d keys", n)
			}
			h, err := l.Holder(t.Context(), Key)
			if Must(t, err); !h.Held {
				t.Errorf("held in the %s set, and Holder returned %+v", set, h)
			}
		})
	}
}

// If a majority of one set has lost the key, another process that knows only that set can take it.
func TestAHoldThatOneSetHasLostIsOver(t *testing.T) {
	for set, lost := range map[string][]int{"old": {0, 1}, "new": {4, 5}} {
		for name, ask := range map[string]func(context.Context, *redlock.Lock) error{
			"extend":  func(ctx context.Context, lock *redlock.Lock) error { return lock.Extend(ctx, LongTTL) },
			"verify":  func(ctx context.Context, lock *redlock.Lock) error { return lock.Verify(ctx) },
			"release": func(ctx context.Context, lock *redlock.Lock) error { return lock.Release(ctx) },
		} {
			sixes(t, func(t *testing.T, masters Fakes, l *redlock.Locker) {
				lock := Acquire(t, l, LongTTL)
				Settle(0)
				for _, i := range lost {
					masters[i].Forget()
				}
				OfSet(t, ask(t.Context(), lock), redlock.ErrNotHeld, set)
				if name != "verify" && !Over(lock) {
					t.Errorf("%s: Done is open", name)
				}
				_ = lock.Release(t.Context())
				Settle(time.Second)
				masters.AllFree(t)
			})
		}
	}
}

func TestRenewalOfAHoldThatOneSetHasLostEndsIt(t *testing.T) {
	sixes(t, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		lock := Acquire(t, l, LongTTL, redlock.AutoRenew())
		Settle(LongTTL)
		Must(t, lock.Err())
		masters[3].Forget()
		masters[5].Forget()
		Settle(LongTTL / 2)
		Is(t, lock.Err(), redlock.ErrNotHeld)
	})
}

func TestAHoldOfTwoSetsIsRepairedInBoth(t *testing.T) {
	sixes(t, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		lock := Acquire(t, l, LongTTL)
		Settle(0)
		masters[1].Forget()
		masters[5].Forget()
		Must(t, lock.Extend(t.Context(), LongTTL))
		Settle(time.Second)
		if n := masters.Holders(lock.Owner()); n != 6 {
			t.Errorf("%d of 6 masters have the key after an extension", n)
		}
		Must(t, lock.Release(t.Context()))
	})
}

// A master that belongs to both sets and has lost the key costs each set a vote.
func TestAMasterOfBothSetsVotesInBoth(t *testing.T) {
	Bubble(t, 4, func(t *testing.T, masters Fakes) {
		l := Joint(t, masters[:3], masters[1:], redlock.Options{}) // {1, 2, 3} → {2, 3, 4}
		lock := Acquire(t, l, LongTTL)
		Settle(0)
		if n := masters.Asked(); n != 4 {
			t.Errorf("%d requests for 4 masters, two of these in both sets", n)
		}
		masters[1].Forget()
		Must(t, lock.Extend(t.Context(), LongTTL))
		Settle(time.Second)
		masters[1].Forget()
		masters[2].Forget()
		Is(t, lock.Extend(t.Context(), LongTTL), redlock.ErrNotHeld)
		Settle(time.Second)
		masters[1].Behave(RefuseAll)
		Must(t, Acquire(t, l, LongTTL).Release(t.Context()))
		masters[0].Behave(RefuseAll)
		_, err := l.TryAcquire(t.Context(), Key, LongTTL)
		OfSet(t, err, redlock.ErrNoQuorum, "old")
		masters[0].Behave(nil)
		masters[3].Behave(RefuseAll)
		_, err = l.TryAcquire(t.Context(), Key, LongTTL)
		OfSet(t, err, redlock.ErrNoQuorum, "new")
		masters[1].Behave(nil)
		masters[3].Behave(nil)
		Settle(time.Second)
	})
}

func TestAReleaseIsConfirmedByBothSets(t *testing.T) {
	sixes(t, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		lock := Acquire(t, l, LongTTL)
		Settle(0)
		masters[3:].Behave(On(single.Release, Act{After: 300 * time.Millisecond}))
		began := time.Now()
		Must(t, lock.Release(t.Context()))
		if took := time.Since(began); took < 300*time.Millisecond {
			t.Errorf("confirmed after %v, before the new masters had answered", took)
		}
	})
}

func TestEventsOfTwoSetsNameTheSetThatDecided(t *testing.T) {
	Bubble(t, 6, func(t *testing.T, masters Fakes) {
		events := make(chan redlock.Event, 1000)
		l := Joint(t, masters[:3], masters[3:], redlock.Options{Observer: func(e redlock.Event) { events <- e }})
		masters[3:5].Take("another", LongTTL)
		_, err := l.TryAcquire(t.Context(), Key, LongTTL)
		Is(t, err, redlock.ErrHeld)
		Settle(time.Second)
		for len(events) > 0 {
			e := <-events
			if e.Kind == redlock.EventAcquire && (e.Set != "new" || e.N != 3 || e.Quorum != 2 || e.Refused != 2) {
				t.Errorf("the event of the round is %+v", e)
			}
		}
	})
}

// unlike is a master of a type with values that can't be compared.
type unlike struct {
	*Fake
	_ []int
}

func TestNewJointRefusesContradictoryMasters(t *testing.T) {
	f := NewFakes(70).Masters()
	same := func(name string) redlock.Master { return NewFake(name) }
	for name, c := range map[string]struct {
		before, after []redlock.Master
		opts          redlock.Options
		want          string
	}{
		"no old masters": {nil, f[:3], redlock.Options{}, "no masters (of the old masters)"},
		"no new masters": {f[:3], []redlock.Master{}, redlock.Options{}, "no masters (of the new masters)"},
		"twice among the old": {
			[]redlock.Master{f[0], f[1], f[0]}, f[:3], redlock.Options{}, "masters 1 and 3 are the same server, " +
				"m1:6379: it would vote twice (of the old masters)",
		},
		"twice among the new": {f[:3], []redlock.Master{f[1], f[1]}, redlock.Options{}, "(of the new masters)"},
		"nil": {
			f[:3], []redlock.Master{f[3], nil}, redlock.Options{}, "master 2 of 2 is nil (of the new masters)",
		},
		"another of one name": {
			f[:3], []redlock.Master{f[0], same("M2:6379")}, redlock.Options{}, "M2:6379 is one of the old and of the " +
				"new masters, and must be the same Master",
		},
		"another spelling": {
			[]redlock.Master{same("localhost:1")},
			[]redlock.Master{same("127.0.0.1:1"), f[1]},
			redlock.Options{},
			"127.0.0.1:1 is one of the old and of the new",
		},
		"not comparable": {
			[]redlock.Master{unlike{Fake: NewFake("x")}},
			[]redlock.Master{unlike{Fake: NewFake("x")}, f[0]},
			redlock.Options{},
			"x is one of the old",
		},
		"the same": {
			f[:3], []redlock.Master{f[2], f[0], f[1]}, redlock.Options{}, "the old and the new masters are the same",
		},
		"too many together": {f[:40], f[30:], redlock.Options{}, "70 old and new masters together, and 64 is the most"},
		"too many":          {f[:65], f[:3], redlock.Options{}, "65 masters, and 64 is the most (of the old masters)"},
		"a guard for some": {
			f[:3],
			[]redlock.Master{Guarded{Fake: NewFake("g"), Guard: time.Minute}},
			redlock.Options{},
			"one has a restart guard and the other has none",
		},
		"a shorter guard": {
			[]redlock.Master{Guarded{Fake: NewFake("g"), Guard: time.Minute}},
			[]redlock.Master{Guarded{Fake: NewFake("h"), Guard: time.Second}},
			redlock.Options{RestartGuard: time.Minute},
			"h, has one of 1s only",
		},
		"bad options": {f[:3], f[1:4], redlock.Options{DriftFactor: 2}, "DriftFactor"},
	} {
		l, err := redlock.NewJoint(c.before, c.after, c.opts)
		Is(t, err, redlock.ErrInvalid)
		if l != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it to say %q", name, err, c.want)
		}
	}
	for _, n := range []int{63, 64} { // together, of which 62 are in both
		l, err := redlock.NewJoint(f[:n-1], f[1:n], redlock.Options{})
		Must(t, err)
		Must(t, l.Close(t.Context()))
	}
}

func TestDialJointRefusesContradictoryURLs(t *testing.T) {
	good := []string{"redis://:hush@127.0.0.1:1", "redis://:hush@127.0.0.1:2", "redis://:hush@127.0.0.1:3"}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx           context.Context
		before, after []string
		want          error
		says          string
	}{
		"a bad URL among the old": {
			t.Context(), []string{good[0], "http://:hush@x"}, good, redlock.ErrInvalid, "master 2 of 2",
		},
		"a bad URL among the new": {
			t.Context(), good, []string{good[0], good[1], "nonsense:hush"}, redlock.ErrInvalid, "(of the new masters)",
		},
		"none":     {t.Context(), good, nil, redlock.ErrInvalid, "no masters (of the new masters)"},
		"the same": {t.Context(), good, good, redlock.ErrInvalid, "are the same"},
		"another URL of one": {
			t.Context(), good,
			[]string{good[0], "redis://:hush@127.0.0.1:2/1"},
			redlock.ErrInvalid,
			"127.0.0.1:2 is one of the old and of the new masters, and must be the same Master, or have the same URL",
		},
		"a nil context": {nil, good, good[1:], redlock.ErrInvalid, "nil context"},
		"an ended one":  {canceled, good, good[1:], context.Canceled, "dial"},
		"what can be":   {t.Context(), good, good[1:], nil, ""},
	} {
		l, err := redlock.DialJoint(c.ctx, c.before, c.after, redlock.Options{})
		if c.want == nil {
			Must(t, err)
			Must(t, l.Close(t.Context()))
			continue
		}
		Is(t, err, c.want)
		if l != nil || err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want it to say %q and no password", name, err, c.says)
		}
	}
}

func TestADialJointThatFailsClosesWhatItHasOpened(t *testing.T) {
	servers := redistest.StartN(t, 2)
	good := URLs(servers)
	for name, after := range map[string][]string{
		"a bad URL": {good[1], "nonsense"}, "the same masters": {good[1], good[0]}, "none": {},
	} {
		opened, err := redlock.OpenedByDialJoint(t.Context(), good, after)
		Is(t, err, redlock.ErrInvalid)
		if len(opened) != 2 {
			t.Errorf("%s: %d masters were opened", name, len(opened))
		}
		for _, m := range opened {
			call := &single.Call{Request: &single.Request{Op: single.Inspect, Keys: []string{Key}}}
			m.Do(t.Context(), []*single.Call{call})
			if call.Err == nil {
				t.Errorf("%s: %s was left open", name, m.Name())
			}
		}
	}
}
