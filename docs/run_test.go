package docs_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// goCommand runs the go tool in the repository's root, as the documents tell their readers to.
func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = ".."
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

func TestTheReadmesFirstCommand(t *testing.T) {
	t.Setenv("REDLOCK_MASTERS", "")
	t.Setenv("REDLOCK_CONFIG", "")
	var report struct {
		OK       bool
		Overlaps int
		Seconds  float64
	}
	if err := json.Unmarshal([]byte(goCommand(t, "run", "./cmd/redlock", "demo", "-json")), &report); err != nil {
		t.Fatal(err)
	}
	if !report.OK || report.Overlaps != 0 || report.Seconds > 20 {
		t.Errorf("%+v; want OK, no overlaps, within 20 s", report)
	}
}

func TestTheCommandExplainsItself(t *testing.T) {
	if out := goCommand(t, "run", "./cmd/redlock", "-h"); !strings.Contains(out, "usage: redlock COMMAND") {
		t.Errorf("redlock -h says %q", out)
	}
}
