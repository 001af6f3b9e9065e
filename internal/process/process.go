// Package process runs the servers that tests and benchmarks start. Each server dies with the program that started
// it, can be stopped and continued, and is killed by its process group and never by name.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// pollEvery is the pause between two checks of a condition.
const pollEvery = 2 * time.Millisecond

// signalTimeout bounds the wait for a signal's effect. The kernel needs microseconds, a starved machine more.
const signalTimeout = 10 * time.Second

// Poll checks cond until it is true or ctx is done, and then a last time.
func Poll(ctx context.Context, cond func() bool) bool {
	for !cond() {
		select {
		case <-ctx.Done():
			return cond()
		case <-time.After(pollEvery):
		}
	}
	return true
}

// Process is one run of a program, from start to end. Safe for concurrent use.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended and was waited for
}

// Start runs the command in a new process group. Let it write to files only. Copying to any other writer ends only
// when the last process that has it open ends.
//
// The child asks the kernel to kill it when its parent dies, so a test binary that is killed, panics or times out
// leaves nothing behind. On Linux "the parent" is the THREAD that forked, and Go ends threads at any time; the child
// would then die for no reason. So the goroutine that forks keeps its thread until the child has ended.
func Start(cmd *exec.Cmd) (*Process, error) {
	tie(cmd)
	p := &Process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.exited)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in cmd.ProcessState
		}
	}()
	if err := <-started; err != nil {
		<-p.exited
		return nil, err
	}
	return p, nil
}

// Pid returns the number of the process. After its end the number may belong to another process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// State says how the process ended. Call it only after the end.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Alive reports that the process has not ended. A stopped process is alive.
func (p *Process) Alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Interrupt sends a signal that makes the program end, and waits for the end. After d it uses [Process.Kill]. A
// stopped process is continued first.
func (p *Process) Interrupt(sig os.Signal, d time.Duration) error {
	if !p.Alive() {
		return nil
	}
	_ = p.cmd.Process.Signal(sigCont) // no effect on a running process
	_ = p.cmd.Process.Signal(sig)     // whether it worked is seen below
	select {
	case <-p.exited:
		return nil
	case <-time.After(d):
		return p.Kill()
	}
}

// Kill ends the process at once, even if it is stopped, and waits for its end. A process that has ended gets no
// signal: its number may belong to another process.
func (p *Process) Kill() error {
	if !p.Alive() {
		return nil
	}
	if err := killGroup(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) &&
		!errors.Is(err, syscall.ESRCH) {
		return err
	}
	<-p.exited
	return nil
}

// Pause stops the process. It returns when every thread has stopped, not as soon as the signal was sent.
func (p *Process) Pause() error { return p.signalUntil(sigStop, true) }

// Resume continues the process. It returns when the process is no longer stopped.
func (p *Process) Resume() error { return p.signalUntil(sigCont, false) }

func (p *Process) signalUntil(sig os.Signal, wantStopped bool) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), signalTimeout)
	defer cancel()
	var stopped bool
	var err error
	reached := Poll(ctx, func() bool {
		stopped, err = isStopped(p.Pid(), wantStopped)
		return !p.Alive() || err != nil || stopped == wantStopped
	})
	switch {
	case !p.Alive():
		return fmt.Errorf("process ended: %v", p.cmd.ProcessState)
	case err != nil:
		return err
	case !reached:
		return fmt.Errorf("process %d: stopped is %t after %v", p.Pid(), stopped, signalTimeout)
	}
	return nil
}
