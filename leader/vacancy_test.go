package leader_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/leader"
	"github.com/seed-624411e5/redlock/single"
)

// barred is a master that refuses the acquisitions of the candidates with the identity "barred". It answers them like
// anything else. If it were silent, the candidate's Locker would take it for down and hold back questions, too.
type barred struct{ *memmaster.Master }

func (m barred) Do(ctx context.Context, batch []*single.Call) {
	instead := make([]*single.Call, len(batch))
	for i, c := range batch {
		instead[i] = c
		if r := c.Request; r.Op == single.Acquire && strings.HasPrefix(r.Owner, "barred") {
			// The master refuses this request, too, and names the leader.
			instead[i] = &single.Call{Request: &single.Request{Op: single.Release, Keys: r.Keys, Owner: r.Owner}}
		}
	}
	m.Master.Do(ctx, instead)
	for i, c := range batch {
		c.Reply, c.Err, c.Sent = instead[i].Reply, instead[i].Err, instead[i].Sent
	}
}

// barredLocker returns a Locker that the masters grant nothing.
func barredLocker(t *testing.T, masters memmaster.Masters) *redlock.Locker {
	t.Helper()
	refusing := locktest.WrapEach(masters, func(_ int, m *memmaster.Master) redlock.Master { return barred{m} })
	return locktest.LockerOver(t, refusing, redlock.Options{Clock: memmaster.NewClock(0), Identity: "barred"})
}

// unelected runs body with a candidate that is never elected. asked returns how often the masters got that question:
// who leads?
func unelected(t *testing.T, body func(t *testing.T, c *leader.Candidate, masters memmaster.Masters,
	others *redlock.Locker, asked func() int),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(3)
		var asked atomic.Int32
		masters[0].Behave(func(r *single.Request) memmaster.Fate {
			if r.Op == single.Inspect {
				asked.Add(1)
			}
			return memmaster.Fate{}
		})
		c := candidate(t, barredLocker(t, masters), "")
		resign := hold(t, c)
		<-time.After(time.Second)
		body(t, c, masters, locker(t, masters, 0), func() int { return int(asked.Load()) })
		_ = resign()
	})
}

// lead holds the leadership for d as another candidate.
func lead(t *testing.T, others *redlock.Locker, d time.Duration) {
	t.Helper()
	term, err := others.TryAcquire(t.Context(), "leader", time.Minute, redlock.Fenced(), redlock.Published("other"))
	must(t, err)
	<-time.After(d)
	must(t, term.Release(t.Context()))
}

// Two looks into the gaps between terms do not make one long vacancy.
func TestGapsBetweenTermsAreNoVacancy(t *testing.T) {
	unelected(t, func(t *testing.T, c *leader.Candidate, _ memmaster.Masters, others *redlock.Locker, _ func() int) {
		for range 20 {
			must(t, c.Healthy(t.Context()))
			<-time.After(ttl / 10)
			lead(t, others, ttl/2)
			<-time.After(ttl / 10)
			lead(t, others, ttl/2)
		}
	})
}

// Questions at equal intervals would never fall into terms that begin and end in step with the questions. Here there is
// a leader half of the time.
func TestTermsInStepWithTheQuestionsAreNoVacancy(t *testing.T) {
	unelected(t,
		func(t *testing.T, _ *leader.Candidate, masters memmaster.Masters, others *redlock.Locker, _ func() int) {
			// With this interval no attempt interferes with the questions.
			c, err := leader.New(barredLocker(t, masters),
				leader.Config{Key: "leader", TTL: ttl, Options: []redlock.Option{redlock.RetryEvery(time.Hour)}})
			must(t, err)
			resign := hold(t, c)
			defer func() { _ = resign() }()
			<-time.After(time.Second)
			const interval = ttl / 20
			for range 10 {
				must(t, c.Healthy(t.Context()))
				for range 15 {
					<-time.After(interval / 4)
					lead(t, others, interval/2)
					<-time.After(interval / 4)
				}
			}
		})
}

// The candidate asks the masters by itself only while it suspects a vacancy and campaigns.
func TestTheCandidateAsksOnlyWhileItSuspectsAVacancy(t *testing.T) {
	unelected(t,
		func(t *testing.T, c *leader.Candidate, _ memmaster.Masters, others *redlock.Locker, asked func() int) {
			<-time.After(5 * time.Minute)
			if n := asked(); n != 0 {
				t.Errorf("asked %d times before anything suggested a vacancy", n)
			}
			must(t, c.Healthy(t.Context()))
			<-time.After(ttl / 2)
			if n := asked(); n < 5 || n > 20 {
				t.Errorf("asked %d times in half of the tolerance", n)
			}
			lead(t, others, ttl)
			before := asked()
			<-time.After(5 * time.Minute)
			if n := asked() - before; n != 0 {
				t.Errorf("asked %d times after a term", n)
			}
		})
}

// Time without an answer from the masters does not count as a vacancy. Here no answer arrives in time for a while.
func TestAVacancyThatWasNotWatchedDoesNotCount(t *testing.T) {
	unelected(t, func(t *testing.T, c *leader.Candidate, masters memmaster.Masters, _ *redlock.Locker, _ func() int) {
		must(t, c.Healthy(t.Context()))
		// longer than the gap allowed between two looks
		masters.Behave(memmaster.Always(memmaster.Fate{Before: ttl * 3 / 8}))
		for range 5 {
			<-time.After(ttl)
			must(t, c.Healthy(t.Context()))
		}
		masters.Behave(nil)
		<-time.After(ttl) // the requests on their way have ended
		must(t, c.Healthy(t.Context()))
		<-time.After(ttl + time.Second)
		is(t, c.Healthy(t.Context()), leader.ErrStuck)
	})
}

// If a question of the candidate hangs, Run still ends.
func TestRunEndsThoughAQuestionHangs(t *testing.T) {
	unelected(t, func(t *testing.T, _ *leader.Candidate, masters memmaster.Masters, _ *redlock.Locker, _ func() int) {
		c := candidate(t, barredLocker(t, masters), "")
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, func(context.Context, *leader.Term) error { return nil }) }()
		<-time.After(time.Second)
		must(t, c.Healthy(t.Context()))
		masters.Behave(memmaster.Always(memmaster.Fate{Mute: true}))
		<-time.After(ttl * 3 / 40) // a question is under way
		began := time.Now()
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) || time.Since(began) > ttl {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
