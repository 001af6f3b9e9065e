package textfile_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/textfile"
)

func TestLabelsMayBeAnyBytes(t *testing.T) {
	var b textfile.Text
	labels := []string{"key", "a\"\\\n\xff", "result", "ok"}
	b.One("held", "Locks.", 1.5, labels...)
	const want = "# HELP held Locks.\n# TYPE held gauge\nheld{key=\"a\\\"\\\\\\n\uFFFD\",result=\"ok\"} 1.5\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	if got := textfile.Value(want, textfile.Prefix("held", labels...)); got != 1.5 {
		t.Errorf("read again: %v", got)
	}
	for _, text := range []string{"", "held 2\n", "held{key=\"b\"} x\n"} {
		if got := textfile.Value(text, textfile.Prefix("held", "key", "b")); got != 0 {
			t.Errorf("%q: %v", text, got)
		}
	}
}
