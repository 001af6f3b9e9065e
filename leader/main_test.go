package leader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/internal/mutant/mutanttest"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/leader"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

func TestMain(m *testing.M) {
	redistest.AtOnce(8) // most of those that are parallel wait for terms to end
	goleak.VerifyTestMain(m)
}

// TestTheTestsNoticeMutants runs this package's tests for single mistakes in builds with the mistakes.
func TestTheTestsNoticeMutants(t *testing.T) { mutanttest.MustFail(t) }

var (
	must = locktest.Must
	is   = locktest.Is
)

const ttl = 2 * time.Second

// dial makes a Locker over servers that is closed with the test.
func dial(tb testing.TB, servers []*redistest.Server) *redlock.Locker {
	tb.Helper()
	return locktest.Dial(tb, servers, redlock.Options{})
}

// locker returns a Locker in virtual time. Its wall clock is ahead by skew.
func locker(tb testing.TB, masters memmaster.Masters, skew time.Duration) *redlock.Locker {
	tb.Helper()
	return locktest.LockerOver(tb, masters.All(), redlock.Options{Clock: memmaster.NewClock(skew)})
}

func shut(tb testing.TB, l *redlock.Locker) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	must(tb, l.Close(ctx))
}

func candidate(tb testing.TB, l *redlock.Locker, value string) *leader.Candidate {
	tb.Helper()
	c, err := leader.New(l, leader.Config{Key: "leader", TTL: ttl, Value: value})
	must(tb, err)
	return c
}

// During an outage the candidate can't see whether there is a leader. That time does not count as a vacancy.
func TestAnOutageIsNotCountedAsAVacancy(t *testing.T) {
	for range 10 { // chance decides when the next attempt follows the outage
		synctest.Test(t, outage)
	}
}

// Masters that answer at once that they can't serve are no vacancy either.
func TestMastersThatFailAtOnceAreNoVacancy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		c := candidate(t, masters.Locker(t, redlock.Options{}), "")
		masters.Fail(redlocktest.ReplyError("LOADING Redis is loading the dataset in memory"))
		resign := hold(t, c)
		for range 200 {
			<-time.After(ttl / 20)
			if err := c.Healthy(t.Context()); err != nil {
				t.Errorf("no master answers: %v", err)
				break
			}
		}
		masters.Fail(nil)
		_ = resign()
	})
}

func outage(t *testing.T) {
	t.Cleanup(func() { <-time.After(time.Minute) })
	masters := memmaster.New(3)
	l := locker(t, masters, 0)
	boss := candidate(t, l, "boss")
	// The retry interval is below the candidate's tolerance.
	c, err := leader.New(locker(t, masters, 0),
		leader.Config{Key: "leader", TTL: ttl, Options: []redlock.Option{redlock.RetryEvery(1600 * time.Millisecond)}})
	must(t, err)
	resign := hold(t, c)
	<-time.After(ttl)
	// no candidate can acquire, and one look finds the vacancy
	masters.Behave(func(r *single.Request) memmaster.Fate { return memmaster.Fate{Lost: r.Op != single.Inspect} })
	<-time.After(3 * ttl)
	must(t, c.Healthy(t.Context()))
	masters.Behave(memmaster.Always(memmaster.Fate{Lost: true}))
	for range 60 {
		must(t, c.Healthy(t.Context()))
		<-time.After(time.Second)
	}
	masters.Behave(memmaster.Always(memmaster.Fate{Before: time.Millisecond, After: time.Millisecond}))
	back := time.Now()
	for !boss.IsLeader() && !c.IsLeader() && time.Since(back) < 10*time.Second {
		if err := c.Healthy(t.Context()); err != nil {
			t.Errorf("%v after the masters are back: %v", time.Since(back), err)
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	_ = resign()
}
