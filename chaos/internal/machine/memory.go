package machine

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Resident is how many bytes of memory a process has. Only Linux tells.
func Resident(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0, fmt.Errorf("chaos: statm has %d fields", len(fields))
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize()), err
}
