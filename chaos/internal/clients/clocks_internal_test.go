package clients

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// asProcess is a client in a separate process.
type asProcess struct {
	workload.Locker
	stopped bool
	err     error
}

func (p *asProcess) Suspend() error { p.stopped = p.err == nil; return p.err }

func (p *asProcess) Resume() error { p.stopped = false; return p.err }

func TestHazard136AClientsClockIsSetAndSetBack(t *testing.T) {
	x := &Clients{
		Lockers: []workload.Locker{nil, &asProcess{}, &asProcess{}}, Clocks: make([]workload.WallClock, 3),
		Children: &Children{},
	}
	if _, err := x.SetClocks(plan.Step{Clients: []int{0}, Step: plan.Duration(time.Hour)}); err == nil {
		t.Error("the clock of a process that there is not was set")
	}
	x.Clocks[0].Set(workload.ClockSetting{})
	on, err := x.SetClocks(plan.Step{Clients: []int{1, 2}, Step: plan.Duration(-time.Hour)})
	if err != nil || on.Observed == "" {
		t.Fatalf("observed %q, %v", on.Observed, err)
	}
	for c, want := range []time.Duration{0, -time.Hour, -time.Hour} {
		if now := x.Clocks[c].Now(); now.Sub(time.Now().Add(want)).Abs() > 10*time.Minute {
			t.Errorf("client %d has %v", c, now)
		}
	}
	if err := on.Heal(t.Context()); err != nil || x.Clocks[1].Setting().Ahead != 0 {
		t.Errorf("healed: client 1 is ahead by %v, %v", x.Clocks[1].Setting().Ahead, err)
	}
	on, err = x.SetClocks(plan.Step{Fault: plan.ClientRate, Clients: []int{2}, Rate: 1.5})
	if fast := x.Clocks[2].Setting().Gain; err != nil || fast != 0.5 {
		t.Fatalf("a fast clock gains %v, %v", fast, err)
	}
	if err := on.Heal(t.Context()); err != nil || x.Clocks[2].Setting().Gain != 0 {
		t.Errorf("healed: client 2 gains %v, %v", x.Clocks[2].Setting().Gain, err)
	}
}

func TestAPauseOfAClientWithoutItsProcessIsNoFault(t *testing.T) {
	x := &Clients{Lockers: []workload.Locker{nil}, Gates: []*workload.Gate{{}}, Children: &Children{}}
	if on, err := x.Suspend([]int{0}); err == nil {
		t.Errorf("observed %q", on.Observed)
	}
}

func TestHazard136AClientInAProcessIsStopped(t *testing.T) {
	plain, own := &struct{ workload.Locker }{}, &asProcess{}
	x := &Clients{
		Lockers: []workload.Locker{plain, own}, Gates: []*workload.Gate{{}, {}},
		Recorder: history.NewRecorder(func() int64 { return 1 }),
	}
	on, err := x.Suspend([]int{0, 1})
	if err != nil || !own.stopped {
		t.Fatalf("stopped: %v, %v", own.stopped, err)
	}
	if err := on.Heal(context.Background()); err != nil || own.stopped {
		t.Errorf("still stopped: %v, %v", own.stopped, err)
	}
	var seen []history.Type
	for _, e := range x.Recorder.Events() {
		if e.Client == 1 {
			seen = append(seen, e.Type)
		}
	}
	if len(seen) != 2 || seen[0] != history.Paused || seen[1] != history.Resumed {
		t.Errorf("events %v", seen)
	}
	own.err = errors.New("not allowed")
	if _, err := x.Suspend([]int{1}); !errors.Is(err, own.err) {
		t.Errorf("error %v", err)
	}
}
