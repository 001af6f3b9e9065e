package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

func TestTheReadmesFirstCommand(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "run", "./cmd/redlock", "demo", "-json")
	cmd.Dir = "../../.."
	cmd.Env = append(os.Environ(), "REDLOCK_MASTERS=", "REDLOCK_CONFIG=")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var report struct {
		OK       bool
		Overlaps int
		Seconds  float64
	}
	must(t, json.Unmarshal(out, &report))
	if !report.OK || report.Overlaps != 0 || report.Seconds > 40 {
		t.Errorf("%+v; want OK, no overlaps, within 40 s", report)
	}
}
