package chaos

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// longestOfMany is the longest wait of one thread of many that counts. Who sleeps for long and then gets seconds by mistake (see ofThread) can't be told
// from who waited for them. Where a thread of this process really waits for longer, all do, and a beat is late; a client that is a process of its own
// and gets no time for seconds is excused for one.
const longestOfMany = time.Second

// delays remembers for how long threads have waited for a processor.
type delays struct {
	self    string
	threads map[string]thread // by file
}

// thread is what was known of one at the last look.
type thread struct {
	waited time.Duration // since it exists
	turns  int64         // on a processor
	looked time.Time     // the last look
	ran    time.Time     // a wait that is not over yet, or of which the kernel has not told, is counted from here on at the earliest
}

func newDelays() *delays {
	d := &delays{self: strconv.Itoa(os.Getpid()), threads: make(map[string]thread)}
	d.of(process{})
	return d
}

// of returns the most that a thread of a process waited since the last call; of a thread that was not known then, nothing. The zero
// process is this one. A process that is gone did not wait.
func (d *delays) of(p process) time.Duration {
	id := d.self
	if p.pid != 0 {
		id = strconv.Itoa(p.pid)
	}
	dir := "/proc/" + id + "/task"
	if p.main {
		return d.ofThread(filepath.Join(dir, id, "schedstat"), time.Now())
	}
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	most := time.Duration(0)
	for _, task := range tasks {
		most = max(most, d.ofThread(filepath.Join(dir, task.Name(), "schedstat"), time.Now()))
	}
	return min(most, longestOfMany)
}

// ofThread is of for one. The kernel tells of a wait when it is over. It sometimes adds seconds that have not been, when a thread goes
// from one processor to another whose clock is another, so no wait is longer than the time since the thread is known to have run.
func (d *delays) ofThread(file string, now time.Time) time.Duration {
	raw, err := os.ReadFile(file)
	fields := strings.Fields(string(raw)) // nanoseconds on a processor and waiting for one, number of turns
	if err != nil || len(fields) < 3 {
		return 0
	}
	waited, err1 := strconv.ParseInt(fields[1], 10, 64)
	turns, err2 := strconv.ParseInt(fields[2], 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	t := thread{waited: time.Duration(waited), turns: turns, looked: now, ran: now}
	before, known := d.threads[file]
	if known && turns == before.turns {
		t.ran = before.ran
	} else if known {
		t.ran = before.looked
	}
	d.threads[file] = t
	if !known {
		return 0
	}
	return min(t.waited-before.waited, now.Sub(before.ran))
}
