package audit

import (
	"errors"
	"strings"
	"testing"
)

func TestARefusalThatAnOperatorCanMendHasARemedy(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]string{
		"OOM command not allowed when used memory > 'maxmemory'.":           "maxmemory",
		"MISCONF Errors writing to the AOF file: No space left on device":   "again by itself",
		"NOREPLICAS Not enough good replicas to write.":                     "min-replicas-to-write 0",
		"ODDITY which no server of today knows, not even one that is full.": "Look up this error",
	} {
		if got := cure(errors.New(reply)); !strings.Contains(got, want) {
			t.Errorf("%s: %q does not contain %q", reply, got, want)
		}
	}
}
