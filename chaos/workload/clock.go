package workload

import (
	"fmt"
	"time"
)

// Clocked is a Subject with clients that can be given a time of day, so that the harness can set their clocks.
type Clocked interface {
	// WithClock returns the same subject, with clients that ask wall for the time of day. wall may jump in both
	// directions. It is safe for concurrent use.
	WithClock(wall func() time.Time) Subject
}

// CheckClock returns nil if the subject is a [Clocked], or an error that matches ErrUnsupported.
func CheckClock(s Subject) error {
	if _, ok := s.(Clocked); ok {
		return nil
	}
	return fmt.Errorf("%w: the clocks of clients of %s can't be set: implement workload.Clocked", ErrUnsupported,
		s.Name())
}

// Suspendable is a Locker in a process of its own.
type Suspendable interface {
	// Suspend stops the process, as when its machine goes to sleep, and Resume lets it go on.
	Suspend() error
	Resume() error
}
