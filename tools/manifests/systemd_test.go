package manifests_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// verify has systemd read the units, with a program that exists in the place of those in /usr/local/bin, and a text of
// one changed.
func verify(t *testing.T, old, changed string) string {
	t.Helper()
	dir := t.TempDir()
	paths, err := filepath.Glob("../../examples/systemd/*.*")
	if err != nil || len(paths) != 3 {
		t.Fatalf("%q, %v", paths, err)
	}
	args := []string{"verify", "--man=no", "--recursive-errors=no"}
	replaced := false
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(strings.Replace(string(raw), old, changed, 1), "/usr/local/bin/redlock", "/bin/sh")
		replaced = replaced || strings.Contains(string(raw), old)
		unit := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, unit)
	}
	if !replaced {
		t.Errorf("no unit contains %q", old)
	}
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", args...).CombinedOutput()
	if err != nil {
		return err.Error() + ": " + string(out)
	}
	return string(out)
}

func TestSystemdReadsTheUnits(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skipf("SKIPPED, NOTHING WAS TESTED: %v", err)
	}
	if said := verify(t, "", ""); said != "" {
		t.Error(said)
	}
	for old, changed := range map[string]string{
		"KillMode=mixed": "KillMode=mix", "OnCalendar=*:0/5": "OnCalendar=sometimes",
		"NotifyAccess=all":       "NotifyAcess=all",
		"/usr/local/bin/redlock": "/no/redlock", "[Timer]": "[Times]",
	} {
		if said := verify(t, old, changed); said == "" {
			t.Errorf("%q instead of %q is accepted", changed, old)
		}
	}
}
