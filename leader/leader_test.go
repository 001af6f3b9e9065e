package leader_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/leader"
	"github.com/seed-624411e5/redlock/single"
)

// inBubble runs body in virtual time. Its masters are in memory, and their fencing counters are far ahead of the wall
// clock.
func inBubble(t *testing.T, body func(t *testing.T, masters memmaster.Masters)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(3)
		for i, m := range masters {
			m.SetCounter(t, "leader", 1<<52+uint64(i))
		}
		body(t, masters)
	})
}

// hold runs a candidate until ctx is done or the returned function is called. lead also waits for that.
func hold(t *testing.T, c *leader.Candidate) (resign func() error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- c.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	return func() error {
		stop()
		return <-done
	}
}

// Observers learn the leader's own token, whatever the masters' counters were before.
func TestThePublishedTokenIsTheTermsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, masters memmaster.Masters) {
		l := locker(t, masters, 0)
		c := candidate(t, l, "10.0.0.1:80")
		resign := hold(t, c)
		<-time.After(ttl)
		e, err := leader.NewElection(l, "leader", ttl)
		must(t, err)
		h, err := e.Leader(t.Context())
		must(t, err)
		if !c.IsLeader() || h.Token != c.Term().Token() || h.Token <= 1<<52+2 || h.Value != "10.0.0.1:80" ||
			h.ID != c.Term().ID() {
			t.Errorf("the leader has token %d, and the masters say %+v", c.Term().Token(), h)
		}
		_ = resign()
	})
}

func TestObserversSeeEveryChange(t *testing.T) {
	inBubble(t, func(t *testing.T, masters memmaster.Masters) {
		l := locker(t, masters, 0)
		one, other := candidate(t, l, "one"), candidate(t, l, "other")
		var told []leader.Report
		var resign func() error
		for term, err := range one.Observe(t.Context(), 100*time.Millisecond) {
			must(t, err)
			told = append(told, term)
			switch len(told) {
			case 1, 3: // nobody leads
				resign = hold(t, map[int]*leader.Candidate{1: one, 3: other}[len(told)])
			case 2, 4:
				_ = resign()
			}
			if len(told) == 5 {
				break
			}
		}
		if told[0].Led() || told[1].Value != "one" || told[2].Led() || told[3].Value != "other" || told[4].Led() ||
			told[1].Token >= told[3].Token || told[1].Identity == "" || told[1].ID == told[3].ID {
			t.Errorf("reported %+v", told)
		}
	})
}

// A slow observer learns the latest state when it returns. The states in between need no queue.
func TestASlowObserverSeesTheLatestLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, masters memmaster.Masters) {
		l := locker(t, masters, 0)
		var told []string
		var resign func() error
		for term, err := range candidate(t, l, "").Observe(t.Context(), 0) {
			must(t, err)
			told = append(told, term.Value)
			if len(told) == 2 {
				break
			}
			_ = after(hold(t, candidate(t, l, "first")), ttl)
			resign = hold(t, candidate(t, l, "second"))
			<-time.After(ttl)
		}
		if told[1] != "second" {
			t.Errorf("reported %q", told)
		}
		_ = resign()
	})
}

func after(resign func() error, d time.Duration) error {
	<-time.After(d)
	return resign()
}

// answers are the masters' answers, one after the other; the last one is repeated.
type answers []redlock.Holder

func (a *answers) Leader(context.Context) (redlock.Holder, error) {
	h := (*a)[0]
	if len(*a) > 1 {
		*a = (*a)[1:]
	}
	return h, nil
}

// Masters that have lost their counters elect a leader with a smaller token. A resource that checks tokens refuses this
// leader. Observers learn that there is no leader, because the tokens that they see only grow.
func TestALeaderWithASmallerTokenIsReportedAsNoLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, _ memmaster.Masters) {
		said := answers{
			{Held: true, Token: 10, Value: "a", ID: "1"},
			{Held: true, Token: 9, Value: "b", ID: "2"},
			{},
			{Held: true, Token: 9, Value: "b", ID: "2"},
			{Held: true, Token: 11, Value: "c", ID: "3"},
		}
		var told []uint64
		for term, err := range leader.Observe(t.Context(), &said, 0) {
			must(t, err)
			if told = append(told, term.Token); term.Token == 11 {
				break
			}
		}
		if !slices.Equal(told, []uint64{10, 0, 11}) {
			t.Errorf("reported the tokens %d", told)
		}
	})
}

func TestObserversWaitThroughAnOutageAndEndOnFinalErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, masters memmaster.Masters) {
		l := locker(t, masters, 0)
		resign := hold(t, candidate(t, l, "me"))
		<-time.After(ttl)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		began, n := time.Now(), 0
		for term, err := range candidate(t, l, "").Observe(ctx, 0) {
			must(t, err)
			if n++; n == 1 && term.Value == "me" {
				masters.Behave(memmaster.Always(memmaster.Fate{Lost: true}))
				time.AfterFunc(time.Minute, stop)
			}
		}
		if n != 1 || time.Since(began) < time.Minute {
			t.Errorf("%d changes in %v of an outage", n, time.Since(began))
		}
		_ = resign()
		shut(t, l)
		none, err := leader.NewElection(l, "leader", ttl)
		must(t, err)
		for _, bad := range []struct {
			ctx   context.Context
			from  leader.Source
			every time.Duration
			want  error
		}{
			{t.Context(), none, 0, redlock.ErrClosed},
			{t.Context(), nil, 0, redlock.ErrInvalid},
			{nil, none, 0, redlock.ErrInvalid},
			{t.Context(), none, -1, redlock.ErrInvalid},
		} {
			n := 0
			for _, err := range leader.Observe(bad.ctx, bad.from, bad.every) {
				if n++; !errors.Is(err, bad.want) {
					t.Errorf("%+v: %v", bad, err)
				}
			}
			if n != 1 {
				t.Errorf("%+v: %d", bad, n)
			}
		}
	})
}

func TestACandidateIsNoLeaderOnceItsTermIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, masters memmaster.Masters) {
		l := locker(t, masters, 0)
		c := candidate(t, l, "")
		if c.IsLeader() || !errors.Is(c.Term().Err(), redlock.ErrNotHeld) {
			t.Error("a leader before its campaign")
		}
		ctx, stop := context.WithCancel(t.Context())
		hangs, done := make(chan struct{}), make(chan error)
		go func() {
			done <- c.Run(ctx, func(context.Context, *leader.Term) error { <-hangs; return nil })
		}()
		<-time.After(time.Second)
		is(t, c.Run(ctx, resigns), leader.ErrRunning)
		probe := func() (int, string) {
			w := httptest.NewRecorder()
			c.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil))
			return w.Code, w.Body.String()
		}
		if code, text := probe(); !c.IsLeader() || code != http.StatusOK || text != "leading\n" {
			t.Errorf("a leader: %t, %d %q", c.IsLeader(), code, text)
		}
		masters.Behave(memmaster.Always(memmaster.Fate{Lost: true}))
		<-time.After(ttl)
		if c.IsLeader() {
			t.Error("a leader after the end of its validity")
		}
		must(t, c.Healthy(t.Context())) // it has until the tolerance is over to return
		<-time.After(ttl)
		err := c.Healthy(t.Context()) // of a leader that hangs
		is(t, err, leader.ErrOverstayed)
		is(t, err, redlock.ErrNotHeld)
		if code, text := probe(); code != http.StatusServiceUnavailable ||
			!strings.Contains(text, "after the end of the term") {
			t.Errorf("%d %q", code, text)
		}
		close(hangs)
		<-time.After(time.Second)
		began := time.Now()
		must(t, c.Healthy(t.Context())) // it campaigns again; silent masters are not the candidate's fault
		if took := time.Since(began); took > time.Second/2 {
			t.Errorf("the check took %v, and a probe waits for 1s", took)
		}
		stop()
		<-done //nolint:errcheck // ctx's error
		err = c.Healthy(t.Context())
		is(t, err, leader.ErrStopped)
		is(t, err, context.Canceled)
	})
}

// The masters answer and there is no leader, but the campaign makes no progress. Here the masters refuse only the
// candidate's acquisitions.
func TestACampaignThatIsStuckIsNotHealthy(t *testing.T) {
	inBubble(t, func(t *testing.T, masters memmaster.Masters) {
		masters.Behave(func(r *single.Request) memmaster.Fate { return memmaster.Fate{Lost: r.Op == single.Acquire} })
		l := locker(t, masters, 0)
		c := candidate(t, l, "")
		resign := hold(t, c)
		<-time.After(time.Second)
		must(t, c.Healthy(t.Context()))
		<-time.After(ttl + time.Second)
		is(t, c.Healthy(t.Context()), leader.ErrStuck)
		masters.Behave(nil)
		<-time.After(ttl)
		must(t, c.Healthy(t.Context()))
		if !c.IsLeader() {
			t.Error("not elected")
		}
		_ = resign()
	})
}

// A follower is healthy while another candidate leads.
func TestAFollowerIsHealthy(t *testing.T) {
	inBubble(t, func(t *testing.T, masters memmaster.Masters) {
		l := locker(t, masters, 0)
		leads := hold(t, candidate(t, l, ""))
		<-time.After(ttl)
		c := candidate(t, l, "")
		must(t, c.Healthy(t.Context())) // not begun
		follows := hold(t, c)
		for range 5 {
			<-time.After(ttl)
			must(t, c.Healthy(t.Context()))
		}
		_ = follows()
		_ = leads()
	})
}

func TestBadArguments(t *testing.T) {
	inBubble(t, func(t *testing.T, masters memmaster.Masters) {
		l := locker(t, masters, 0)
		for _, cfg := range []leader.Config{
			{Key: "", TTL: ttl},
			{Key: "leader"},
			{Key: "leader", TTL: ttl, Tolerance: -1},
			{Key: "leader", TTL: ttl, Value: strings.Repeat("x", redlock.MaxPublished+1)},
		} {
			_, err := leader.New(l, cfg)
			locktest.Refused(t, fmt.Sprintf("%+v", cfg), err)
		}
		c := candidate(t, l, "")
		is(t, c.Run(t.Context(), nil), redlock.ErrInvalid)
		is(t, c.Run(nil, resigns), redlock.ErrInvalid) //nolint:staticcheck // what is tested
		is(t, c.Healthy(nil), redlock.ErrInvalid)      //nolint:staticcheck // what is tested
	})
}
