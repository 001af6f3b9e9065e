//go:build !unix || aix

package child

import (
	"errors"
	"os"
	"os/exec"
	"time"
)

type platform struct{ process *os.Process }

// Start starts the command. This system has no process groups. So ending the command does not end the processes that it
// has started, and nothing ends the command when this program is killed.
func Start(cfg Config) (*Process, error) {
	cmd := exec.Command(cfg.Argv[0], cfg.Argv[1:]...)
	cmd.Env = cfg.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = cfg.Stdin, cfg.Stdout, cfg.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{platform: platform{cmd.Process}, done: make(chan struct{}), gone: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // cmd.ProcessState has the result
		p.end(Status{Code: cmd.ProcessState.ExitCode()})
		close(p.gone)
	}()
	return p, nil
}

// Begin does nothing: the command has already begun.
func (p *Process) Begin(time.Duration) error { return nil }

// RunExec is not needed on this system.
func RunExec([]string) (status int, err error) { return cantRun, errors.ErrUnsupported }

// Group is the command's process id.
func (p *Process) Group() int { return p.process.Pid }

// Signal does nothing: the command has already got the signal from the console.
func (p *Process) Signal(os.Signal) error { return nil }

// SignalOutside does nothing.
func (p *Process) SignalOutside(os.Signal) error { return nil }

// Left is not asked.
func (p *Process) Left(int) (names []string, n int) { return nil, 0 }

// Terminate kills the command: there is no signal to ask for its end.
func (p *Process) Terminate() error { return p.Kill() }

// Kill ends the command at once.
func (p *Process) Kill() error { return p.process.Kill() }

// HasTerminal is false: there is no job control on this system.
func (p *Process) HasTerminal() bool { return false }

// GiveTerminal does nothing.
func (p *Process) GiveTerminal() bool { return false }

// TakeTerminal does nothing.
func (p *Process) TakeTerminal() bool { return false }

// RestoreTerminal does nothing.
func (p *Process) RestoreTerminal() {}

// Suspend does nothing.
func (p *Process) Suspend(bool) error { return nil }

// Watch does nothing on this system.
type Watch struct{}

// StartWatch does nothing.
func StartWatch() (*Watch, error) { return &Watch{}, nil }

// Ended never closes.
func (w *Watch) Ended() <-chan struct{} { return nil }

// Worked is not asked.
func (w *Watch) Worked() bool { return false }

// Tell does nothing.
func (w *Watch) Tell(Order) {}

// Dismiss does nothing.
func (w *Watch) Dismiss() {}

// RunWatch does nothing.
func RunWatch(_, _ *os.File) {}

var began = time.Now()

// Now is the time since some fixed moment.
func Now() time.Duration { return time.Since(began) }

// DieOf returns: on this system no program ends by a signal.
func DieOf(os.Signal, bool) {}

// noSignal is a signal that never comes.
type noSignal string

// String implements os.Signal.
func (s noSignal) String() string { return string(s) }

// Signal implements os.Signal.
func (noSignal) Signal() {}

// The signals of job control. This system has none of them.
const (
	Stop     = noSignal("stop")
	Continue = noSignal("continue")
	Hangup   = noSignal("hangup")
	Report   = noSignal("report")
)

// Forwarded are the signals that this program passes on to its command. Here it is only the interrupt, which the
// console sends to both.
func Forwarded() []os.Signal { return []os.Signal{os.Interrupt} }

// Ends reports whether sig is meant to end a program.
func Ends(sig os.Signal) bool { return sig == os.Interrupt }

// InForeground is true: there is no job control on this system.
func InForeground() bool { return true }

// HearsKeyboard is false: the command itself gets the signal from the console.
func HearsKeyboard() bool { return false }

// IgnoreTerminalInput does nothing.
func IgnoreTerminalInput() {}

// WantsTerminal is false on this system.
func WantsTerminal(os.Signal) bool { return false }

// WriteErrors does nothing: this is the default on this system.
func WriteErrors() {}
