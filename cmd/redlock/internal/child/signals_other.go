//go:build !unix || aix

package child

import "os"

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
