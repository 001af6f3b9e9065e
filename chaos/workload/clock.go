package workload

import (
	"context"
	"fmt"
	"time"
)

// Clocked is a Subject with clients that can be given a time of day, so that the harness can set their clocks.
type Clocked interface {
	// WithClock returns the same subject, with clients that ask wall for the time of day. wall may jump in both
	// directions. It is safe for concurrent use.
	WithClock(wall func() time.Time) Subject
}

// Virtual is a Subject that reads another clock than package time's. Package virtual runs it in a bubble of virtual
// time.
type Virtual interface {
	// InVirtualTime returns the same subject, with clients that read only package time's clock. It is called in the
	// bubble.
	InVirtualTime() Subject
}

// Settable is a Subject whose clients are processes. The harness can set their clocks.
type Settable interface {
	// WithClocks returns the same subject, with clients that are a [ClockMover]. It may write to dir, which outlives
	// the clients. It fails with an error that matches ErrUnsupported where this is not possible.
	WithClocks(ctx context.Context, dir string) (Subject, error)
}

// ClockMover is a Locker that runs in a separate process with a separate clock.
type ClockMover interface {
	// MoveClock sets the time of day of that process forwards or, if d is negative, back.
	MoveClock(d time.Duration)
	// SetClockRate makes its time of day run at this rate from now on; 1 is right. The time gained so far stays.
	SetClockRate(rate float64)
}

// CheckClock returns nil if the subject is a [Clocked] or a [Settable], or an error that matches ErrUnsupported.
func CheckClock(s Subject) error {
	_, clocked := s.(Clocked)
	if _, settable := s.(Settable); clocked || settable {
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

// Process is a Locker in a separate process. The harness can read the memory use of that process.
type Process interface {
	// Pid is the process's id.
	Pid() int
}
