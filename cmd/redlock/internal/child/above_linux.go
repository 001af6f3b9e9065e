package child

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Above reports whether another process with this program's name started this program, directly or through others.
func Above() bool {
	own := commOf(os.Getpid())
	for pid := os.Getppid(); pid > 0; pid = parentOf(pid) {
		if own != "" && commOf(pid) == own {
			return true
		}
	}
	return false
}

// commOf returns the name of a process's program; "" if the process is gone or hidden.
func commOf(pid int) string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSuffix(string(name), "\n")
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
