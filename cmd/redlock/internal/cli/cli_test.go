package cli_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/cli"
)

// Every flag is documented, and the manual mentions no flag that does not exist.
func TestTheManualKnowsEveryFlag(t *testing.T) {
	raw, err := os.ReadFile("../../../../docs/operate/command.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	for _, m := range regexp.MustCompile("[ `]-([a-z][a-z-]+)").FindAllStringSubmatch(string(raw), -1) {
		documented[m[1]] = true
	}
	flags := cli.AllFlags()
	if len(flags) < 15 {
		t.Fatalf("only %d flags: %q", len(flags), flags)
	}
	known := make(map[string]bool)
	for _, name := range flags {
		known[name] = true
		if len(name) == 1 { // other programs have options of one letter too, so check one direction only
			documented[name] = strings.Contains(string(raw), "`-"+name+"`") ||
				strings.Contains(string(raw), "`-"+name+" ")
		}
		if !documented[name] {
			t.Errorf("docs/operate/command.md does not mention -%s", name)
		}
	}
	for name := range documented {
		if !known[name] {
			t.Errorf("docs/operate/command.md mentions -%s, and there is no such flag", name)
		}
	}
}

func TestHelpFitsATerminal(t *testing.T) {
	for name, text := range cli.AllHelp() {
		for line := range strings.Lines(text) {
			if strings.TrimSpace(line) == "" {
				continue
			}
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 130 {
				t.Errorf("%s -h has a line of %d characters: %q", name, n, line)
			}
		}
	}
}
