package fleet

import (
	"runtime"
	"syscall"
)

// wakeEvery is how often the runtime is made to look at its timers. With what a thread needs to wake up it is a tenth
// of a millisecond, and costs a tenth of a core.
const wakeEvery = 60_000 // nanoseconds

// exactTimers keeps Go's timers from being late for as long as stop has not been called. An idle runtime waits for
// the next timer in whole milliseconds (runtime/netpoll_epoll.go), so where several timers end close to each other,
// each of them makes the next late by up to one: five answers delayed by 2 to 10 ms at the same time made the third come
// after 6.9 ms instead of 6.1, whoever had asked.
func exactTimers() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
			}
			_ = syscall.Nanosleep(&syscall.Timespec{Nsec: wakeEvery}, nil) // a signal may end it early
			runtime.Gosched()                                              // which looks at the timers
		}
	}()
	return func() { close(end); <-ended }
}
