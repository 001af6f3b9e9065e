//go:build unix

package process_test

import (
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/internal/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shell runs a script and returns when the script says that it is ready.
func shell(t *testing.T, script string) *process.Process {
	t.Helper()
	cmd := exec.Command("sh", "-c", script+"; echo ready; while :; do sleep 1; done")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	if _, err := io.ReadFull(out, make([]byte, len("ready"))); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestInterruptEndsAProgramThatHandlesIt(t *testing.T) {
	p := shell(t, "trap 'exit 3' TERM")
	if err := p.Interrupt(syscall.SIGTERM, time.Minute); err != nil {
		t.Fatal(err)
	}
	if p.Alive() || p.State().ExitCode() != 3 {
		t.Errorf("alive %t, %v; want its own exit status 3", p.Alive(), p.State())
	}
	if err := p.Interrupt(syscall.SIGTERM, time.Minute); err != nil {
		t.Errorf("for an ended process: %v", err)
	}
}

func TestInterruptEndsAStoppedProgram(t *testing.T) {
	p := shell(t, "trap 'exit 3' TERM")
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := p.Interrupt(syscall.SIGTERM, time.Minute); err != nil || p.State().ExitCode() != 3 {
		t.Errorf("%v, %v; want its own exit status 3", err, p.State())
	}
}

func TestInterruptKillsAProgramThatIgnoresIt(t *testing.T) {
	p := shell(t, "trap '' TERM")
	if err := p.Interrupt(syscall.SIGTERM, 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if p.Alive() || !strings.Contains(p.State().String(), "killed") {
		t.Errorf("alive %t, %v", p.Alive(), p.State())
	}
}

func TestStartingAMissingProgramIsAnError(t *testing.T) {
	if _, err := process.Start(exec.Command("/nowhere/at/all")); err == nil {
		t.Error("no error")
	}
}
