package redistest_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

func TestCleanupEndsEveryProcessAlsoPausedOnes(t *testing.T) {
	redistest.Need(t)
	var pids []int
	var dirs []string
	t.Run("inner", func(t *testing.T) {
		for i, server := range redistest.StartN(t, 3) {
			pids, dirs = append(pids, server.Pid()), append(dirs, server.Dir())
			if i == 0 {
				must(t, server.Pause())
			}
		}
	})
	if len(pids) != 3 {
		t.Fatalf("started %d servers, want 3", len(pids))
	}
	for i, pid := range pids {
		if pid == 0 || exists(t, pid) {
			t.Errorf("process %d is still there, or never was", pid)
		}
		if _, err := os.Stat(dirs[i]); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("directory %s is still there (%v)", dirs[i], err)
		}
	}
}

func TestAMethodThatFailsFailsItsTest(t *testing.T) {
	redistest.Need(t)
	var tb fakeTB
	tb.run(func(tb redistest.TB) {
		server := redistest.Start(tb)
		_ = server.Kill()
		_ = server.Pause()
	})
	if len(tb.errors) != 1 || !strings.Contains(tb.errors[0], redistest.ErrDown.Error()) {
		t.Errorf("the test heard %q, want one error about a server that does not run", tb.errors)
	}
}

// A server must die with the program, but not with the thread that happened to start it.
func TestServersOutliveTheThreadThatAskedForThem(t *testing.T) {
	redistest.Need(t)
	servers := make(chan []*redistest.Server)
	go func() {
		runtime.LockOSThread() // never unlocked: Go ends the thread with the goroutine
		started, err := redistest.RunN(t.Context(), 2, redistest.Config{})
		if err != nil {
			t.Error(err)
		}
		servers <- started
	}()
	for _, server := range <-servers {
		for range 50 { // new threads come and go
			done := make(chan struct{})
			go func() {
				defer close(done)
				runtime.LockOSThread()
			}()
			<-done
		}
		if server.Pid() == 0 {
			t.Error("the server died with a thread")
		}
		must(t, server.Client().Ping(t.Context()).Err())
		must(t, server.Stop())
	}
}

func TestServersDieWithAProgramThatIsKilled(t *testing.T) {
	redistest.Need(t)
	if runtime.GOOS != "linux" {
		t.Logf("only Linux ties a process's life to its parent's")
		return
	}
	redistest.Start(t)                       // says so when there is no redis-server
	temp, err := os.MkdirTemp("", "orphan-") //nolint:usetesting // its short name keeps the server's socket inside
	must(t, err)
	defer func() { must(t, os.RemoveAll(temp)) }()
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), orphanMaker+"=1", "TMPDIR="+temp)
	stdin, err := program.StdinPipe()
	must(t, err)
	defer stdin.Close()
	stdout, err := program.StdoutPipe()
	must(t, err)
	must(t, program.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	must(t, err)
	if !exists(t, pid) {
		t.Fatalf("the program's server %d does not run", pid)
	}
	must(t, program.Process.Kill())
	_ = program.Wait() // it was killed
	redistest.Eventually(t, 10*time.Second, func() bool { return !exists(t, pid) },
		"the server to die with its program")
}

func TestEventually(t *testing.T) {
	var passing, failing fakeTB
	looks := 0
	passing.run(func(tb redistest.TB) {
		redistest.Eventually(tb, time.Minute, func() bool { looks++; return looks == 3 }, "three looks")
	})
	if looks != 3 || len(passing.fatals) != 0 {
		t.Errorf("%d looks, fatals %q; want 3 looks and no fatal", looks, passing.fatals)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		failing.run(func(tb redistest.TB) {
			redistest.Eventually(tb, time.Minute, func() bool { return false }, "the impossible")
		})
		if waited := time.Since(start); waited != time.Minute {
			t.Errorf("waited %v, want exactly a minute of virtual time", waited)
		}
	})
	if len(failing.fatals) != 1 || !strings.Contains(failing.fatals[0], "the impossible") {
		t.Errorf("fatals %q, want one that names the awaited condition", failing.fatals)
	}
}
