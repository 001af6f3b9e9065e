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
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = locktest.Must

// shell runs a script and returns when the script says that it is ready.
func shell(t *testing.T, script string) *process.Process {
	t.Helper()
	cmd := exec.Command("sh", "-c", script+"; echo ready; while :; do sleep 1; done")
	out, err := cmd.StdoutPipe()
	must(t, err)
	p, err := process.Start(cmd)
	must(t, err)
	t.Cleanup(func() {
		must(t, p.Kill())
	})
	_, err = io.ReadFull(out, make([]byte, len("ready")))
	must(t, err)
	return p
}

func TestInterruptEndsAProgramThatHandlesIt(t *testing.T) {
	p := shell(t, "trap 'exit 3' TERM")
	must(t, p.Interrupt(syscall.SIGTERM, time.Minute))
	if p.Alive() || p.State().ExitCode() != 3 {
		t.Errorf("alive %t, %v; want its own exit status 3", p.Alive(), p.State())
	}
	if err := p.Interrupt(syscall.SIGTERM, time.Minute); err != nil {
		t.Errorf("for an ended process: %v", err)
	}
}

func TestInterruptEndsAStoppedProgram(t *testing.T) {
	p := shell(t, "trap 'exit 3' TERM")
	must(t, p.Pause())
	if err := p.Interrupt(syscall.SIGTERM, time.Minute); err != nil || p.State().ExitCode() != 3 {
		t.Errorf("%v, %v; want its own exit status 3", err, p.State())
	}
}

func TestInterruptKillsAProgramThatIgnoresIt(t *testing.T) {
	p := shell(t, "trap '' TERM")
	must(t, p.Interrupt(syscall.SIGTERM, 50*time.Millisecond))
	if p.Alive() || !strings.Contains(p.State().String(), "killed") {
		t.Errorf("alive %t, %v", p.Alive(), p.State())
	}
}

func TestStartingAMissingProgramIsAnError(t *testing.T) {
	if _, err := process.Start(exec.Command("/nowhere/at/all")); err == nil {
		t.Error("no error")
	}
}
