package docs_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	if out, err := exec.CommandContext(t.Context(), program, urls(masters)...).CombinedOutput(); err != nil || string(out) != want {
		t.Errorf("%v, and it says %q; want %q", err, out, want)
	}
	if out, err := exec.CommandContext(t.Context(), program).CombinedOutput(); err == nil {
		t.Errorf("without masters it ends well, and says %q", out)
	}
}

// The README's first example dialled and closed in each call. Its Close had no bound, so it waited for the ttl of the key, 10 s.
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
