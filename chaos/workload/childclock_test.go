package workload_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// timed is a lock with tokens from the time of day.
type timed struct {
	*memory
	wall func() time.Time
}

func (s timed) Name() string { return "timed" }

func (s timed) WithClock(wall func() time.Time) workload.Subject { return timed{s.memory, wall} }

func (s timed) Open(context.Context, []string) (workload.Locker, error) { return s, nil }

func (s timed) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	h, err := s.memory.Acquire(ctx, r)
	return timedHold{h, uint64(s.wall().UnixNano())}, err
}

type timedHold struct {
	workload.Hold
	token uint64
}

func (h timedHold) Token() uint64 { return h.token }

func TestTheClockOfAClientInAProcessIsSetAndRunsFast(t *testing.T) {
	recorder := history.NewRecorder(workload.Monotonic)
	hour := workload.ClockSetting{Ahead: time.Hour}
	child, err := workload.StartChild(recorder, workload.ChildOptions{
		Subject: "timed", Clock: &hour,
		Profile: workload.Profile{
			Name: "x", TTL: time.Hour, Workers: 1,
			Think: workload.Span{Min: time.Millisecond, Max: 2 * time.Millisecond},
		},
	})
	must(t, err)
	defer child.Kill()
	ahead := func(d time.Duration) func() bool {
		return func() bool {
			events := slices.DeleteFunc(slices.Clone(recorder.Events()), func(e history.Event) bool {
				return e.Token == 0
			})
			if len(events) == 0 {
				return false
			}
			at := time.Unix(0, int64(events[len(events)-1].Token))
			return time.Until(at) > d-time.Minute && time.Until(at) < d+30*time.Minute
		}
	}
	eventually(t, ahead(time.Hour))
	has, err := child.SetClock(workload.ClockSetting{Ahead: -time.Hour})
	if err != nil || has == "" {
		t.Fatalf("it has %q, %v", has, err)
	}
	eventually(t, ahead(-time.Hour))
	var setters sync.WaitGroup
	for range 5 { // a fault may begin while the one before is still undone
		setters.Go(func() {
			for range 100 {
				if _, err := child.SetClock(workload.ClockSetting{Ahead: -time.Hour}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	setters.Wait()
	// It gains a day in each second.
	fast := workload.ClockSetting{Ahead: -time.Hour, Gain: 86400, Since: time.Now().UnixNano()}
	if _, err := child.SetClock(fast); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return ahead(time.Hour)() || ahead(2*time.Hour)() || ahead(3*time.Hour)() })
	child.Kill()
	if _, err := child.SetClock(hour); err == nil {
		t.Error("the clock of a process that has ended was set")
	}
}

func TestAClientInAProcessWithoutAClockIsASetUpError(t *testing.T) {
	_, err := workload.StartChild(history.NewRecorder(workload.Monotonic), workload.ChildOptions{
		Subject: "memory", Clock: &workload.ClockSetting{},
	})
	if err == nil || errors.Is(err, workload.ErrNoHello) {
		t.Errorf("error %v", err)
	}
}
