package machine

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// longestOfMany is the longest wait that counts for one thread of many. A thread that sleeps for
// long and then gets seconds by mistake (see ofThread) looks like a thread that waited for those
// seconds. If a thread of this process really waits longer, all do, and a beat is late. A client in
// a separate process that gets no time for seconds is excused for only one.
const longestOfMany = time.Second

// delays remembers how long threads have waited for a processor. It keeps the kernel's files open: a run reads dozens
// of files fifty times a second, and opening a file takes ten times as long as reading it.
type delays struct {
	self    string
	threads map[string]thread // by file
	looks   int               // see forget
}

// thread is the state of one thread at the last look.
type thread struct {
	file   *os.File
	seen   int           // the number of that look
	waited time.Duration // since it exists
	turns  int64         // on a processor
	looked time.Time     // the last look
	ran    time.Time     // a wait that is not over, or not yet reported, counts from here at the earliest
}

func newDelays() *delays {
	d := &delays{self: strconv.Itoa(os.Getpid()), threads: make(map[string]thread)}
	d.of(Process{})
	return d
}

// forget ends a look at all processes of a run: threads that were not seen have ended, or do not matter any more.
func (d *delays) forget() {
	for file, t := range d.threads {
		if t.seen != d.looks {
			d.drop(file, t)
		}
	}
	d.looks++
}

// close forgets everything.
func (d *delays) close() {
	for file, t := range d.threads {
		d.drop(file, t)
	}
}

func (d *delays) drop(file string, t thread) {
	_ = t.file.Close() // it was only read
	delete(d.threads, file)
}

// of returns the most that a thread of a process waited since the last call; of a thread that was not known then,
// nothing. The zero process is this one. A process that is gone did not wait.
func (d *delays) of(p Process) time.Duration {
	id := d.self
	if p.Pid != 0 {
		id = strconv.Itoa(p.Pid)
	}
	dir := "/proc/" + id + "/task"
	if p.Main {
		return d.ofThread(dir+"/"+id+"/schedstat", time.Now())
	}
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	most := time.Duration(0)
	for _, task := range tasks {
		most = max(most, d.ofThread(dir+"/"+task.Name()+"/schedstat", time.Now()))
	}
	return min(most, longestOfMany)
}

// ofThread is of for one thread. The kernel reports a wait when it is over. It sometimes adds
// seconds that did not happen, when a thread moves between processors with different clocks. So no
// wait is longer than the time since the thread is known to have run.
func (d *delays) ofThread(file string, now time.Time) time.Duration {
	before, known := d.threads[file]
	if !known {
		f, err := os.Open(file)
		if err != nil {
			return 0
		}
		before.file = f
	}
	waited, turns, ok := readSchedstat(before.file)
	if !ok { // it is gone; the next thread with its number has another file
		d.drop(file, before)
		return 0
	}
	t := thread{file: before.file, seen: d.looks, waited: waited, turns: turns, looked: now, ran: now}
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

// readSchedstat reads the kernel's counts for a thread: nanoseconds on a processor and waiting for
// one, and the number of turns.
func readSchedstat(file *os.File) (waited time.Duration, turns int64, ok bool) {
	var raw [80]byte // three numbers of up to 20 digits
	n, err := file.ReadAt(raw[:], 0)
	fields := strings.Fields(string(raw[:n]))
	if err != nil && !errors.Is(err, io.EOF) || len(fields) < 3 {
		return 0, 0, false
	}
	ns, err1 := strconv.ParseInt(fields[1], 10, 64)
	turns, err2 := strconv.ParseInt(fields[2], 10, 64)
	return time.Duration(ns), turns, err1 == nil && err2 == nil
}
