package mutant

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// tests judges by tests.
func (c *Checker) tests(ctx context.Context, m Mutant, t Tests, dir string) (v Verdict, note string, took time.Duration,
	err error,
) {
	if err := c.testsPass(ctx, t); err != nil {
		return Unknown, "", 0, err
	}
	began := time.Now()
	v, note, err = c.CheckTests(ctx, m, t, dir)
	return v, note, time.Since(began), err
}

// testsPass runs the tests with the unchanged library.
func (c *Checker) testsPass(ctx context.Context, t Tests) error {
	_, err := c.onceWhole("tests "+t.String(), func() (string, error) {
		program, err := c.onceWhole("the tests of "+t.Package, func() (string, error) {
			return Mutant{}.BuildTest(ctx, filepath.Join(c.Dir, "tests of "+strings.ReplaceAll(t.Package, "/", " ")),
				path.Join(Module, t.Package))
		})
		if err != nil {
			return "", err
		}
		status, out, err := t.run(ctx, program)
		if err != nil {
			return "", err
		}
		for _, name := range t.Names {
			if said := outcome(out, name); said != "PASS" || status != 0 {
				return "",
					fmt.Errorf("without the mutant %s does not pass (%s, status %d):\n%s", name, cmp.Or(said, "no end"),
						status, tail(out))
			}
		}
		return "", nil
	})
	return err
}

// CheckTests builds the tests with the mutant and judges by their result. The note is from their output.
func (c *Checker) CheckTests(ctx context.Context, m Mutant, t Tests, dir string) (v Verdict, note string, _ error) {
	program, err := m.BuildTest(ctx, dir, path.Join(Module, t.Package))
	if err != nil {
		return Unknown, "", err
	}
	defer func() { _ = os.RemoveAll(dir) }() // dozens of programs; any rest is removed with Dir
	status, out, err := t.run(ctx, program)
	if err != nil {
		return Unknown, "", err
	}
	v, note = t.judge(status, out)
	return v, note, nil
}

// testTimeout ends tests that hang.
const testTimeout = 2 * time.Minute

// run runs the tests of a built program in their package's directory.
func (t Tests) run(ctx context.Context, program string) (status int, out string, err error) {
	root, err := Root()
	if err != nil {
		return 0, "", err
	}
	var text bytes.Buffer
	args := []string{
		"-test.v", "-test.count=1", "-test.timeout=" + cmp.Or(t.Within, testTimeout).String(), "-test.run",
		"^(" + strings.Join(t.Names, "|") + ")$",
	}
	status, err = Execute(ctx, filepath.Join(root, filepath.FromSlash(t.Package)), program, args, &text, &text)
	return status, text.String(), err
}

// testsFailed is the status of a test program with failed tests. After a panic or a timeout the status differs.
const testsFailed = 1

// judge returns the verdict on a mutant by the result of its tests.
func (t Tests) judge(status int, out string) (v Verdict, note string) {
	if status != 0 && status != testsFailed {
		if t.Crash != "" && strings.Contains(out, t.Crash) {
			return Caught, t.Crash
		}
		return Unknown,
			fmt.Sprintf("the tests have ended with status %d, %s, after %q", status, crashed(out), complaint(out))
	}
	for _, name := range t.Names {
		switch said := outcome(out, name); said {
		case "FAIL":
		case "PASS":
			return Survived, name + " passes"
		default:
			return Unknown,
				fmt.Sprintf("%s has not run to its end (%s):\n%s", name, cmp.Or(said, "nothing is said of it"),
					tail(out))
		}
	}
	if status != testsFailed {
		return Unknown, fmt.Sprintf("the tests have failed with status %d", status)
	}
	return Caught, complaint(out)
}

// outcome returns the result of a test in verbose output: PASS, FAIL or SKIP; empty if there is none.
func outcome(out, name string) string {
	m := regexp.MustCompile(`(?m)^ *--- (\w+): ` + regexp.QuoteMeta(name) + ` \(`).FindStringSubmatch(out)
	if m == nil {
		return ""
	}
	return m[1]
}

// complaint is the first message of a failing test.
func complaint(out string) string {
	return strings.TrimSpace(regexp.MustCompile(`(?m)^ +\w+_test\.go:\d+: .*$`).FindString(out))
}

// crashed is why a test program has ended by itself.
func crashed(out string) string {
	return cmp.Or(regexp.MustCompile(`(?m)^(panic|fatal error): .*$`).FindString(out), tail(out))
}

// tail is the end of a program's output.
func tail(out string) string {
	const most = 2000
	return out[max(0, len(out)-most):]
}
