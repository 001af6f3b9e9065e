//go:build unix && !aix

package child

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// The signals that job control is about, and others with a meaning.
const (
	Stop     = syscall.SIGTSTP
	Continue = syscall.SIGCONT
	Hangup   = syscall.SIGHUP
	// Report asks a program that waits what it is waiting for.
	Report = syscall.SIGUSR1
)

// Forwarded are the signals that a program which stands in front of a command passes on to it. Those that whoever started
// this program had it ignore, as nohup does with SIGHUP and a script's & with SIGINT, are left alone: the command
// inherits that.
func Forwarded() []os.Signal {
	all := []os.Signal{syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, Stop, Continue}
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if !signal.Ignored(sig) {
			all = append(all, sig)
		}
	}
	return all
}

// Ends says whether sig is meant to end a program, which it can't do to one that is stopped.
func Ends(sig os.Signal) bool {
	switch sig {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM:
		return true
	}
	return false
}

// WantsTerminal says whether sig is what the kernel stops a program with that uses its terminal from the background.
func WantsTerminal(sig os.Signal) bool { return sig == syscall.SIGTTIN || sig == syscall.SIGTTOU }

// WriteErrors makes a write to a closed pipe an error, instead of the death of this program. The commands that it starts
// die of it as they should.
func WriteErrors() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// DieOf ends this program by a signal which has ended the command, so that whoever waits sees an interrupted program: a
// shell ends the script around it. If all is true the other processes of this program's group get the signal, too: they
// would have if the terminal's foreground had still been theirs. DieOf returns if this program can't die of it, as process 1 of a
// PID namespace can't: the kernel ignores the signal, and Go's runtime would end with a status of its own.
func DieOf(sig os.Signal, all bool) {
	number, ok := sig.(syscall.Signal)
	if !ok || os.Getpid() == 1 {
		return
	}
	if number == syscall.SIGQUIT { // of which Go would print its stacks, and dump no core
		signal.Ignore(sig)
		if all {
			_ = syscall.Kill(0, number) // our own group, which exists
		}
		return
	}
	whom := os.Getpid()
	if all {
		whom = 0
	}
	signal.Reset(sig)
	if err := syscall.Kill(whom, number); err == nil {
		<-time.After(time.Second) // the signal is on its way to one of our threads
	}
}
