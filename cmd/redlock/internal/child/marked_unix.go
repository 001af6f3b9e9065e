//go:build unix && !aix && !linux

package child

import "os"

// marked are processes that have an entry in their environment. This system does not show it.
type marked struct{}

func (*marked) signal(os.Signal) error { return nil }
func (*marked) forget()                {}

func killMarked(string, any) error           { return nil }
func askMarked(string, int, os.Signal) error { return nil }
func markedLeft(string) bool                 { return false }
func stopMarked(string, int) *marked         { return nil }
