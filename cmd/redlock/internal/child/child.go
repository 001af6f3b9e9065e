// Package child runs one command in a process group of its own, so that everything it starts can be ended with it.
//
// Where standard input is a terminal, the command gets the terminal as a shell's foreground job would: it reads from it,
// Ctrl-C goes to it, and Ctrl-Z stops it together with this program.
package child

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
)

// Config says what to run.
type Config struct {
	// Argv is the program and its arguments.
	Argv []string
	// Env is its whole environment.
	Env []string
	// Standard input, output and error.
	Stdin, Stdout, Stderr *os.File
	// MayContinue is asked before a command that was stopped (Ctrl-Z) is continued, after this program was itself: the
	// world may have changed meanwhile. If it returns false the command is killed instead. Nil means yes.
	MayContinue func() bool
}

// Process is a command that was started. Its methods may be called concurrently.
type Process struct {
	platform
	done   chan struct{}
	status Status // written before done is closed
}

// Status is how a command ended: with an exit code, or by a signal, which is 0 otherwise.
type Status struct {
	Code, Signal int
}

// Done is closed when the command, not necessarily everything it has started, has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Status waits for Done and says how the command ended.
func (p *Process) Status() Status {
	<-p.done
	return p.status
}

// Missing says whether an error of Start means that there is no such program.
func Missing(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}

func (c Config) command() *exec.Cmd {
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Env = c.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	return cmd
}
