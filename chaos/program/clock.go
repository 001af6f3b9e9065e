package program

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"time"

	"github.com/seed-624411e5/redlock/chaos/shim"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// clocks makes a clock for each process.
type clocks struct {
	library *shim.Library
	dir     string
}

// WithClocks implements workload.Settable. The programs preload a few lines of C.
func (s subject) WithClocks(ctx context.Context, dir string) (workload.Subject, error) {
	library, err := shim.Build(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", workload.ErrUnsupported, err)
	}
	s.clocks = &clocks{library, dir}
	return s, nil
}

// MoveClock implements workload.ClockMover.
func (c *client) MoveClock(d time.Duration) {
	if c.clock != nil {
		c.clock.Step(d)
	}
}

// SetClockRate implements workload.ClockMover.
func (c *client) SetClockRate(rate float64) {
	if c.clock != nil {
		c.clock.SetRate(rate)
	}
}

// give gives a process that is not started yet a clock.
func (k *clocks) give(c *client) error {
	if k == nil {
		return nil
	}
	name, err := os.MkdirTemp(k.dir, "client-")
	if err != nil {
		return err
	}
	c.clock, err = k.library.NewClock(name, "clock")
	if err == nil {
		c.cmd.Env = append(os.Environ(), c.clock.Env()...)
	}
	return err
}

// closeClock removes the clock of a process that has ended, or has not started.
func (c *client) closeClock() {
	if c.clock != nil {
		_ = c.clock.Close()
	}
}

// used returns an error if the process does not have its time from its clock: it does not use the C library.
func (k *clocks) used(c *client) error {
	if k == nil {
		return nil
	}
	process := fmt.Sprintf("/proc/%d/", c.cmd.Process.Pid)
	if info, err := buildinfo.ReadFile(process + "exe"); err == nil {
		return fmt.Errorf("%w: the program is written in Go (%s), which reads clocks past the C library, so its clock "+
			"can't be set", workload.ErrUnsupported, info.GoVersion)
	}
	maps, err := os.ReadFile(process + "maps")
	if err == nil && !bytes.Contains(maps, []byte(k.dir)) {
		err = fmt.Errorf("%w: the program does not ask the C library for the time, so its clock can't be set",
			workload.ErrUnsupported)
	}
	return err
}
