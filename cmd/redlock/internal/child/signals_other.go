//go:build !unix || aix

package child

import "os"

// noSignal is one that never comes.
type noSignal string

// String implements os.Signal.
func (s noSignal) String() string { return string(s) }

// Signal implements os.Signal.
func (noSignal) Signal() {}

// The signals that job control is about, of which there is none on this system.
const (
	Stop     = noSignal("stop")
	Continue = noSignal("continue")
	Hangup   = noSignal("hangup")
	Report   = noSignal("report")
)

// Forwarded are the signals that a program which stands in front of a command passes on to it. Here there is only the
// interrupt, which the console sends to both.
func Forwarded() []os.Signal { return []os.Signal{os.Interrupt} }

// Ends says whether sig is meant to end a program.
func Ends(sig os.Signal) bool { return sig == os.Interrupt }

// InForeground is true: there is no job control on this system.
func InForeground() bool { return true }

// HearsKeyboard is false: the console tells the command itself.
func HearsKeyboard() bool { return false }

// IgnoreTerminalInput does nothing.
func IgnoreTerminalInput() {}

// WantsTerminal is false on this system.
func WantsTerminal(os.Signal) bool { return false }

// WriteErrors does nothing: it is so on this system.
func WriteErrors() {}
