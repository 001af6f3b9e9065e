package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// tree is a copy of the files that git tracks. A release is prepared in it.
type tree struct {
	dir     string
	modules []mod // each after the modules that it requires
}

// mod is one module of the tree.
type mod struct {
	dir      string // below the tree; "." is the root
	path     string
	requires []string // paths of other modules of the tree
}

// unpublished are modules that only this repository uses.
var unpublished = []string{"examples", "cmd/redlock/e2e"}

// copyTree copies the tracked files of the repository at root, as they are in its work tree.
func copyTree(root, to string) (*tree, error) {
	files, err := gitOutput(root, "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(strings.Trim(files, "\x00"), "\x00") {
		raw, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			return nil, err
		}
	}
	t := &tree{dir: to}
	return t, t.findModules()
}

// findModules reads the modules in go.work and orders them: each after the modules that it requires.
func (t *tree) findModules() error {
	raw, err := os.ReadFile(filepath.Join(t.dir, "go.work"))
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork("go.work", raw, nil)
	if err != nil {
		return err
	}
	var found []mod
	for _, use := range work.Use {
		f, err := t.goMod(filepath.Clean(use.Path))
		if err != nil {
			return err
		}
		if len(f.Replace) > 0 {
			return fmt.Errorf("%s has a replace directive, which nobody who imports it would see", f.Syntax.Name)
		}
		found = append(found, mod{dir: filepath.Clean(use.Path), path: f.Module.Mod.Path})
	}
	ours := func(path string) bool { return slices.ContainsFunc(found, func(m mod) bool { return m.path == path }) }
	for i := range found {
		f, err := t.goMod(found[i].dir)
		if err != nil {
			return err
		}
		for _, r := range f.Require {
			if ours(r.Mod.Path) {
				found[i].requires = append(found[i].requires, r.Mod.Path)
			}
		}
	}
	return t.sort(found)
}

// sort puts each module after the modules that it requires.
func (t *tree) sort(found []mod) error {
	done := func(path string) bool {
		return slices.ContainsFunc(t.modules, func(m mod) bool { return m.path == path })
	}
	for len(t.modules) < len(found) {
		before := len(t.modules)
		for _, m := range found {
			if !done(m.path) && !slices.ContainsFunc(m.requires, func(path string) bool { return !done(path) }) {
				t.modules = append(t.modules, m)
			}
		}
		if len(t.modules) == before {
			return fmt.Errorf("modules require each other in a circle")
		}
	}
	return nil
}

func (t *tree) goMod(dir string) (*modfile.File, error) {
	name := filepath.Join(dir, "go.mod")
	raw, err := os.ReadFile(filepath.Join(t.dir, name))
	if err != nil {
		return nil, err
	}
	return modfile.Parse(name, raw, nil)
}

// note writes the version into the changelog.
func (t *tree) note(version, date string) error {
	return t.edit("CHANGELOG.md", func(old string) (string, error) { return released(old, version, date) })
}

// prepare writes the version everywhere else, and returns the names of the changed files.
func (t *tree) prepare(version string) (changed []string, err error) {
	sums := make(map[string]string) // lines of go.sum by module path
	for _, m := range t.modules {
		if len(m.requires) > 0 {
			if err := t.require(m, version, sums); err != nil {
				return nil, err
			}
			changed = append(changed, filepath.Join(m.dir, "go.mod"), filepath.Join(m.dir, "go.sum"))
		}
		if sums[m.path], err = t.sum(m, version); err != nil {
			return nil, err
		}
	}
	err = t.edit("go.work", func(old string) (string, error) {
		for _, m := range t.modules {
			old = regexp.MustCompile(`(?m)^(\s*`+regexp.QuoteMeta(m.path)+`) v\S+ =>`).
				ReplaceAllString(old, "$1 "+version+" =>")
		}
		return old, nil
	})
	return append(changed, "go.work"), err
}

// require makes m require the others at the version, and writes their hashes.
func (t *tree) require(m mod, version string, sums map[string]string) error {
	f, err := t.goMod(m.dir)
	if err != nil {
		return err
	}
	for _, path := range m.requires {
		if err := f.AddRequire(path, version); err != nil {
			return err
		}
	}
	raw, err := f.Format()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(t.dir, m.dir, "go.mod"), raw, 0o644); err != nil {
		return err
	}
	return t.edit(filepath.Join(m.dir, "go.sum"), func(old string) (string, error) {
		lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(old), "\n"), func(line string) bool {
			path, _, _ := strings.Cut(line, " ")
			return slices.Contains(m.requires, path)
		})
		for _, path := range m.requires {
			lines = append(lines, strings.Split(sums[path], "\n")...)
		}
		slices.Sort(lines)
		return strings.Join(slices.Compact(lines), "\n") + "\n", nil
	})
}

// sum returns the lines for m in the go.sum of a module that requires m.
func (t *tree) sum(m mod, version string) (string, error) {
	file, err := os.CreateTemp("", "redlock-release-*.zip")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := t.zip(file, m, version); err != nil {
		return "", err
	}
	whole, err := dirhash.HashZip(file.Name(), dirhash.Hash1)
	if err != nil {
		return "", err
	}
	goMod, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return os.Open(filepath.Join(t.dir, m.dir, "go.mod"))
	})
	return fmt.Sprintf("%s %s %s\n%s %s/go.mod %s", m.path, version, whole, m.path, version, goMod), err
}

// zip writes the module as the module proxy would serve it.
func (t *tree) zip(to io.Writer, m mod, version string) error {
	return zip.CreateFromDir(to, module.Version{Path: m.path, Version: version}, filepath.Join(t.dir, m.dir))
}

// tags are the tags of a release.
func (t *tree) tags(version string) []string {
	var tags []string
	for _, m := range t.modules {
		switch {
		case m.dir == ".":
			tags = append(tags, version)
		case !slices.Contains(unpublished, m.dir):
			tags = append(tags, m.dir+"/"+version)
		}
	}
	return tags
}

// released moves the unreleased changes of a changelog under the new version.
func released(changelog, version, date string) (string, error) {
	const unreleased = "## [Unreleased]\n"
	before, after, found := strings.Cut(changelog, unreleased)
	if !found {
		return "", fmt.Errorf("CHANGELOG.md has no section [Unreleased]")
	}
	section, _, _ := strings.Cut(after, "\n## ")
	if strings.TrimSpace(section) == "" {
		return "", fmt.Errorf("CHANGELOG.md has nothing under [Unreleased]")
	}
	return before + unreleased + "\n## [" + strings.TrimPrefix(version, "v") + "] - " + date + "\n" + after, nil
}

func (t *tree) edit(name string, f func(string) (string, error)) error {
	path := filepath.Join(t.dir, name)
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := f(string(raw))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

func git(dir string, args ...string) error {
	_, err := gitOutput(dir, args...)
	return err
}

func gitOutput(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}
