package clients

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// SetClocks sets the clocks of the clients that a step names, and sets them back when it is healed; time that a rate
// has gained stays.
func (x *Clients) SetClocks(s plan.Step) (masters.Injection, error) {
	chosen := plan.OrAll(s.Clients, len(x.Clocks))
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
	return masters.Injection{Observed: observed, Heal: heal}, err
}

// eachClock sets the clocks of clients. It returns the new time of the first.
func (x *Clients) eachClock(clients []int, set func(workload.ClockMover)) (observed string, err error) {
	for _, c := range clients {
		clock := &x.Clocks[c]
		set(clock)
		has := clock.Now().Format(time.DateTime)
		if m, ok := x.Lockers[c].(workload.ClockMover); ok {
			set(m)
		} else if x.Lockers[c] == nil {
			if has, err = x.Children.setClock(c, clock); err != nil {
				return "", fmt.Errorf("client %d: %w", c, err)
			}
		}
		observed = cmp.Or(observed, fmt.Sprintf("client %d has %s", c, has))
	}
	return observed, nil
}
