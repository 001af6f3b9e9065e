package child

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Above reports whether another process with this program's name started this program, directly or through others.
func Above() bool {
	own, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		return false
	}
	for pid := os.Getppid(); pid > 0; {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		switch {
		case err != nil: // hidden, or gone
			return false
		case bytes.Equal(name, own):
			return true
		}
		pid = parentOf(pid)
	}
	return false
}

// parentOf returns 0 if there is no parent, or none that is visible from here.
func parentOf(pid int) int {
	fields := statOf(pid)
	if len(fields) <= parent {
		return 0
	}
	above, _ := strconv.Atoi(string(fields[parent])) // it is a number
	return above
}
