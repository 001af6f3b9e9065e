//go:build unix && !aix

package child

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// The signals of job control, and others with a meaning for redlock.
const (
	Stop     = syscall.SIGTSTP
	Continue = syscall.SIGCONT
	Hangup   = syscall.SIGHUP
	// Report asks a waiting program to say why it waits.
	Report = syscall.SIGUSR1
)

// Forwarded are the signals that this program passes on to its command. It leaves out signals that this program's
// parent made it ignore, as nohup does with SIGHUP and a script's & with SIGINT: the command ignores them too.
func Forwarded() []os.Signal {
	all := []os.Signal{
		syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, Stop,
		Continue,
	}
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if !signal.Ignored(sig) {
			all = append(all, sig)
		}
	}
	return all
}

// Ends reports whether sig is meant to end a program. It can't end a stopped one.
func Ends(sig os.Signal) bool {
	switch sig {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM:
		return true
	}
	return false
}

// WantsTerminal reports whether sig is a signal by which the kernel stops a background program that uses its terminal.
func WantsTerminal(sig os.Signal) bool { return sig == syscall.SIGTTIN || sig == syscall.SIGTTOU }

// WriteErrors turns a write to a closed pipe into an error, instead of the death of this program. Commands that it
// starts still die of such a write.
func WriteErrors() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// DieOf ends this program by the signal that has ended the command. So the parent sees an interrupted program, and a
// shell ends the script around it. If all is true, the other processes of this program's group get the signal too. They
// would have got it if their group had still been in the terminal's foreground.
//
// DieOf returns if the signal can't end this program. That is so for process 1 of a PID namespace: the kernel ignores
// the signal, and Go's runtime would exit with another status.
func DieOf(sig os.Signal, all bool) {
	number, ok := sig.(syscall.Signal)
	if !ok || os.Getpid() == 1 {
		return
	}
	// For SIGQUIT Go would print its stacks and dump no core.
	if number == syscall.SIGQUIT {
		signal.Ignore(sig)
		if all {
			_ = syscall.Kill(0, number) // this is our own group, which exists
		}
		return
	}
	whom := os.Getpid()
	if all {
		whom = 0
	}
	signal.Reset(sig)
	if err := syscall.Kill(whom, number); err == nil {
		<-time.After(time.Second) // the signal is on its way to a thread of this program
	}
}
