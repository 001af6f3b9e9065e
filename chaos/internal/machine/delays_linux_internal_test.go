//go:build linux

package machine

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// TestAWaitIsNeverCountedLongerThanItCanHaveBeen has counts as the kernel gives them. The
// kernel adds a wait to its count when the wait is over. It may add ten seconds although the thread
// has spent nearly all of that time on a processor.
func TestAWaitIsNeverCountedLongerThanItCanHaveBeen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "schedstat")
	d := &delays{threads: make(map[string]thread)}
	defer d.close()
	start := time.Now()
	for _, look := range []struct {
		at            time.Duration // since the start
		waited, turns int64         // milliseconds
		want          time.Duration
	}{
		{0, 5000, 10, 0}, // before it was known
		{20 * time.Millisecond, 5003, 12, 3 * time.Millisecond},
		// ten seconds; it may have waited since its turn before the last look
		{40 * time.Millisecond, 15003, 13, 40 * time.Millisecond},
		{60 * time.Millisecond, 15003, 13, 0}, // it waits
		{80 * time.Millisecond, 15003, 13, 0},
		{9 * time.Second, 23943, 14, 8940 * time.Millisecond}, // and really has for nine seconds
		{9020 * time.Millisecond, 23943, 14, 0},
		{9040 * time.Millisecond, 23953, 15, 10 * time.Millisecond},
	} {
		must(t, os.WriteFile(file, fmt.Appendf(nil, "1 %d %d\n", look.waited*1e6, look.turns), 0o600))
		if got := d.ofThread(file, start.Add(look.at)); got != look.want {
			t.Errorf("after %v it waited for %v, want %v", look.at, got, look.want)
		}
	}
}

// TestOneThreadOfManyDoesNotWaitForSeconds: it may have slept all the time, and then got by mistake a count that looks
// like a long wait.
func TestOneThreadOfManyDoesNotWaitForSeconds(t *testing.T) {
	d, self := newDelays(), Process{Pid: os.Getpid()}
	defer d.close()
	if len(d.threads) == 0 {
		redistest.NothingTested(t, "this kernel does not tell")
	}
	for file, before := range d.threads {
		before.waited -= 10 * time.Second
		before.ran = before.ran.Add(-12 * time.Second)
		d.threads[file] = before
	}
	first := *d
	first.threads = maps.Clone(d.threads)
	if got := d.of(self); got != longestOfMany {
		t.Errorf("of many threads one waited for %v, want %v", got, longestOfMany)
	}
	self.Main = true
	if got := first.of(self); got < 10*time.Second || got > 12*time.Second {
		t.Errorf("the first thread waited for %v, want a little more than 10s", got)
	}
}

// TestProcessesThatLeftTheRunAreForgotten has a process that ends, and one that no longer belongs to the run: their
// files are not kept open.
func TestProcessesThatLeftTheRunAreForgotten(t *testing.T) {
	d := newDelays()
	defer d.close()
	if len(d.threads) == 0 {
		redistest.NothingTested(t, "this kernel does not tell")
	}
	start := func() (p Process, end func()) {
		c := exec.CommandContext(t.Context(), "cat")
		if _, err := c.StdinPipe(); err != nil { // which nobody closes
			t.Fatal(err)
		}
		must(t, c.Start())
		end = sync.OnceFunc(func() { _ = c.Process.Kill(); _ = c.Wait() })
		t.Cleanup(end)
		return Process{Pid: c.Process.Pid, Main: true}, end
	}
	ends, end := start()
	stays, _ := start()
	look := func(processes ...Process) {
		for _, p := range processes {
			d.of(p)
		}
		d.forget()
	}
	known := func(p Process) (*os.File, bool) {
		of, ok := d.threads[fmt.Sprintf("/proc/%d/task/%d/schedstat", p.Pid, p.Pid)]
		return of.file, ok
	}
	look(ends, stays)
	old, ok := known(ends)
	if !ok {
		t.Fatal("a process that was looked at is not known")
	}
	end()
	look(ends, stays)
	if _, ok := known(ends); ok || !errors.Is(old.Close(), os.ErrClosed) {
		t.Error("a process that ended is known, or its file was left open")
	}
	file, ok := known(stays)
	if !ok {
		t.Fatal("a process that stays is not known")
	}
	look()
	if _, ok := known(stays); ok || !errors.Is(file.Close(), os.ErrClosed) {
		t.Error("a process that does not belong to the run any more is known, or its file was left open")
	}
	if len(d.threads) != 0 {
		t.Errorf("nothing was looked at, and %d threads are known", len(d.threads))
	}
}
