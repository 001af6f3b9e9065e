package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPasswordsAreHiddenWhateverIsInThem(t *testing.T) {
	for text, want := range map[string]string{
		"nothing to hide":                         "nothing to hide",
		"want redis://, rediss:// or unix://":     "want redis://, rediss:// or unix://",
		"m1 is not a rediss:// URL, but":          "m1 is not a rediss:// URL, but",
		"redis://u:pw@h:1: refused":               "redis://***@h:1: refused",
		`open "redis://:p w@h:1": no`:             `open "redis://***@h:1": no`,
		"redis://:p,w@h:1, rediss://:p\"w@h:2 no": "redis://***@h:2 no",
		"redis://:p@w@h:1":                        "redis://***@h:1",
		"redis://:p\nw@h:1":                       "redis://***@h:1",
		"a piece, redis://:p, and no more":        "a piece, redis://*** and no more",
	} {
		if got := hidePasswords(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestControlCharactersAreEscapedInALine(t *testing.T) {
	for text, want := range map[string]string{
		"größe “q” \\n":                     "größe “q” \\n",
		"valid for a\nredlock: all well":    `valid for a\nredlock: all well`,
		"\r\x1b[2Jgone\u2028\u202e":         `\r\x1b[2Jgone\u2028\u202e`,
		"tab\there \xff":                    `tab\there ` + "\ufffd",
		"a blank that does not break\u00a0": `a blank that does not break\u00a0`,
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestHelpFitsIntoATerminal(t *testing.T) {
	for _, c := range commands() {
		var out strings.Builder
		writeCommandHelp(&out, c)
		for line := range strings.Lines(out.String()) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > columns {
				t.Errorf("redlock %s -h has the line %q", c.name, line)
			}
		}
		words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
		if help := words(c.help); words(wrapped(c.help)) != help {
			t.Errorf("redlock %s -h: %q has other words than %q", c.name, wrapped(c.help), help)
		}
	}
}

// Every flag is documented, and the manual mentions no flag that does not exist.
func TestTheManualKnowsEveryFlag(t *testing.T) {
	raw, err := os.ReadFile("../../../../docs/operate/command.md")
	if err != nil {
		t.Fatal(err)
	}
	manual := string(raw)
	known := make(map[string]bool)
	for _, c := range commands() {
		fs, _ := c.flags()
		for _, name := range flagsOf(fs) {
			known[name] = true
			before := "[ `]"
			if len(name) == 1 { // other programs have such options too
				before = "`"
			}
			if !regexp.MustCompile(before + "-" + name + "[^a-z-]").MatchString(manual) {
				t.Errorf("docs/operate/command.md does not mention -%s", name)
			}
		}
	}
	for _, m := range regexp.MustCompile("[ `]-([a-z][a-z-]+)").FindAllStringSubmatch(manual, -1) {
		if !known[m[1]] {
			t.Errorf("docs/operate/command.md mentions -%s, and there is no such flag", m[1])
		}
	}
}
