package scenario

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// keepOn makes processes run on the nth of the cores that they may use. undo lets them use all of these again.
func keepOn(nth int, pids ...int) (undo func() error, err error) {
	var before, only unix.CPUSet
	if err := unix.SchedGetaffinity(pids[0], &before); err != nil {
		return nil, fmt.Errorf("scenario: cores of process %d: %w", pids[0], err)
	}
	if before.Count() <= nth {
		return nil, fmt.Errorf("%w: %d cores may be used", ErrSkipped, before.Count())
	}
	core := 0
	for ; !before.IsSet(core) || nth > 0; core++ {
		if before.IsSet(core) {
			nth--
		}
	}
	only.Set(core)
	undo = func() error { return setCores(&before, pids) }
	if err := setCores(&only, pids); err != nil {
		return nil, errors.Join(err, undo())
	}
	return undo, nil
}

// setCores sets the cores of all threads of processes. It leaves out threads that end while it does so.
func setCores(cores *unix.CPUSet, pids []int) error {
	for _, pid := range pids {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return fmt.Errorf("scenario: threads of process %d: %w", pid, err)
		}
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err == nil {
				err = unix.SchedSetaffinity(id, cores)
			}
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("scenario: cores of thread %s: %w", thread.Name(), err)
			}
		}
	}
	return nil
}
