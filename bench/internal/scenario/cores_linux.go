package scenario

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// keepOn makes all threads of a process run on one core. undo lets them run where they ran before; threads that begin
// later have the same core and keep it until then.
func keepOn(pid, core int) (undo []func() error, err error) {
	var before, only unix.CPUSet
	only.Set(core)
	if err := unix.SchedGetaffinity(pid, &before); err != nil {
		return nil, fmt.Errorf("scenario: cores of process %d: %w", pid, err)
	}
	if !before.IsSet(core) {
		return nil, fmt.Errorf("%w: core %d may not be used", ErrSkipped, core)
	}
	undo = append(undo, func() error { return keepAll(pid, &before) })
	return undo, keepAll(pid, &only)
}

// keepAll sets the cores of all threads of a process. It leaves out threads that end meanwhile.
func keepAll(pid int, cores *unix.CPUSet) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return fmt.Errorf("scenario: threads of process %d: %w", pid, err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err == nil {
			err = unix.SchedSetaffinity(id, cores)
		}
		if err != nil && err != unix.ESRCH { //nolint:errorlint // system calls return their numbers as they are
			return fmt.Errorf("scenario: cores of thread %s: %w", thread.Name(), err)
		}
	}
	return nil
}
