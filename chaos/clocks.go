package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// wallClock is the time of day of one client.
type wallClock struct{ ahead atomic.Int64 }

// now returns the client's time of day. Without the monotonic reading, because differences of wall clocks have none.
func (c *wallClock) now() time.Time { return time.Now().Round(0).Add(time.Duration(c.ahead.Load())) }

// setClocks moves the clocks of the clients that a step names, and moves them back when it is healed. It can't for
// clients that are processes of the harness.
func (x *injector) setClocks(s plan.Step) (effect, error) {
	var chosen []int
	for _, c := range plan.OrAll(s.Clients, len(x.clocks)) {
		if x.lockers[c] != nil {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return effect{}, errors.New("the chosen clients are processes, and their clocks can't be set")
	}
	move := func(d time.Duration) {
		for _, c := range chosen {
			x.clocks[c].ahead.Add(int64(d))
			if m, ok := x.lockers[c].(workload.ClockMover); ok {
				m.MoveClock(d)
			}
		}
	}
	move(time.Duration(s.Step))
	return effect{
		observed: fmt.Sprintf("client %d has %s", chosen[0], x.clocks[chosen[0]].now().Format(time.DateTime)),
		heal:     func(context.Context) error { move(-time.Duration(s.Step)); return nil },
	}, nil
}

// suspend stops the workers of clients, and the processes of clients that have one.
func (x *injector) suspend(chosen []int) (effect, error) {
	stopped := 0
	resume := func(context.Context) error {
		var err error
		for _, c := range chosen {
			if p, ok := x.lockers[c].(workload.Suspendable); ok {
				err = errors.Join(err, resumed(p))
				x.recorder.Record(history.Event{Type: history.Resumed, Client: c})
			}
			x.gates[c].Open()
		}
		return err
	}
	for _, c := range chosen {
		x.gates[c].Shut()
		p, ok := x.lockers[c].(workload.Suspendable)
		if !ok {
			continue
		}
		x.recorder.Record(history.Event{Type: history.Paused, Client: c})
		err := p.Suspend()
		if errors.Is(err, errors.ErrUnsupported) { // on Windows the workers alone stand still
			continue
		}
		if err != nil {
			return effect{}, errors.Join(err, resume(context.Background()))
		}
		stopped++
	}
	observed := fmt.Sprintf("clients %v stand still between two steps", chosen)
	if stopped > 0 {
		observed += fmt.Sprintf(", and %d processes are stopped", stopped)
	}
	return effect{observed: observed, heal: resume}, nil
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
	return s.WithClock(r.clocks[client].now)
}

func (r *run) setsClocks() bool { return slices.Contains(r.plan.FaultNames(), plan.ClientClock) }
