// Command release makes a release of all modules of the repository, or shows its changes:
//
//	.ci/release v0.1.0                 check, and show what would change
//	.ci/release -write v0.1.0          change it, commit it and make the tags; nothing is pushed
//	.ci/release -proxy DIR v0.1.0      as the first, and leave a module proxy of the release in DIR
//
// The modules require each other, so the order matters: a go.sum holds the hash of each required module, and that hash
// covers the module's own go.sum. All modules get the same version. Each module has its own tag, as Go expects: v0.1.0
// for the root, chaos/v0.1.0 for chaos, and so on.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

func main() {
	write := flag.Bool("write", false, "change the tree, commit, and make the tags")
	proxy := flag.String("proxy", "", "leave a module proxy of the release in this `directory`")
	date := flag.String("date", time.Now().UTC().Format(time.DateOnly), "the `date` that CHANGELOG.md gets")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: .ci/release [-write] [-proxy DIR] VERSION")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := release(flag.Arg(0), *date, *proxy, *write); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release prepares the release in a copy of the tree, and copies it into the tree if asked to.
func release(version, date, proxy string, write bool) error {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return fmt.Errorf("%q is not a version like v0.1.0", version)
	}
	root, err := gitOutput(".", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	if err := ready(root, version, write); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "redlock-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	t, err := copyTree(root, scratch)
	if err != nil {
		return err
	}
	changed, err := t.prepare(version)
	if err == nil && (proxy == "" || write) { // a trial needs no news
		err = t.note(version, date)
		changed = append(changed, "CHANGELOG.md")
	}
	if err != nil {
		return err
	}
	for _, name := range changed {
		fmt.Println("changes", name)
	}
	if proxy != "" {
		if err := t.proxy(proxy, version); err != nil {
			return err
		}
		fmt.Println("module proxy in", proxy)
	}
	tags := t.tags(version)
	if !write {
		fmt.Println("would tag", strings.Join(tags, " "))
		return nil
	}
	return publish(root, t, changed, tags, version)
}

// ready refuses a tree that can't be released.
func ready(root, version string, write bool) error {
	if tagged, err := gitOutput(root, "tag", "--list", version); err != nil || tagged != "" {
		return errors.Join(err, fmt.Errorf("%s has been released", version))
	}
	dirty, err := gitOutput(root, "status", "--porcelain")
	if err != nil {
		return err
	}
	if write && dirty != "" {
		return fmt.Errorf("the tree has changes that are not committed:\n%s", dirty)
	}
	return nil
}

// publish copies the changes to root, commits them and tags the commit. It pushes nothing; the caller does.
func publish(root string, t *tree, changed, tags []string, version string) error {
	for _, name := range changed {
		raw, err := os.ReadFile(filepath.Join(t.dir, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, name), raw, 0o644); err != nil {
			return err
		}
	}
	if err := git(root, append([]string{"add", "--"}, changed...)...); err != nil {
		return err
	}
	if err := git(root, "commit", "-m", "release "+version); err != nil {
		return err
	}
	for _, tag := range tags {
		if err := git(root, "tag", "-a", "-m", tag, tag); err != nil {
			return err
		}
	}
	fmt.Println("to publish: git push --atomic origin HEAD", strings.Join(tags, " "))
	return nil
}
