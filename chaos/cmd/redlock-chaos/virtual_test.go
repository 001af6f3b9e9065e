package main

import (
	"strings"
	"testing"
)

func TestVirtualConvictsABrokenLockAndNoOther(t *testing.T) {
	for subject, want := range map[string]struct {
		status int
		says   []string
	}{
		"plain-del": {1, []string{"VIOLATION", "in a smaller schedule", "del key-0"}},
		"textbook":  {0, []string{"pass: no promise was broken"}},
	} {
		status, out, stderr := execute(t.Context(), t, "virtual", "-subject", subject, "-schedules", "60")
		if status != want.status {
			t.Errorf("%s: status %d, want %d:\n%s%s", subject, status, want.status, out, stderr)
		}
		for _, says := range want.says {
			if !strings.Contains(out, says) {
				t.Errorf("%s: it does not say %q:\n%s", subject, says, out)
			}
		}
	}
}
