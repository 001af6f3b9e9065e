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

// Begin has nothing to do: the command has already begun.
func (p *Process) Begin(time.Duration) error { return nil }

// RunExec is not needed on this system.
func RunExec([]string) (status int, err error) { return cantRun, errors.ErrUnsupported }

// Group is the command's process id.
func (p *Process) Group() int { return p.process.Pid }

// Kill ends the command at once.
func (p *Process) Kill() error { return p.process.Kill() }

// Terminate kills the command: there is no signal to ask for its end.
func (p *Process) Terminate() error { return p.Kill() }

// These have nothing to do, because the command has already got its signal from the console, and there is no job
// control.

func (p *Process) Signal(os.Signal) error           { return nil }
func (p *Process) SignalOutside(os.Signal) error    { return nil }
func (p *Process) Left(int) (names []string, n int) { return nil, 0 }
func (p *Process) HasTerminal() bool                { return false }
func (p *Process) GiveTerminal() bool               { return false }
func (p *Process) TakeTerminal() bool               { return false }
func (p *Process) RestoreTerminal()                 {}
func (p *Process) Suspend(bool) error               { return nil }
func WantsTerminal(os.Signal) bool                  { return false }
func InForeground() bool                            { return true }
func HearsKeyboard() bool                           { return false }
func IgnoreTerminalInput()                          {}
func WriteErrors()                                  {}

// Watch does nothing on this system.
type Watch struct{}

func StartWatch() (*Watch, error)       { return &Watch{}, nil }
func (w *Watch) Ended() <-chan struct{} { return nil }
func (w *Watch) Worked() bool           { return false }
func (w *Watch) Tell(Order)             {}
func (w *Watch) Dismiss()               {}
func RunWatch(_, _ *os.File)            {}

var began = time.Now()

// Now is the time since some fixed moment.
func Now() time.Duration { return time.Since(began) }

// DieOf returns: on this system no program ends by a signal.
func DieOf(os.Signal, bool) {}

// noSignal is a signal that never comes.
type noSignal string

func (s noSignal) String() string { return string(s) }
func (noSignal) Signal()          {}

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
