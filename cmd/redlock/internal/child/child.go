// Package child runs one command for as long as a lock is held, and ends it with everything that it has started.
//
// Three processes take part:
//
//	redlock    holds the lock, and decides. It is the command's parent. It stays in the process group that the shell
//	           made for it, so a shell's job control, and a script around it, see an ordinary program.
//	command    leads a new process group, the job: one signal reaches the whole group, whoever started a member.
//	           At first the process is this program again. It becomes the command when redlock says so: after watch
//	           knows of it, and not after the end of the validity.
//	watch      is a second process of this program, in a new session, where no terminal and no signal to a group
//	           reaches it. redlock tells it when the validity ends. It kills the job at that moment unless redlock
//	           has sent a later one, as when redlock is stopped. It also ends the job when redlock is gone, which it
//	           learns from the end of a pipe.
//
// So the job outlives the lock only if redlock and watch both fail at once. Each order of events ends the same way:
//
//	redlock is stopped (SIGSTOP, a debugger)       watch kills the job when the validity ends
//	redlock is killed                              watch asks the job to end, and kills it a grace later or when the
//	                                               validity ends; on Linux the kernel also asks the command itself
//	redlock under redlock, and the inner one       the inner watch kills the inner job at once: the outer lock may
//	is killed                                      be over
//	watch is killed or stopped                     redlock goes on as before, and starts another watch if it is gone
//	the whole machine stands still                 all wake up together; both read a clock that went on in that time
//	Ctrl-Z                                         redlock stops the whole job before it stops itself. Only redlock
//	                                               continues the job, and checks its lock first. If redlock is not
//	                                               back when the validity ends, watch kills the stopped job
//
// A terminal has one foreground group, which reads from it and gets the signals of its keys. If standard input and
// output are both the terminal, the job is in the foreground from the start. Otherwise, for example in a pipe,
// redlock's own group keeps the foreground, since other members of that group may need it, and redlock passes signals
// on. If the command still uses the terminal, for example for a password, the kernel stops it. redlock then gives it
// the foreground and continues it.
//
// The command may end before the processes that it has started. On Linux redlock becomes the parent of all orphans
// below it. So all descendants of the command stay below redlock, and redlock knows when the last one has ended; see
// [Process.Gone]. A process can leave the job's group, as the processes that timeout(1) starts in a script do. Then
// redlock finds it by the entry in its environment that names the lock, stops it together with the group, and asks it
// to end when the lock is lost. A kill reaches all descendants of the command. Only watch, after redlock is gone,
// depends on the entry alone. On other systems redlock can't reach processes that have left the group.
package child

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
)

const (
	// WatchCommand is this program's only argument if it is to be a [Watch], see [RunWatch].
	WatchCommand = "(watch)"
	// ExecCommand is this program's first argument if it is to become a command, see [RunExec].
	ExecCommand = "(exec)"
	// cantRun is the exit status of a command that could not be started.
	cantRun = 126
)

// Config describes the command.
type Config struct {
	Argv []string // the program and its arguments
	Env  []string // the command's whole environment
	// Mark is an entry of Env that no other command has. On Linux it identifies processes that have left the job's
	// group. It may be a secret.
	Mark                  string
	Stdin, Stdout, Stderr *os.File
}

// Process is a started command. Its methods may be called concurrently.
type Process struct {
	platform
	done    chan struct{}
	gone    chan struct{}
	status  Status // written before done is closed
	stopped chan os.Signal
}

// Status is the end of a command: an exit code, or a signal. Signal is 0 without a signal.
type Status struct {
	Code, Signal int
}

// Done is closed when the command has ended. Processes that it has started may still run.
func (p *Process) Done() <-chan struct{} { return p.done }

// Gone is closed when the command and all processes that it has started have ended. On Linux these are all its
// descendants, wherever they went. On other Unix systems they are the processes of its group. On Windows it is the
// command alone.
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

// Stopped delivers the signal each time the command is stopped.
func (p *Process) Stopped() <-chan os.Signal { return p.stopped }

// Status waits for Done and returns how the command ended.
func (p *Process) Status() Status {
	<-p.done
	return p.status
}

// Missing reports whether an error of Start means that there is no such program.
func Missing(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}
