//go:build unix

package child

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Forwarded are the signals that a program which stands in front of a command passes on to it.
var Forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

type platform struct {
	pid      int
	terminal int // the terminal's file descriptor; -1 if the command has none
}

// Start starts the command. A goroutine waits for its end.
//
// On Linux the kernel sends the command a SIGTERM when this program dies, even by SIGKILL: nobody would renew its lock.
// For the kernel it is the thread that forked which dies, so that goroutine keeps its thread to itself.
func Start(cfg Config) (*Process, error) {
	cmd := cfg.command()
	p := &Process{platform: platform{terminal: -1}, done: make(chan struct{})}
	attributes := &syscall.SysProcAttr{Setpgid: true}
	tieToParent(attributes)
	if fd, ok := controlled(cfg.Stdin); ok {
		p.terminal = fd
		// Whoever is in the background and touches the terminal's foreground group is stopped, unless it ignores that.
		signal.Ignore(syscall.SIGTTOU)
		if inForeground(fd) {
			attributes.Foreground, attributes.Ctty = true, fd
		}
	}
	cmd.SysProcAttr = attributes
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			p.wait(cfg.MayContinue)
			_ = cmd.Process.Release() // it was waited for
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		p.takeTerminal()
		return nil, err
	}
	return p, nil
}

// Signal sends sig to every process of the command's group. It does nothing when none is left.
func (p *Process) Signal(sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return errors.ErrUnsupported
	}
	err := syscall.Kill(-p.pid, number)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// Terminate asks the whole group to end. Also one that is stopped has to hear of it.
func (p *Process) Terminate() error {
	return errors.Join(p.Signal(syscall.SIGTERM), p.Signal(syscall.SIGCONT))
}

// Kill ends the whole group at once.
func (p *Process) Kill() error { return p.Signal(syscall.SIGKILL) }

// wait waits until the command has ended, and looks after its stops, as a shell does for its jobs.
func (p *Process) wait(mayContinue func() bool) {
	for {
		var ws syscall.WaitStatus
		_, err := syscall.Wait4(p.pid, &ws, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // somebody else has waited for it, which nobody does
			p.status = Status{Code: 1}
			p.takeTerminal()
			return
		case ws.Stopped():
			p.stopWith(mayContinue)
		case ws.Exited():
			p.status = Status{Code: ws.ExitStatus()}
			p.takeTerminal()
			return
		case ws.Signaled():
			p.status = Status{Signal: int(ws.Signal())}
			p.takeTerminal()
			return
		}
	}
}

// stopWith lets this program stop when its command was stopped at the terminal, so that the shell takes over, and the
// command go on when this program does. Without a terminal whoever stopped the command continues it.
func (p *Process) stopWith(mayContinue func() bool) {
	if p.terminal < 0 {
		return
	}
	p.takeTerminal()
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	_ = syscall.Kill(0, syscall.SIGTSTP) // our own group, which exists
	<-continued
	signal.Stop(continued)
	if mayContinue != nil && !mayContinue() {
		_ = p.Kill() // a group that is stopped must not run another instruction
		return
	}
	if inForeground(p.terminal) {
		_ = unix.IoctlSetPointerInt(p.terminal, unix.TIOCSPGRP, p.pid) // if it fails, reading stops the command again
	}
	_ = p.Signal(syscall.SIGCONT)
}

// takeTerminal makes this program's group the terminal's foreground again, if the command's is.
func (p *Process) takeTerminal() {
	if p.terminal < 0 {
		return
	}
	if group, err := unix.IoctlGetInt(p.terminal, unix.TIOCGPGRP); err == nil && group != p.pid && p.pid != 0 {
		return
	}
	_ = unix.IoctlSetPointerInt(p.terminal, unix.TIOCSPGRP, unix.Getpgrp()) // the shell does it too
}

// controlled returns f's descriptor if f is this program's controlling terminal.
func controlled(f *os.File) (int, bool) {
	if f == nil {
		return -1, false
	}
	fd := int(f.Fd())
	_, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return fd, err == nil
}

func inForeground(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
