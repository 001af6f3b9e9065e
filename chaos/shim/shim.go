// Package shim moves the wall clock of one process, for instance a redis-server, without privileges. The process
// preloads a few lines of C, which read an offset and a rate from a file. This package maps and writes that file.
//
// It needs Linux with glibc and a C compiler (cc) at run time; where one is missing [Build] says so with an error that
// matches [ErrUnavailable]. libfaketime does the same for most programs, but Debian's keeps redis-server from starting.
package shim

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/workload"
)

//go:embed preload/clock.c
var source []byte

// ErrUnavailable is matched by errors that say that this machine can't move a process's clock.
var ErrUnavailable = errors.New("shim: moving a process's clock is not available here")

// Library is the compiled shim.
type Library struct {
	path string
}

// Build compiles the shim into dir, which the caller owns and removes when no process needs the library any more. It
// takes about 0.1 s. The compiler is $CC, or cc.
func Build(ctx context.Context, dir string) (*Library, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("%w: it needs Linux, this is %s", ErrUnavailable, runtime.GOOS)
	}
	cc := cmp.Or(os.Getenv("CC"), "cc")
	compiler, err := exec.LookPath(cc)
	if err != nil {
		return nil, fmt.Errorf("%w: no C compiler: %v", ErrUnavailable, err)
	}
	src, lib := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(src, source, 0o600); err != nil {
		return nil, fmt.Errorf("shim: %w", err)
	}
	out, err := exec.CommandContext(ctx, compiler, "-shared", "-fPIC", "-O2", "-o", lib, src).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %v: %s", ErrUnavailable, cc, err, strings.TrimSpace(string(out)))
	}
	return &Library{path: lib}, nil
}

// Clock is the wall clock of the processes started with its Env. It is safe for concurrent use.
type Clock struct {
	library, path string

	mu      sync.Mutex
	control control
	wall    workload.WallClock
}

// NewClock makes a clock that is right. Its control file is in dir, under name.
func (l *Library) NewClock(dir, name string) (*Clock, error) {
	c := &Clock{library: l.path, path: filepath.Join(dir, name)}
	var err error
	if c.control, err = openControl(c.path); err != nil {
		return nil, fmt.Errorf("shim: %w", err)
	}
	c.Set(0)
	return c, nil
}

// Env returns the environment variables that make a process follow this clock.
func (c *Clock) Env() []string {
	return []string{"LD_PRELOAD=" + c.library, "REDLOCK_CHAOS_CLOCK=" + c.path}
}

// Step moves the clock by d at once, forwards or backwards.
func (c *Clock) Step(d time.Duration) { c.change(func() { c.wall.MoveClock(d) }) }

// SetRate makes the clock run at this rate from now on: 1 is right, 1.02 is 2 % fast. The time gained so far stays.
func (c *Clock) SetRate(rate float64) { c.change(func() { c.wall.SetClockRate(rate) }) }

// Set makes the clock right, or wrong by exactly offset, with rate 1.
func (c *Clock) Set(offset time.Duration) {
	c.change(func() { c.wall.Set(workload.ClockSetting{Ahead: offset}) })
}

func (c *Clock) change(wall func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall()
	now := c.wall.Setting()
	c.control.write(int64(now.Ahead), int64(math.Round(now.Gain*1e9)), now.Since)
}

// Close unmaps and removes the control file. Processes that still run keep the clock's present offset and rate.
func (c *Clock) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.control.close(), os.Remove(c.path))
}
