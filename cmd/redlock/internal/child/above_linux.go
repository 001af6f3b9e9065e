package child

import (
	"bytes"
	"fmt"
	"os"
)

// Above says whether this program was started, through whomever, by another process of its name.
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

// parentOf returns 0 if there is none, or none that is seen from here.
func parentOf(pid int) (parent int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	var state byte
	afterName := stat[bytes.LastIndexByte(stat, ')')+1:]
	if _, err := fmt.Fscanf(bytes.NewReader(afterName), " %c %d", &state, &parent); err != nil {
		return 0
	}
	return parent
}
