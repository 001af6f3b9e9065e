package chaos

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// asProcess is a client in a process of its own.
type asProcess struct {
	workload.Locker
	stopped bool
	err     error
}

func (p *asProcess) Suspend() error { p.stopped = p.err == nil; return p.err }

func (p *asProcess) Resume() error { p.stopped = false; return p.err }

func TestHazard136AClientsClockIsSetAndSetBack(t *testing.T) {
	x := &injector{
		lockers: []workload.Locker{nil, &asProcess{}, &asProcess{}}, clocks: make([]workload.WallClock, 3),
		children: &children{},
	}
	if _, err := x.setClocks(plan.Step{Clients: []int{0}, Step: plan.Duration(time.Hour)}); err == nil {
		t.Error("the clock of a process that there is not was set")
	}
	x.clocks[0].Set(workload.ClockSetting{})
	on, err := x.setClocks(plan.Step{Clients: []int{1, 2}, Step: plan.Duration(-time.Hour)})
	if err != nil || on.observed == "" {
		t.Fatalf("observed %q, %v", on.observed, err)
	}
	for c, want := range []time.Duration{0, -time.Hour, -time.Hour} {
		if now := x.clocks[c].Now(); now.Sub(time.Now().Add(want)).Abs() > 10*time.Minute {
			t.Errorf("client %d has %v", c, now)
		}
	}
	if err := on.heal(t.Context()); err != nil || x.clocks[1].Setting().Ahead != 0 {
		t.Errorf("healed: client 1 is ahead by %v, %v", x.clocks[1].Setting().Ahead, err)
	}
	on, err = x.setClocks(plan.Step{Fault: plan.ClientRate, Clients: []int{2}, Rate: 1.5})
	if fast := x.clocks[2].Setting().Gain; err != nil || fast != 0.5 {
		t.Fatalf("a fast clock gains %v, %v", fast, err)
	}
	if err := on.heal(t.Context()); err != nil || x.clocks[2].Setting().Gain != 0 {
		t.Errorf("healed: client 2 gains %v, %v", x.clocks[2].Setting().Gain, err)
	}
}

func TestAPauseOfAClientWithoutItsProcessIsNoFault(t *testing.T) {
	x := &injector{lockers: []workload.Locker{nil}, gates: []*workload.Gate{{}}, children: &children{}}
	if on, err := x.suspend([]int{0}); err == nil {
		t.Errorf("observed %q", on.observed)
	}
}

func TestHazard136AClientInAProcessIsStopped(t *testing.T) {
	plain, own := &struct{ workload.Locker }{}, &asProcess{}
	x := &injector{
		lockers: []workload.Locker{plain, own}, gates: []*workload.Gate{{}, {}},
		recorder: history.NewRecorder(func() int64 { return 1 }),
	}
	on, err := x.suspend([]int{0, 1})
	if err != nil || !own.stopped {
		t.Fatalf("stopped: %v, %v", own.stopped, err)
	}
	if err := on.heal(context.Background()); err != nil || own.stopped {
		t.Errorf("still stopped: %v, %v", own.stopped, err)
	}
	var seen []history.Type
	for _, e := range x.recorder.Events() {
		if e.Client == 1 {
			seen = append(seen, e.Type)
		}
	}
	if len(seen) != 2 || seen[0] != history.Paused || seen[1] != history.Resumed {
		t.Errorf("events %v", seen)
	}
	own.err = errors.New("not allowed")
	if _, err := x.suspend([]int{1}); !errors.Is(err, own.err) {
		t.Errorf("error %v", err)
	}
}
