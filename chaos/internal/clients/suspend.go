package clients

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Suspend stops the workers of clients, and the processes of clients that have one.
func (x *Clients) Suspend(chosen []int) (masters.Injection, error) {
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
			return masters.Injection{}, errors.Join(err, resume(context.Background()))
		}
		if whole {
			stopped++
		}
	}
	observed := fmt.Sprintf("clients %v stand still between two steps", chosen)
	if stopped > 0 {
		observed += fmt.Sprintf(", and %d processes are stopped", stopped)
	}
	return masters.Injection{Observed: observed, Heal: resume}, nil
}

// halt stops one client, and says whether that was its whole process. again lets it go on, also after an error.
func (x *Clients) halt(c int) (whole bool, again func() error, err error) {
	if x.Lockers[c] == nil {
		again, err = x.Children.halt(c)
		return err == nil, again, err
	}
	x.Gates[c].Shut()
	p, ok := x.Lockers[c].(workload.Suspendable)
	if !ok {
		return false, func() error { x.Gates[c].Open(); return nil }, nil
	}
	x.Recorder.Record(history.Event{Type: history.Paused, Client: c})
	again = func() error {
		err := resumed(p)
		x.Recorder.Record(history.Event{Type: history.Resumed, Client: c})
		x.Gates[c].Open()
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
