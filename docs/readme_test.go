package docs_test

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/localport"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// readmesProgram builds the program that README.md shows, without any change.
func readmesProgram(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	shown := blocks(read(t, "../README.md"), "go")
	if len(shown) == 0 {
		t.Fatal("README.md shows no program")
	}
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "main")
	if err := redistest.WriteProgram(source, []byte(shown[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	goCommand(t, "build", "-o", program, source)
	return program
}

func TestTheReadmesProgramRunsAsItIsPrinted(t *testing.T) {
	t.Parallel()
	const want = "nobody else is working on order 42\n"
	program, masters := readmesProgram(t), redistest.StartN(t, 3)
	if out, err := exec.CommandContext(t.Context(), program, urls(masters)...).CombinedOutput(); err != nil ||
		string(out) != want {
		t.Errorf("%v, and it says %q; want %q", err, out, want)
	}
	if out, err := exec.CommandContext(t.Context(), program).CombinedOutput(); err == nil {
		t.Errorf("without masters it ends well, and says %q", out)
	}
}

// commandOf is the command in the README that begins so.
func commandOf(t *testing.T, beginning string) string {
	t.Helper()
	for line := range strings.Lines(read(t, "../README.md")) {
		if strings.HasPrefix(line, beginning) {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("README.md has no command that begins with %q", beginning)
	return ""
}

// onPorts has a command of the README use these ports, since those that it names may be in use.
func onPorts(command string, ports []*localport.Port) string {
	for i, p := range ports {
		command = strings.ReplaceAll(command, fmt.Sprint(6401+i), fmt.Sprint(p.Number()))
	}
	return command
}

func TestTheReadmesServersAndProgramWorkTogether(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("redis-server"); err != nil {
		redistest.NothingTested(t, redistest.ErrNoServer)
	}
	var ports []*localport.Port
	for range 3 {
		p, err := localport.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { shutDown(t, p.Addr()); _ = p.Release() })
		ports = append(ports, p)
	}
	start := exec.CommandContext(t.Context(), "sh", "-c", onPorts(commandOf(t, "for port in "), ports))
	start.Dir = t.TempDir()
	if out, err := start.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, p := range ports {
		awaitListener(t, p.Addr())
	}
	arguments := strings.Fields(onPorts(commandOf(t, "go run . "), ports))[3:]
	out, err := exec.CommandContext(t.Context(), readmesProgram(t), arguments...).CombinedOutput()
	if err != nil || string(out) != "nobody else is working on order 42\n" {
		t.Errorf("%v, and it says %q", err, out)
	}
}

func awaitListener(t *testing.T, address string) {
	t.Helper()
	for t.Context().Err() == nil {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return
		}
		runtime.Gosched()
	}
}

// shutDown ends a server that runs as a daemon.
func shutDown(t *testing.T, address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Errorf("a server of the README is gone: %v", err)
		return
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("SHUTDOWN NOSAVE\r\n")); err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, conn) // until the server has closed it
}

// The README's first example dialled and closed in each call. Its Close had no bound, so it waited for the ttl of the
// key, 10 s.
func TestHazard111TheReadmesProgramDoesNotWaitForAMasterThatHangs(t *testing.T) {
	t.Parallel()
	program, masters := readmesProgram(t), redistest.StartN(t, 3)
	if err := masters[1].Pause(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	out, err := exec.CommandContext(t.Context(), program, urls(masters)...).CombinedOutput()
	took := time.Since(began)
	t.Logf("it took %v and said:\n%s", took, out)
	if err != nil || !strings.HasPrefix(string(out), "nobody else is working on order 42\n") {
		t.Errorf("%v, and it says %q", err, out)
	}
	if took >= 10*time.Second {
		t.Errorf("one order took %v: the program waited until the key on the master that hangs had lapsed", took)
	}
}

func urls(masters []*redistest.Server) []string {
	list := make([]string, len(masters))
	for i, m := range masters {
		list[i] = m.URL()
	}
	return list
}
