//go:build !unix

package child

import "os"

// Forwarded are the signals that a program which stands in front of a command passes on to it. Here there is only the
// interrupt, which the console sends to both.
var Forwarded = []os.Signal{os.Interrupt}

type platform struct{ process *os.Process }

// Start starts the command. There are no process groups on this system: what the command itself starts is not ended
// with it.
func Start(cfg Config) (*Process, error) {
	cmd := cfg.command()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{platform: platform{cmd.Process}, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		p.status = Status{Code: cmd.ProcessState.ExitCode()}
		close(p.done)
	}()
	return p, nil
}

// Signal does nothing: the console has told the command already.
func (p *Process) Signal(os.Signal) error { return nil }

// Terminate ends the command. There is no way to ask.
func (p *Process) Terminate() error { return p.Kill() }

// Kill ends the command at once.
func (p *Process) Kill() error { return p.process.Kill() }
