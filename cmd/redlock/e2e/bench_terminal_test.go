//go:build unix

package e2e_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

func TestATerminalSeesHowFarABenchmarkIs(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	cmd := exec.Command(mustFind(t, "redlock"), "bench", "-masters", server.URL(), "-rounds", "2", "-window", "300ms")
	var out strings.Builder
	cmd.Stdout = &out
	master, slave, err := pty.Open()
	must(t, err)
	defer master.Close()
	cmd.Stderr = slave
	must(t, cmd.Start())
	slave.Close()
	var said strings.Builder
	buffer := make([]byte, 4096)
	for err == nil {
		var n int
		n, err = master.Read(buffer)
		said.Write(buffer[:n])
	}
	must(t, cmd.Wait())
	for _, want := range []string{"\r\x1b[Kredlock: round 1 of 2, ", " operations, 2s left", "warming up"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("no %q: %q", want, said.String())
		}
	}
	if !strings.HasSuffix(said.String(), "\r\x1b[K") {
		t.Errorf("the line was left: %q", said.String())
	}
	if !strings.Contains(out.String(), "handoff") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("printed was %q", out.String())
	}
}
