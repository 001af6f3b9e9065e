//go:build unix && !aix

package child

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is this program's controlling terminal, whatever its standard input is.
type terminal struct {
	fd    int
	modes *unix.Termios // before the command began; nil: not known
}

// openTerminal returns nil if there is none.
func openTerminal() *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	modes, _ := unix.IoctlGetTermios(fd, getModes)
	return &terminal{fd, modes}
}

func (t *terminal) close() {
	if t != nil {
		_ = unix.Close(t.fd)
	}
}

// foreground returns the group that has the terminal.
func (t *terminal) foreground() (group int, ok bool) {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return group, err == nil
}

func (t *terminal) give(group int) bool {
	return unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) == nil
}

// ignoreTerminalOutput prevents a stop of this program when it writes to its terminal, or takes it back, from the
// background. Call it after the command was started, which would inherit it.
func ignoreTerminalOutput() { signal.Ignore(syscall.SIGTTOU) }

// InForeground reports whether this program is in the foreground of its terminal. Then it may read from the terminal
// and draw on it.
func InForeground() bool {
	t := openTerminal()
	if t == nil {
		return false
	}
	defer t.close()
	group, ok := t.foreground()
	return ok && group == unix.Getpgrp()
}

// HearsKeyboard reports whether this program gets the signals of the terminal's keys.
func HearsKeyboard() bool { return InForeground() }

// IgnoreTerminalInput makes a read of the terminal from the background fail, instead of stopping this program.
func IgnoreTerminalInput() { signal.Ignore(syscall.SIGTTIN) }

// isTerminal reports whether f is this program's controlling terminal.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil
}

// HasTerminal reports whether this program has a controlling terminal.
func (p *Process) HasTerminal() bool { return p.terminal != nil }

// GiveTerminal puts the command into the terminal's foreground if this program is there. It reports whether the command
// is there then.
func (p *Process) GiveTerminal() bool {
	if p.terminal == nil {
		return false
	}
	group, ok := p.terminal.foreground()
	switch {
	case !ok:
		return false
	case group == unix.Getpgrp():
		return p.terminal.give(p.pid)
	default:
		return group == p.pid
	}
}

// TakeTerminal puts this program's group into the foreground again if the command's group is there. It reports whether
// it was.
func (p *Process) TakeTerminal() bool {
	if p.terminal == nil {
		return false
	}
	if group, ok := p.terminal.foreground(); !ok || group != p.pid {
		return false
	}
	return p.terminal.give(unix.Getpgrp())
}

// RestoreTerminal resets the terminal's modes, such as no echo, if this program is in the foreground. It is for a
// command that was killed and had no time to reset them.
func (p *Process) RestoreTerminal() {
	if p.terminal == nil || p.terminal.modes == nil {
		return
	}
	if group, ok := p.terminal.foreground(); ok && group == unix.Getpgrp() {
		// If it fails, the terminal's next user resets them.
		_ = unix.IoctlSetTermios(p.terminal.fd, setModes, p.terminal.modes)
	}
}

// Suspend stops the command's group and every other process with its mark. It then stops this program, as a job of the
// shell that started it. With all, the other processes of this program's group stop too. Suspend returns soon after
// this program was continued, or at once if the kernel does not stop it because no parent could continue it. The caller
// must register for SIGTSTP again.
//
// If a parent can continue it, this program is stopped by SIGSTOP. If there may be no such parent, it is stopped by
// SIGTTIN, which the kernel then drops. A program can't catch SIGSTOP, this program does not catch SIGTTIN, and Go's
// runtime does not give back SIGTSTP. SIGTTIN also means that a program wants the terminal. So a parent that is itself
// redlock, or sudo, would give it the terminal and continue it.
func (p *Process) Suspend(all bool) error {
	err := p.halt()
	if unix.Getpid() == sessionOf(0) {
		return err // a session's leader has no shell above it
	}
	if all {
		signal.Ignore(Stop)
		err = errors.Join(err, syscall.Kill(0, Stop))
	}
	stop := syscall.SIGTTIN
	if parent := os.Getppid(); sessionOf(parent) == sessionOf(0) && !isIn(unix.Getpgrp(), parent) {
		stop = syscall.SIGSTOP
	}
	return errors.Join(err, syscall.Kill(os.Getpid(), stop))
}

func sessionOf(pid int) int {
	session, err := unix.Getsid(pid)
	if err != nil {
		return -1
	}
	return session
}
