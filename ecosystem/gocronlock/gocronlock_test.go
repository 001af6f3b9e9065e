package gocronlock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/ecosystem/gocronlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/leader"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = locktest.Must

func dial(t *testing.T, servers []*redistest.Server) *redlock.Locker {
	t.Helper()
	return locktest.Dial(t, servers, redlock.Options{})
}

// overlaps runs one job, due all the time, on two schedulers and returns how often it ran, and how often twice at once.
func overlaps(t *testing.T, options func() []gocron.SchedulerOption) (runs, twice int64) {
	t.Helper()
	var inside, total, over atomic.Int64
	enough := make(chan struct{}, 1)
	for range 2 {
		s, err := gocron.NewScheduler(options()...)
		must(t, err)
		_, err = s.NewJob(gocron.DurationJob(10*time.Millisecond), gocron.NewTask(func() {
			if inside.Add(1) > 1 {
				over.Add(1)
			}
			<-time.After(15 * time.Millisecond) // the job's work
			inside.Add(-1)
			if total.Add(1) == 30 {
				enough <- struct{}{}
			}
		}), gocron.WithName("report"))
		must(t, err)
		s.Start()
		t.Cleanup(func() { must(t, s.Shutdown()) })
	}
	select {
	case <-enough:
	case <-time.After(20 * time.Second):
	}
	return total.Load(), over.Load()
}

func TestAJobRunsInOneSchedulerAtATime(t *testing.T) {
	servers := redistest.StartN(t, 3)
	runs, twice := overlaps(t, func() []gocron.SchedulerOption {
		locker, err := gocronlock.New(dial(t, servers), time.Minute, nil)
		must(t, err)
		return []gocron.SchedulerOption{gocron.WithDistributedLocker(locker)}
	})
	if runs < 30 || twice > 0 {
		t.Errorf("%d runs, %d of them at the same time as another", runs, twice)
	}
}

func TestWithoutTheLockJobsOverlap(t *testing.T) {
	if _, twice := overlaps(t, func() []gocron.SchedulerOption { return nil }); twice == 0 {
		t.Error("two schedulers never ran the job at once: the other test shows nothing")
	}
}

func TestALostLockIsReported(t *testing.T) {
	servers := redistest.StartN(t, 3)
	told := make(map[string]error)
	locker, err := gocronlock.New(dial(t, servers), time.Minute, func(job string, err error) { told[job] = err })
	must(t, err)
	lock, err := locker.Lock(t.Context(), "report")
	must(t, err)
	_, err = locker.Lock(t.Context(), "report")
	locktest.Is(t, err, redlock.ErrHeld)
	locktest.TellAll(t, servers, "flushall")
	if err := lock.Unlock(t.Context()); !errors.Is(err, redlock.ErrNotHeld) ||
		!errors.Is(told["report"], redlock.ErrNotHeld) {
		t.Errorf("Unlock: %v, reported %v", err, told)
	}
	if _, err := gocronlock.New(nil, time.Minute, nil); err == nil {
		t.Error("no locker, and no error")
	}
}

// scheduled is a scheduler with one job, due all the time, and its candidate.
type scheduled struct {
	runs   atomic.Int64
	resign func()
}

func schedule(t *testing.T, servers []*redistest.Server) *scheduled {
	t.Helper()
	candidate, err := leader.New(dial(t, servers), leader.Config{Key: "scheduler", TTL: 10 * time.Second})
	must(t, err)
	elector, err := gocronlock.NewElector(candidate)
	must(t, err)
	locktest.Is(t, elector.IsLeader(t.Context()), gocronlock.ErrNotLeader)
	s, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	must(t, err)
	all := &scheduled{}
	_, err = s.NewJob(gocron.DurationJob(5*time.Millisecond), gocron.NewTask(func() { all.runs.Add(1) }),
		gocron.WithName("report"))
	must(t, err)
	s.Start()
	t.Cleanup(func() { must(t, s.Shutdown()) })
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = candidate.Run(ctx, func(ctx context.Context, _ *leader.Term) error { <-ctx.Done(); return nil })
	}()
	all.resign = func() { stop(); <-done }
	t.Cleanup(all.resign)
	return all
}

// more waits until the scheduler has run its job a few more times.
func (s *scheduled) more(t *testing.T, what string) {
	t.Helper()
	enough := s.runs.Load() + 10
	redistest.Eventually(t, 20*time.Second, func() bool { return s.runs.Load() >= enough }, what)
}

func TestOnlyTheLeadersSchedulerRunsJobs(t *testing.T) {
	servers := redistest.StartN(t, 3)
	first := schedule(t, servers)
	first.more(t, "the leader's scheduler to run its job")
	second := schedule(t, servers)
	first.more(t, "the leader's scheduler to go on")
	if n := second.runs.Load(); n > 0 {
		t.Errorf("the other scheduler has run its job %d times", n)
	}
	first.resign()
	second.more(t, "the next leader's scheduler to run its job")
	before := first.runs.Load()
	second.more(t, "it to go on")
	if after := first.runs.Load(); after > before+1 { // a run that had been decided
		t.Errorf("the scheduler that led before has run its job %d times more", after-before)
	}
	if _, err := gocronlock.NewElector(nil); err == nil {
		t.Error("no leader, and no error")
	}
}

func TestAJobThatIsOverKeepsItsLockForMinHold(t *testing.T) {
	locker, err := gocronlock.New(dial(t, redistest.StartN(t, 3)), time.Minute, nil, redlock.MinHold(30*time.Second))
	must(t, err)
	lock, err := locker.Lock(t.Context(), "report")
	must(t, err)
	must(t, lock.Unlock(t.Context()))
	_, err = locker.Lock(t.Context(), "report")
	locktest.Is(t, err, redlock.ErrHeld)
}
