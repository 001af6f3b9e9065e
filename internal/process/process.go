// Package process runs the servers that tests and benchmarks start: each dies with the program that started it, stands still and
// goes on when it is told to, and is ended by its process group and never by a name.
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

// pollEvery is how often a condition is looked at.
const pollEvery = 2 * time.Millisecond

// signalTimeout bounds the wait for a signal's effect. The kernel needs microseconds, a starved machine more.
const signalTimeout = 10 * time.Second

// Poll looks at cond until it holds or ctx is done, and a last time then.
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

// Process is one run of a program, from its start to its end. Safe for concurrent use.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended and was waited for
}

// Start runs the command, in a process group of its own. Give it files to write to and no other writers, whose copying ends only with the
// last process that has them open.
//
// The child asks the kernel to be killed when its parent dies, so that a test binary that is killed, panics or times
// out leaves nothing behind. For Linux "the parent" is the THREAD that forked, and Go ends threads as it likes; a child
// would then die for no reason. So the goroutine that forks keeps its thread to itself until the child has ended.
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

// Pid is the number of the process, which may be another one's once it has ended.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// State says how the process ended. It is called after that.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Alive reports that the process has not ended; one that stands still is alive.
func (p *Process) Alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Interrupt sends a signal that the program ends itself upon, and returns when it has ended, or after the signal and d with [Process.Kill].
// One that stands still goes on first.
func (p *Process) Interrupt(sig os.Signal, d time.Duration) error {
	if !p.Alive() {
		return nil
	}
	_ = p.cmd.Process.Signal(sigCont) // it has no effect on one that runs
	_ = p.cmd.Process.Signal(sig)     // whether it worked is seen below
	select {
	case <-p.exited:
		return nil
	case <-time.After(d):
		return p.Kill()
	}
}

// Kill ends the process at once, also when it is stopped, and waits for it. A process that has been waited for is not
// signalled: its number may be somebody else's by now.
func (p *Process) Kill() error {
	if !p.Alive() {
		return nil
	}
	if err := killGroup(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	<-p.exited
	return nil
}

// Pause returns when every thread of the process stands still, not merely when the signal was sent.
func (p *Process) Pause() error { return p.signalUntil(sigStop, true) }

// Resume returns when the process is no longer stopped.
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
