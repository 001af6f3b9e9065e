// Package testnames finds the tests of this tree by name, for tables and pages that name them.
package testnames

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

var declared = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// Under returns the names of all tests in files under dir, in any module.
func Under(tb testing.TB, dir string) map[string]bool {
	tb.Helper()
	names, tree := make(map[string]bool), os.DirFS(dir)
	err := fs.WalkDir(tree, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := fs.ReadFile(tree, path)
		for _, m := range declared.FindAllStringSubmatch(string(raw), -1) {
			names[m[1]] = true
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return names
}
