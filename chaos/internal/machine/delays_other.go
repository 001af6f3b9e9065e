//go:build !linux

package machine

import "time"

// delays is empty where the kernel does not tell for how long threads have waited for a processor.
type delays struct{}

func newDelays() *delays { return &delays{} }

func (*delays) of(Process) time.Duration { return 0 }

func (*delays) forget() {}

func (*delays) close() {}
