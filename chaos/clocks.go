package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// setClocks sets the clocks of the clients that a step names, and sets them back when it is healed; time that a rate
// has gained stays.
func (x *injector) setClocks(s plan.Step) (effect, error) {
	chosen := plan.OrAll(s.Clients, len(x.clocks))
	set := func(step time.Duration, rate float64) (string, error) {
		return x.eachClock(chosen, func(c workload.ClockMover) {
			if s.Fault == plan.ClientRate {
				c.SetClockRate(rate)
				return
			}
			c.MoveClock(step)
		})
	}
	step := time.Duration(s.Step)
	observed, err := set(step, s.Rate)
	heal := func(context.Context) error { _, err := set(-step, 1); return err }
	return effect{observed: observed, heal: heal}, err
}

// eachClock sets the clocks of clients. It returns the new time of the first.
func (x *injector) eachClock(clients []int, set func(workload.ClockMover)) (observed string, err error) {
	for _, c := range clients {
		clock := &x.clocks[c]
		set(clock)
		has := clock.Now().Format(time.DateTime)
		if m, ok := x.lockers[c].(workload.ClockMover); ok {
			set(m)
		} else if x.lockers[c] == nil {
			if has, err = x.children.setClock(c, clock.Setting()); err != nil {
				return "", fmt.Errorf("client %d: %w", c, err)
			}
		}
		observed = cmp.Or(observed, fmt.Sprintf("client %d has %s", c, has))
	}
	return observed, nil
}

// clockOf is the first clock setting of a client's process; nil: the plan sets no clocks.
func (r *run) clockOf(client int) *workload.ClockSetting {
	if !r.setsClocks() {
		return nil
	}
	setting := r.clocks[client].Setting()
	return &setting
}

// suspend stops the workers of clients, and the processes of clients that have one.
func (x *injector) suspend(chosen []int) (effect, error) {
	stopped := 0
	var halted []func() error
	resume := func(context.Context) error {
		var err error
		for _, again := range halted {
			err = errors.Join(err, again())
		}
		return err
	}
	for _, c := range chosen {
		whole, again, err := x.halt(c)
		halted = append(halted, again)
		if err != nil {
			return effect{}, errors.Join(err, resume(context.Background()))
		}
		if whole {
			stopped++
		}
	}
	observed := fmt.Sprintf("clients %v stand still between two steps", chosen)
	if stopped > 0 {
		observed += fmt.Sprintf(", and %d processes are stopped", stopped)
	}
	return effect{observed: observed, heal: resume}, nil
}

// halt stops one client, and says whether that was its whole process. again lets it go on, also after an error.
func (x *injector) halt(c int) (whole bool, again func() error, err error) {
	if x.lockers[c] == nil {
		again, err = x.children.halt(c)
		return err == nil, again, err
	}
	x.gates[c].Shut()
	p, ok := x.lockers[c].(workload.Suspendable)
	if !ok {
		return false, func() error { x.gates[c].Open(); return nil }, nil
	}
	x.recorder.Record(history.Event{Type: history.Paused, Client: c})
	again = func() error {
		err := resumed(p)
		x.recorder.Record(history.Event{Type: history.Resumed, Client: c})
		x.gates[c].Open()
		return err
	}
	err = p.Suspend()
	if errors.Is(err, errors.ErrUnsupported) { // on Windows the workers alone stand still
		return false, again, nil
	}
	return err == nil, again, err
}

// resumed lets a process go on. One that has ended, or could not be stopped, needs nothing.
func resumed(p workload.Suspendable) error {
	err := p.Resume()
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// giveClocks prepares a subject whose clients are processes, if the plan sets clocks.
func (r *run) giveClocks(ctx context.Context) (err error) {
	s, ok := r.cfg.Subject.(workload.Settable)
	if !ok || !r.setsClocks() {
		return nil
	}
	if r.clockDir, err = os.MkdirTemp(r.cfg.Options.TempDir, "redlock-clocks-"); err == nil {
		r.cfg.Subject, err = s.WithClocks(ctx, r.clockDir)
	}
	return err
}

// clocked returns the subject with this client's clock, if the plan sets clocks.
func (r *run) clocked(client int) workload.Subject {
	s, ok := r.cfg.Subject.(workload.Clocked)
	if !ok || !r.setsClocks() {
		return r.cfg.Subject
	}
	return s.WithClock(r.clocks[client].Now)
}

func (r *run) setsClocks() bool {
	names := r.plan.FaultNames()
	return slices.Contains(names, plan.ClientClock) || slices.Contains(names, plan.ClientRate)
}
