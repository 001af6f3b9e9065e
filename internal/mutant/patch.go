package mutant

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
)

//go:embed patches/*.patch
var patches embed.FS

var errUnknown = errors.New("no line of a patch's head")

// All returns the mutants, in the order of their names.
func All() (all []Mutant) {
	files, _ := fs.Glob(patches, "patches/*.patch") // the pattern is valid
	for _, file := range files {
		text, err := patches.ReadFile(file)
		m, wrong := parse(string(text))
		if err = cmp.Or(err, wrong); err != nil {
			m.unread = fmt.Sprintf("mutant: %s: %v", file, err)
		}
		m.Name = strings.TrimSuffix(path.Base(file), ".patch")
		all = append(all, m)
	}
	return all
}

// parse reads a patch: a line that says what it breaks, lines with the checks that must notice it (see [Mutant]), and
// the change as git prints it.
func parse(text string) (m Mutant, _ error) {
	head, diff, found := strings.Cut(text, "\n\n--- a/")
	if !found {
		return m, errors.New("there is no change")
	}
	breaks, checks, _ := strings.Cut(head, "\n\n")
	m.Breaks = breaks
	for line := range strings.Lines(checks) {
		if err := m.check(strings.TrimSpace(line)); err != nil {
			return m, fmt.Errorf("%q: %w", line, err)
		}
	}
	for file := range strings.SplitSeq(strings.TrimSuffix(diff, "\n"), "\n--- a/") {
		name, hunks, _ := strings.Cut(file, "\n")
		for _, hunk := range strings.Split(hunks, "\n@@ ")[1:] {
			m.Edits = append(m.Edits, edit(name, hunk))
		}
	}
	return m, nil
}

// check adds what one line says of the checks.
func (m *Mutant) check(line string) (err error) {
	what, rest, _ := strings.Cut(line, ": ")
	words := strings.Fields(rest)
	switch {
	case what == "sample":
		m.Sample = true
	case what == "equivalent":
		m.Equivalent = rest
	case what == "sim" && len(words)%2 == 0 && len(words) > 0:
		s := Sim{Profile: words[0], Oracle: words[1]}
		for i := 2; i < len(words); i += 2 {
			switch words[i] {
			case "from":
				s.First, err = strconv.ParseUint(words[i+1], 10, 64)
			case "as":
				s.Name = words[i+1]
			default:
				err = errUnknown
			}
		}
		m.Sim = append(m.Sim, s)
	case what == "chaos" && len(words) == 3:
		c := Chaos{Scenario: words[0], Oracle: words[1]}
		c.For, err = time.ParseDuration(words[2])
		m.Chaos = append(m.Chaos, c)
	case what == "tests" && len(words) > 1:
		m.Tests = append(m.Tests, Tests{Package: words[0], Names: words[1:]})
	case what == "crash" && len(m.Tests) > 0:
		m.Tests[len(m.Tests)-1].Crash = rest
	case what == "within" && len(m.Tests) > 0:
		m.Tests[len(m.Tests)-1].Within, err = time.ParseDuration(rest)
	default:
		err = errUnknown
	}
	return err
}

// edit is one hunk of a diff. Its line numbers do not count: the file must have its lines exactly once.
func edit(file, hunk string) Edit {
	_, body, _ := strings.Cut(hunk, "\n")
	e := Edit{File: file}
	for line := range strings.SplitSeq(body, "\n") {
		mark, text := " ", "" // of an empty line, which an editor has trimmed
		if line != "" {
			mark, text = line[:1], line[1:]
		}
		if mark != "+" {
			e.Old += text + "\n"
		}
		if mark != "-" {
			e.New += text + "\n"
		}
	}
	return e
}
