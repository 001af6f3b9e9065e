// Package child runs one command for as long as a lock is held, and ends it with everything that it has started.
//
// Three processes take part:
//
//	redlock    holds the lock, and decides. It is the command's parent and stays in the process group that the shell
//	           made for it, so that a shell's job control, and a script around it, see an ordinary program.
//	command    leads a process group of its own, the job: one signal reaches all of it, whoever has started whom. At first
//	           it is this program again, which becomes the command when it is told to: after watch has been told of it,
//	           and not after the end of the validity.
//	watch      is this program once more, in a session of its own, where no terminal and no signal to a group reaches
//	           it. It is told until when the lock is valid. It kills the job when that moment has passed and nobody has
//	           told it of another one, as when redlock is stopped; and it ends the job when redlock is gone, which it
//	           learns from the end of a pipe.
//
// So the job outlives the lock only if redlock and watch both fail at once. Each order of events ends the same way:
//
//	redlock is stopped (SIGSTOP, a debugger)       watch kills the job when the validity ends
//	redlock is killed                              watch asks the job to end, and kills it a grace later or when the
//	                                               validity ends; on Linux the kernel also asks the command itself
//	redlock under redlock, and the inner one       the inner watch kills the inner job at once: the outer lock may be over
//	is killed
//	watch is killed or stopped                     redlock goes on as before, and starts another one if it is gone
//	the whole machine stands still                 all wake up together; both read a clock that went on meanwhile
//	Ctrl-Z                                         the job is stopped, all of it, before redlock stops itself; nobody but
//	                                               redlock continues it, and asks its lock before. If it is not back
//	                                               when the validity ends, watch kills the job where it stands
//
// A terminal has one group in its foreground, which reads from it and gets the signals of its keys. If standard input
// and output both are the terminal, that is the job from the start. Otherwise, in a pipeline say, redlock's own group
// keeps the foreground, since others in it may need it, and redlock passes signals on; a command that nevertheless wants
// the terminal, for a password, is stopped by the kernel, gets the foreground then, and goes on.
//
// The command may end before what it has started. On Linux redlock is the parent of all orphans below it, so everything that descends from the
// command stays there, and redlock knows when the last of it has ended, see [Process.Gone]. A process that leaves the job's group, as
// what timeout(1) starts in a script does, is found by the entry in its environment that tells it of its lock: it is stopped with the group, and
// asked when the lock is lost. What is killed is all that descends from the command. Only the watch, when redlock is gone, has nothing but the entry.
// On other systems what has left the group is out of reach.
package child

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
)

const (
	// WatchCommand is this program's only argument when it is to be a [Watch], see [RunWatch].
	WatchCommand = "(watch)"
	// ExecCommand is its first one when it is to become a command, see [RunExec].
	ExecCommand = "(exec)"
	// cantRun is the exit status of a command that could not be started.
	cantRun = 126
)

// Config says what to run.
type Config struct {
	// Argv is the program and its arguments.
	Argv []string
	// Env is its whole environment.
	Env []string
	// Mark is the entry in it that no other command has. By it, on Linux, processes are found that have left the job's group.
	// It may be a secret.
	Mark string
	// Standard input, output and error.
	Stdin, Stdout, Stderr *os.File
}

// Process is a command that was started. Its methods may be called concurrently.
type Process struct {
	platform
	done    chan struct{}
	gone    chan struct{}
	status  Status // written before done is closed
	stopped chan os.Signal
}

// Status is how a command ended: with an exit code, or by a signal, which is 0 otherwise.
type Status struct {
	Code, Signal int
}

// Done is closed when the command, not necessarily everything it has started, has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Gone is closed when the command and everything that it has started has ended. On Linux that is every process that descends from it, wherever
// it went; on other Unix systems every process of its group; on Windows the command alone.
func (p *Process) Gone() <-chan struct{} { return p.gone }

func (p *Process) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *Process) end(status Status) {
	p.status = status
	close(p.done)
}

// Stopped tells which signal stopped the command, each time.
func (p *Process) Stopped() <-chan os.Signal { return p.stopped }

// Status waits for Done and says how the command ended.
func (p *Process) Status() Status {
	<-p.done
	return p.status
}

// Missing says whether an error of Start means that there is no such program.
func Missing(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}
