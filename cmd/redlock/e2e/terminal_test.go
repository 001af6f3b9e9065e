//go:build unix

package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// screen is a pseudo-terminal and its user.
type screen struct {
	*scene
	cmd *exec.Cmd
	tty *os.File
	mu  sync.Mutex
	out strings.Builder
}

const (
	ctrlC = "\x03"
	ctrlS = "\x13"
	ctrlZ = "\x1a"
)

// at starts a program as the leader of a terminal's session, as sshd does.
func (s *scene) at(name string, args ...string) *screen {
	s.t.Helper()
	p := &screen{scene: s, cmd: exec.Command(name, args...)}
	p.cmd.Env = append(os.Environ(), "PS1=ready> ", "TERM=dumb", "HISTFILE=")
	var err error
	p.tty, err = pty.Start(p.cmd)
	must(s.t, err)
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 4096)
		for {
			n, err := p.tty.Read(buffer)
			p.mu.Lock()
			p.out.Write(buffer[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	s.t.Cleanup(func() {
		s.killWriters()
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		_ = p.tty.Close()
		<-read
	})
	return p
}

// shell starts a shell with job control.
func (s *scene) shell() *screen {
	s.t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		redistest.NothingTested(s.t, "there is no bash")
	}
	p := s.at(bash, "--norc", "--noprofile", "-i")
	p.expect("ready> ")
	return p
}

func (p *screen) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func (p *screen) expect(text string) {
	p.t.Helper()
	if !wait(func() bool { return strings.Contains(p.said(), text) }) {
		p.t.Fatalf("no %q on the screen: %q", text, p.said())
	}
}

// pressUntil presses a key, and again after each second without the text. On a busy machine two interrupts may arrive
// as one, because the kernel keeps only one for a process that has not run since.
func (p *screen) pressUntil(key, text string) {
	p.t.Helper()
	var pressed time.Time
	if !wait(func() bool {
		if strings.Contains(p.said(), text) {
			return true
		}
		if time.Since(pressed) > time.Second {
			p.write(key)
			pressed = time.Now()
		}
		return false
	}) {
		p.t.Fatalf("no %q on the screen: %q", text, p.said())
	}
}

func (p *screen) write(text string) {
	p.t.Helper()
	_, err := p.tty.WriteString(text)
	must(p.t, err)
}

// line returns a call of redlock, for a shell.
func (s *scene) line(guarded ...string) string {
	return mustFind(s.t, "redlock") + " " + strings.Join(s.args(guarded...), " ")
}

func TestHazard69AStoppedTerminalDoesNotDelayTheEndOfTheCommand(t *testing.T) {
	s := newScene(t)
	p := s.at("redlock", s.args("-stubborn")...)
	s.eventually("works ")
	p.write(ctrlS)
	s.link.Close()
	s.endsWithItsLock()
}

func TestHazard70CtrlZStopsTheWholeJob(t *testing.T) {
	t.Parallel()
	for name, redirected := range map[string]string{
		"stdin is the terminal": "", "stdin is no terminal": " </dev/null", "stdout is no terminal": " | cat",
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			p := s.shell()
			p.write(s.line("-nested") + redirected + "; echo ended\n")
			s.until("there is a second process", func() bool { return len(s.pids()) == 2 })
			p.write(ctrlZ)
			s.until("both are stopped", func() bool { return isStopped(s.pids()[0]) && isStopped(s.pids()[1]) })
			p.expect("Stopped")
			s.rival(killSlack)
			p.write("fg\n")
			s.nobodyWorksAfterTheRival()
		})
	}
}

func TestHazard70CtrlZStopsARedlockUnderARedlock(t *testing.T) {
	s := newScene(t)
	p := s.shell()
	p.write("PATH=" + os.Getenv("PATH") + " redlock " + strings.Join(s.nested(nil), " ") + "\n")
	s.eventually("works ")
	p.write(ctrlZ)
	p.expect("Stopped")
	s.until("the command is stopped", func() bool { return isStopped(s.pids()[0]) })
	p.write("fg\n")
	s.grows()
	p.write(ctrlZ)
	s.until("it is stopped for the second time", func() bool { return strings.Count(p.said(), "Stopped") == 2 })
	p.write("fg\n")
	s.grows()
	p.write(ctrlC)
	p.write("echo status $?\n")
	p.expect("status 130")
}

func TestHazard70CtrlZWithoutAParentToContinueDoesNotStopTheJob(t *testing.T) {
	s := newScene(t)
	p := s.at("redlock", s.args()...) // the leader of its session, as under ssh -t
	s.eventually("works ")
	p.write(ctrlZ)
	p.expect("^Z")
	s.grows()
	s.grows()
	p.write(ctrlC)
	s.exits(p.cmd, -int(syscall.SIGINT), 130)
}

func TestHazard70ACommandMayAskAtTheTerminalBehindAPipe(t *testing.T) {
	s := newScene(t)
	p := s.shell()
	p.write("true | " + s.line("-tty") + "\n")
	s.eventually("asks ")
	p.write("the answer\n")
	s.eventually("read the answer")
	s.eventually("works ")
	p.write(ctrlC)
	s.until("Ctrl-C has ended the command", func() bool { return ended(s.pids()[0]) })
}

func TestHazard75CtrlCStopsTheScriptAroundIt(t *testing.T) {
	for _, shell := range []string{"sh", "bash"} {
		for name, redirected := range map[string]string{"terminal": "", "no terminal": " </dev/null"} {
			t.Run(shell+" "+name, func(t *testing.T) {
				s := newScene(t)
				next := filepath.Join(t.TempDir(), "next")
				script := filepath.Join(t.TempDir(), "script")
				must(t, os.WriteFile(script, []byte(s.line()+redirected+"\ntouch "+strconv.Quote(next)+"\n"), 0o600))
				p := s.at(mustFind(t, shell), script)
				s.eventually("works ")
				p.write(ctrlC)
				s.exits(p.cmd, -int(syscall.SIGINT), 130) // whatever the shell makes of it
				if _, err := os.Stat(next); err == nil {
					t.Error("the script went on")
				}
			})
		}
	}
}

func TestRepeatedCtrlCEndsACommandThatIgnoresIt(t *testing.T) {
	s := newScene(t)
	p := s.shell()
	p.write("true | " + s.line("-stubborn") + "; echo status ${PIPESTATUS[1]}\n")
	s.eventually("works ")
	p.write(ctrlC)
	s.grows()
	p.pressUntil(ctrlC, "redlock: Ctrl-C again: asked the command to end (SIGTERM)")
	p.pressUntil(ctrlC, "redlock: Ctrl-C once more: killed the command")
	s.until("the command has ended", func() bool { return ended(s.pids()[0]) })
	p.write("echo status $?\n")
	p.expect("status 130")
}

// The command has the terminal to itself, so it decides how many Ctrl-Cs it ignores. Ctrl-Z and kill still end it.
func TestCtrlCsInTheForegroundGoToTheCommandAlone(t *testing.T) {
	s := newScene(t)
	p := s.shell()
	p.write(s.line("-deaf") + "\n")
	s.eventually("works ")
	for range 4 {
		p.write(ctrlC)
		s.grows()
	}
	if strings.Contains(p.said(), "redlock:") {
		t.Errorf("redlock says %q", p.said())
	}
	p.write(ctrlZ)
	p.expect("Stopped")
	p.write("kill %1\n")
	s.until("the command has ended", func() bool { return ended(s.pids()[0]) })
}

func TestInterruptsFromAProgramDoNotEscalate(t *testing.T) {
	s := newScene(t)
	cmd := s.start(nil, "-deaf")
	for range 4 {
		must(t, cmd.Process.Signal(syscall.SIGINT))
		s.grows()
	}
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	s.exits(cmd, -int(syscall.SIGTERM))
}

func TestATerminalSeesHowFarABenchmarkIs(t *testing.T) {
	s := newScene(t)
	out := filepath.Join(t.TempDir(), "out")
	p := s.at("sh", "-c", `redlock bench -masters "$0" -rounds 2 -window 300ms >"$1"`, s.master.URL(), out)
	for _, want := range []string{"warming up", "\r\x1b[Kredlock: round 1 of 2, ", " operations, 2s left"} {
		p.expect(want)
	}
	s.exits(p.cmd, 0)
	s.until("the line is cleared", func() bool { return strings.HasSuffix(p.said(), "\r\x1b[K") })
	if text := readFile(t, out); !strings.Contains(text, "handoff") || strings.Contains(text, "\x1b") {
		t.Errorf("printed was %q", text)
	}
}
