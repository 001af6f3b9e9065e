package term_test

import (
	"os"
	"testing"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/term"
)

func TestAFileIsNoTerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, _, ok := term.Size(f); ok {
		t.Error("a file was taken for a terminal")
	}
	if _, _, ok := term.Size(nil); ok {
		t.Error("nothing was taken for a terminal")
	}
}

func TestColoursAndUnicodeFollowTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		want term.Style
	}{
		{"nothing set", nil, term.Style{Colour: true}},
		{"a modern desktop", map[string]string{"LANG": "en_GB.UTF-8"}, term.Style{Colour: true, Unicode: true}},
		{"spelt otherwise", map[string]string{"LC_CTYPE": "C.utf8"}, term.Style{Colour: true, Unicode: true}},
		{"LC_ALL wins", map[string]string{"LC_ALL": "C", "LANG": "en_GB.UTF-8"}, term.Style{Colour: true}},
		{"NO_COLOR", map[string]string{"NO_COLOR": "1", "LANG": "C.UTF-8"}, term.Style{Unicode: true}},
		{"a dumb terminal", map[string]string{"TERM": "dumb"}, term.Style{}},
	} {
		for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG", "NO_COLOR", "TERM"} {
			t.Setenv(name, c.env[name])
		}
		if got := term.OwnStyle(); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
