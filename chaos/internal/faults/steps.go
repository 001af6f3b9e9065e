package faults

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/internal/machine"
	"github.com/seed-624411e5/redlock/chaos/plan"
)

// This file carries out the steps of a plan in their order.

// Run does all steps and returns when the last fault has been healed. When ctx is done it heals at once.
func (x *Injector) Run(ctx context.Context, start time.Time) {
	x.note(func() {
		x.on, x.Observed, x.Unavailable = make(map[string]int), make(map[string]string), make(map[string]string)
	})
	var group sync.WaitGroup
	over := make([]chan struct{}, len(x.Plan.Steps))
	for i := range over {
		over[i] = make(chan struct{})
	}
	for i, s := range x.Plan.Steps {
		group.Go(func() {
			defer close(over[i])
			if machine.SleepUntil(ctx, start.Add(time.Duration(s.At))) && x.healed(ctx, i, over) {
				x.step(ctx, s, start)
			}
		})
	}
	group.Wait()
}

// healed waits until each fault that the plan ends before step i is over on its masters. On a slow
// machine a killed server may take longer to come back than the plan allows, and can't take
// commands before. healed reports whether ctx is still valid.
func (x *Injector) healed(ctx context.Context, i int, over []chan struct{}) bool {
	steps := x.Plan.Steps
	for k, earlier := range steps {
		first := earlier.At < steps[i].At || earlier.At == steps[i].At && k < i
		if !first || earlier.At+earlier.For > steps[i].At || !x.meet(earlier, steps[i]) {
			continue
		}
		select {
		case <-over[k]:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// meet reports whether two steps do something to the same master.
func (x *Injector) meet(a, b plan.Step) bool {
	hit := func(s plan.Step) []int {
		fault, err := x.Plan.FindFault(s.Fault)
		if err != nil {
			return nil
		}
		return fault.Hit(s, x.Plan.Masters)
	}
	one := hit(a)
	return slices.ContainsFunc(hit(b), func(m int) bool { return slices.Contains(one, m) })
}
