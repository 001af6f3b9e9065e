package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// runLine is the command line that runs a line of a shell under a lock.
func runLine(t *testing.T, master *redistest.Server, line string) []string {
	return []string{
		mustFind(t, "redlock"), "run", "-quiet", "-masters", master.URL(), "-key", t.Name(), "-ttl", "10s",
		"-c", line,
	}
}

// As process 1 of a container.
func TestHazard121AProcess1EndsWithTheStatusOfItsSignal(t *testing.T) {
	t.Parallel()
	if inside() == nil {
		redistest.NothingTested(t, "no PID namespace can be made here")
	}
	master := redistest.Start(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			t.Parallel()
			began := filepath.Join(t.TempDir(), "began")
			args := append(inside(), runLine(t, master, "echo yes >"+began+"; sleep 60")...)
			cmd := exec.Command(args[0], args[1:]...)
			must(t, cmd.Start())
			defer func() { _ = cmd.Process.Kill() }()
			begun := func() bool { _, err := os.Stat(began); return err == nil }
			redistest.Eventually(t, patience, begun, "the command begins")
			must(t, syscall.Kill(childrenOf(t, cmd.Process.Pid, false)[0], sig))
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != 128+int(sig) {
				t.Errorf("status %d, want %d", got, 128+int(sig))
			}
		})
	}
}

func TestHazard121OrphansAreReaped(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	line := `i=0; while [ $i -lt 20 ]; do (setsid true &); i=$((i+1)); done; echo made; read -r go`
	for how, around := range map[string][]string{"direct": nil, "as process 1": inside()} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			if how != "direct" && around == nil {
				redistest.NothingTested(t, "no PID namespace can be made here")
			}
			args := append(slices.Clone(around), runLine(t, master, line)...)
			cmd := exec.Command(args[0], args[1:]...)
			go1, err := cmd.StdinPipe()
			must(t, err)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			_, err = out.Read(make([]byte, 5))
			must(t, err)
			redlock := cmd.Process.Pid
			if around != nil {
				redlock = childrenOf(t, redlock, false)[0]
			}
			if !wait(func() bool { return len(childrenOf(t, redlock, true)) == 0 }) {
				t.Errorf("%d orphans are not reaped", len(childrenOf(t, redlock, true)))
			}
			must(t, go1.Close())
			if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 1 { // of read
				t.Errorf("status %d", cmd.ProcessState.ExitCode())
			}
		})
	}
}

func TestHazard123TheCommandHasAllDescriptorsOfItsCaller(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	var files []*os.File
	for i := range 6 {
		f, err := os.Create(filepath.Join(t.TempDir(), strconv.Itoa(i+3)))
		must(t, err)
		t.Cleanup(func() { f.Close() })
		files = append(files, f)
	}
	args := runLine(t, master, "for fd in 3 4 5 6 7 8; do eval \"echo written to $fd >&$fd\"; done")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.ExtraFiles = files
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for i, f := range files {
		if got, want := readFile(t, f.Name()), "written to "+strconv.Itoa(i+3)+"\n"; got != want {
			t.Errorf("descriptor %d: %q", i+3, got)
		}
	}
	own := func(args ...string) int { // descriptors of a command
		t.Helper()
		out, err := exec.Command(args[0], args[1:]...).Output()
		must(t, err)
		return strings.Count(string(out), "\n")
	}
	args = runLine(t, master, "ls /proc/self/fd")
	args[slices.Index(args, "-key")+1] += "2"
	if got, want := own(args...), own("sh", "-c", "ls /proc/self/fd"); got != want {
		t.Errorf("a command has %d descriptors, want %d as without redlock", got, want)
	}
}

func TestHazard123SocketsOfAServiceManagerAreTheCommands(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	args := runLine(t, master, `[ "$LISTEN_PID" = $$ ] && [ "$WATCHDOG_PID" = 1 ]`)
	caller := append([]string{"-c", `LISTEN_FDS=1 LISTEN_PID=$$ WATCHDOG_PID=1 exec "$@"`, "sh"}, args...)
	if out, err := exec.Command("sh", caller...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestHazard124TheTerminalIsAsItWasAfterAKill(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		lost bool
	}{
		"killed": {`stty raw -echo; kill -KILL $$`, false},
		"lost": {
			`trap '' TERM; stty raw -echo; echo works 0 >"$LOG"; while :; do sleep 0.1; done`, true,
		},
		"at its own end, what it has set stays": {`stty -echo`, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			after := filepath.Join(t.TempDir(), "after")
			args := runLine(t, s.master, c.line)
			p := s.at("sh",
				append([]string{
					"-c", `export LOG="$1" AFTER="$2"; shift 2; "$@"; stty -a >"$AFTER"; read -r end`, "sh", s.log,
					after,
				}, args...)...)
			if c.lost {
				s.eventually("works")
				must(t, s.master.Client().Del(t.Context(), t.Name()).Err())
			}
			if !wait(func() bool { raw, err := os.ReadFile(after); return err == nil && len(raw) > 0 }) {
				t.Fatalf("it does not end: %q", p.said())
			}
			got := readFile(t, after)
			echoes, cooked := !strings.Contains(got, "-echo "), !strings.Contains(got, "-icanon")
			if want := c.line != `stty -echo`; echoes != want || !cooked {
				t.Errorf("echo %v, cooked %v:\n%s", echoes, cooked, got)
			}
		})
	}
}
