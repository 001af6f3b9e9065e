package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/redlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// command prepares the program, built as a reader builds it, with a recipe and three masters.
func command(t *testing.T) func(recipe string) *exec.Cmd {
	t.Helper()
	program := filepath.Join(t.TempDir(), "recipes")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var urls []string
	for _, server := range redistest.StartN(t, 3) {
		urls = append(urls, server.URL())
	}
	return func(recipe string) *exec.Cmd {
		return exec.CommandContext(t.Context(), program, append([]string{recipe}, urls...)...)
	}
}

func TestEveryRecipeDoesWhatItSays(t *testing.T) {
	recipe, ran := command(t), make(map[string]bool)
	for _, tt := range []struct{ name, want string }{
		{"nightly", "making the report\n"},
		{"nightly", "another machine makes the report\n"},
		{"work", "doing the job\n"},
		{"count", "orders: 12\n"},
		{"ship", "shipped\n"},
		{"read", "reading\n"},
		{"write", "writing\n"},
		{"transfer", "transferring\n"},
	} {
		ran[tt.name] = true
		if out, err := recipe(tt.name).CombinedOutput(); err != nil || string(out) != tt.want {
			t.Errorf("%s: %v, %q; want %q", tt.name, err, out, tt.want)
		}
	}
	for name, want := range map[string]string{"lead": "leading at http://127.0.0.1:", "campaign": "leading: true"} {
		ran[name] = true
		if line := untilInterrupted(t, recipe(name)); !strings.HasPrefix(line, want) {
			t.Errorf("%s: %q, want %q", name, line, want)
		}
	}
	if len(ran) != len(recipes) {
		t.Errorf("ran %d of %d recipes", len(ran), len(recipes))
	}
}

// untilInterrupted interrupts a program after its first line, which it returns.
func untilInterrupted(t *testing.T, program *exec.Cmd) string {
	t.Helper()
	stdout, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	if err := program.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := program.Wait(); err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
	return line
}

func TestARecipeWithoutMastersIsRefused(t *testing.T) {
	if err := run(t.Context(), nil, nightly); err == nil {
		t.Error("nightly without masters: want an error")
	}
}

func TestTheReportIsSkippedWhileAnotherMachineMakesIt(t *testing.T) {
	masters := redlocktest.New(t) // five, in this process: no server is needed
	locker := masters.Locker(t, redlock.Options{})

	masters.Hold("report:nightly") // another machine has the lock
	if err := nightly(t.Context(), locker); err != nil {
		t.Errorf("skipped: %v, want nil", err)
	}
	masters.Release("report:nightly")

	masters.Stop() // no master answers
	if err := nightly(t.Context(), locker); err == nil {
		t.Error("without masters: want an error")
	}
}
