package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/mod/module"
)

// proxy writes the published modules to dir as a module proxy serves them, for GOPROXY=file://DIR. dir may already
// contain other versions and modules. https://go.dev/ref/mod#goproxy-protocol
func (t *tree) proxy(dir, version string) error {
	for _, m := range t.modules {
		if slices.Contains(unpublished, m.dir) {
			continue
		}
		escaped, err := module.EscapePath(m.path)
		if err != nil {
			return err
		}
		at := filepath.Join(dir, escaped, "@v")
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := t.serve(m, at, version); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	return nil
}

// serve writes the four files of a version that a proxy serves.
func (t *tree) serve(m mod, at, version string) error {
	goMod, err := os.ReadFile(filepath.Join(t.dir, m.dir, "go.mod"))
	if err != nil {
		return err
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time.Now().UTC().Format(time.RFC3339))
	for name, content := range map[string][]byte{version + ".info": []byte(info), version + ".mod": goMod} {
		if err := os.WriteFile(filepath.Join(at, name), content, 0o644); err != nil {
			return err
		}
	}
	list, err := os.OpenFile(filepath.Join(at, "list"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer list.Close()
	if _, err := fmt.Fprintln(list, version); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		return err
	}
	defer file.Close()
	return t.zip(file, m, version)
}
