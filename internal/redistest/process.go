package redistest

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// poll looks at cond until it holds or ctx is done, and a last time then.
func poll(ctx context.Context, cond func() bool) bool {
	for !cond() {
		select {
		case <-ctx.Done():
			return cond()
		case <-time.After(pollEvery):
		}
	}
	return true
}

// process is one run of the program, from its start to its end.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended and was waited for
}

// launch starts the program. Its output goes straight to the file, so no goroutine copies it.
//
// The child asks the kernel to be killed when its parent dies, so that a test binary that is killed, panics or times
// out leaves nothing behind. For Linux "the parent" is the THREAD that forked, and Go ends threads as it likes; a child
// would then die for no reason. So the goroutine that forks keeps its thread to itself until the child has ended.
func launch(binary string, args, env []string, output io.Writer) (*process, error) {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = childAttributes()
	p := &process{cmd: cmd, exited: make(chan struct{})}
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

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill ends the process at once, also when it is stopped, and waits for it. A process that has been waited for is not
// signalled: its number may be somebody else's by now.
func (p *process) kill() error {
	if !p.alive() {
		return nil
	}
	if err := killGroup(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	<-p.exited
	return nil
}

// pause returns when every thread of the process stands still, not merely when the signal was sent.
func (p *process) pause() error { return p.signalUntil(sigStop, true) }

// resume returns when the process is no longer stopped.
func (p *process) resume() error { return p.signalUntil(sigCont, false) }

func (p *process) signalUntil(sig os.Signal, wantStopped bool) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), signalTimeout)
	defer cancel()
	var stopped bool
	var err error
	reached := poll(ctx, func() bool {
		stopped, err = isStopped(p.pid(), wantStopped)
		return !p.alive() || err != nil || stopped == wantStopped
	})
	switch {
	case !p.alive():
		return fmt.Errorf("process ended: %v", p.cmd.ProcessState)
	case err != nil:
		return err
	case !reached:
		return fmt.Errorf("process %d: stopped is %t after %v", p.pid(), stopped, signalTimeout)
	}
	return nil
}
