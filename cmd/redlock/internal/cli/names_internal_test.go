package cli

import (
	"bytes"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestAMistypedCommandGetsASuggestion(t *testing.T) {
	for name, want := range map[string]string{
		"stauts": "status", "ru": "run", "realease": "release", "membres": "members", "lits": "list",
		"dance": "", "x": "", "": "", "constitution": "", "r": "", "docker": "doctor",
	} {
		got := didYouMean(name, "", commandNames())
		if want != "" {
			want = "; did you mean " + want + "?"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	fs, _ := runCommand().flags()
	for text, want := range map[string]string{
		"flag provided but not defined: -kye":                         "-key?",
		"flag provided but not defined: -redis://jobs:hush@127.0.0.1": "",
	} {
		if got := suggestion(fs, errors.New(text)); !strings.HasSuffix(got, want) || (got == "") != (want == "") {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestTheVersionSaysWhichModuleAndRevision(t *testing.T) {
	ours := debug.Module{Path: module, Version: "v1.2.3"}
	stamped := []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123abcd"}, {Key: "vcs.time", Value: "2026-11-23T01:02:03Z"}, {
			Key: "vcs.modified", Value: "true",
		},
	}
	for want, info := range map[string]*debug.BuildInfo{
		"redlock v1.2.3, go": {Main: ours},
		"redlock v1.2.4, go": {
			Main: debug.Module{Path: "example.com/other", Version: "v9.9.9"}, Deps: []*debug.Module{
				{Path: "example.com/x", Version: "v7.0.0"}, {Path: module, Version: "v1.2.4"},
			},
		},
		"redlock v1.2.5, go": {
			Main: debug.Module{
				Path: module, Version: "v1.0.0", Replace: &debug.Module{Path: "../fork", Version: "v1.2.5"},
			},
		},
		"redlock (devel), revision 0123abcd of 2026-11-23 with changes, go": {
			Main: debug.Module{Path: module, Version: "(devel)"}, Settings: stamped,
		},
		"redlock (unknown), go": nil,
	} {
		if got := versionOf(info).String(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// roff must print any text unchanged, and must take no part of it as a request.
func TestManPagesSayWhatHelpSays(t *testing.T) {
	requests := strings.Fields(".TH .SH .PP .TP .RS .RE .nf .fi .B .BR .I")
	for _, c := range commands() {
		var page bytes.Buffer
		writeCommandMan(&page, c)
		for line := range strings.Lines(page.String()) {
			request, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !slices.Contains(requests, request) {
				t.Errorf("redlock-%s.1: %q", c.name, line)
			}
		}
		plain := strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\(dq`, `"`, "\\`", "`", `\e`, `\`, `\(ha`, "^", `\(ti`,
			"~", `\&`, "").Replace(page.String())
		for line := range strings.Lines(c.help) {
			if !strings.Contains(plain, strings.TrimSpace(line)) {
				t.Errorf("redlock-%s.1 lacks %q", c.name, line)
			}
		}
		fs, _ := c.flags()
		for _, name := range flagsOf(fs) {
			if !strings.Contains(plain, `\fB-`+name+`\fR`) {
				t.Errorf("redlock-%s.1 lacks -%s", c.name, name)
			}
		}
	}
	if got := manText(".it's"); got != `\&.it\(aqs` {
		t.Errorf("%q", got)
	}
}

func TestTheUsersConfigurationComesBeforeTheMachines(t *testing.T) {
	for want, c := range map[string]struct{ home, xdg string }{
		"/x /etc": {"/h", "/x"}, "/h/.config /etc": {"/h", "x"}, "/etc": {},
	} {
		t.Setenv("HOME", c.home)
		t.Setenv("XDG_CONFIG_HOME", c.xdg)
		if got := strings.Join(configFolders(), " "); got != want {
			t.Errorf("%q: %q, want %q", c, got, want)
		}
	}
}
