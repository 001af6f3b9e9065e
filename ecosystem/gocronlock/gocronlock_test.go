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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func dial(t *testing.T, servers []*redistest.Server) *redlock.Locker {
	t.Helper()
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	locker, err := redlock.Dial(t.Context(), urls, redlock.Options{})
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		must(t, locker.Close(ctx))
	})
	return locker
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
		t.Errorf("%d runs, %d of them beside another", runs, twice)
	}
}

func TestWithoutTheLockJobsOverlap(t *testing.T) {
	if _, twice := overlaps(t, func() []gocron.SchedulerOption { return nil }); twice == 0 {
		t.Error("two schedulers never ran the job at once: the other test shows nothing")
	}
}

func TestALostLockIsTold(t *testing.T) {
	servers := redistest.StartN(t, 3)
	told := make(map[string]error)
	locker, err := gocronlock.New(dial(t, servers), time.Minute, func(job string, err error) { told[job] = err })
	must(t, err)
	lock, err := locker.Lock(t.Context(), "report")
	must(t, err)
	if _, err := locker.Lock(t.Context(), "report"); !errors.Is(err, redlock.ErrHeld) {
		t.Errorf("a job that runs: %v", err)
	}
	for _, s := range servers {
		must(t, s.Client().FlushAll(t.Context()).Err())
	}
	if err := lock.Unlock(t.Context()); !errors.Is(err, redlock.ErrNotHeld) || !errors.Is(told["report"], redlock.ErrNotHeld) {
		t.Errorf("Unlock: %v, told %v", err, told)
	}
	if _, err := gocronlock.New(nil, time.Minute, nil); err == nil {
		t.Error("no locker, and no error")
	}
}
