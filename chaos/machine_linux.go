package chaos

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// delays remembers for how long threads have waited for a processor.
type delays struct {
	self    string
	threads map[string]int64 // by file; nanoseconds
}

func newDelays() *delays {
	d := &delays{self: strconv.Itoa(os.Getpid()), threads: make(map[string]int64)}
	d.of(0)
	return d
}

// of returns the most that a thread of a process waited since the last call; of a thread that was not known then, nothing. 0
// is this process. A process that is gone did not wait.
func (d *delays) of(pid int) time.Duration {
	id := d.self
	if pid != 0 {
		id = strconv.Itoa(pid)
	}
	tasks, err := os.ReadDir("/proc/" + id + "/task")
	if err != nil {
		return 0
	}
	most := int64(0)
	for _, task := range tasks {
		file := fmt.Sprintf("/proc/%s/task/%s/schedstat", id, task.Name())
		raw, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(raw)) // time on a processor, time waiting for one, number of turns
		if len(fields) < 2 {
			continue
		}
		waited, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			continue
		}
		if before, known := d.threads[file]; known {
			most = max(most, waited-before)
		}
		d.threads[file] = waited
	}
	return time.Duration(most)
}
