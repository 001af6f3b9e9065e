package mutant

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Module is the path of the module to change.
const Module = "github.com/seed-624411e5/redlock"

// Command is the program with the subcommands sim, run and controls, which look for mutants.
const Command = Module + "/chaos/cmd/redlock-chaos"

// SimCommand is its subcommand sim as a separate program, which takes a third of the time to build.
const SimCommand = Module + "/chaos/internal/simcmd"

// Root returns the root of the checkout that contains the working directory. The go command cannot overlay files of
// the module cache. The error matches [ErrNoSource].
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoSource, err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if isCheckout(at) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%w: %s lies in no checkout of %s", ErrNoSource, dir, Module)
		}
	}
}

// isCheckout reports whether dir has the module and its workspace.
func isCheckout(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !bytes.HasPrefix(text, []byte("module "+Module+"\n")) {
		return false
	}
	_, err = os.Stat(filepath.Join(dir, "go.work"))
	return err == nil
}

// overlay writes the changed files and the list for the go command's -overlay into dir, and returns the path of the
// list.
func (m Mutant) overlay(root, dir string) (string, error) {
	changed, err := m.Apply(root)
	if err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for file, text := range changed {
		file = filepath.FromSlash(file)
		replace[filepath.Join(root, file)] = filepath.Join(dir, file)
		if err := write(filepath.Join(dir, file), []byte(text)); err != nil {
			return "", fmt.Errorf("mutant %s: %w", m.Name, err)
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := write(path, list); err != nil {
		return "", fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	return path, nil
}

func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// Build builds the program in package pkg, an import path, with the mutant. BuildTest builds the tests of that
// package. Both build into dir, which must be empty or missing, and return the path of the executable. A Mutant
// without edits is the unchanged library. The error matches [ErrNoSource] if nothing can be built here.
func (m Mutant) Build(ctx context.Context, dir, pkg string) (string, error) {
	return m.build(ctx, dir, pkg, "build")
}

// BuildTest builds the tests of package pkg, see Build.
func (m Mutant) BuildTest(ctx context.Context, dir, pkg string) (string, error) {
	return m.build(ctx, dir, pkg, "test", "-c", "-vet=off")
}

func (m Mutant) build(ctx context.Context, dir, pkg string, command ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	list, err := m.overlay(root, dir)
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "program.exe") // Windows needs the suffix, other systems ignore it
	// A change in a basic package recompiles every package above it. Without optimization that takes a fifth of the
	// time, and the runs take little longer.
	args := slices.Concat(command,
		[]string{"-overlay", list, "-gcflags=" + Module + "/...=-N -l", "-ldflags", "-s -w -X " + Module +
			"/internal/mutant.built=" + m.Name, "-o", program, pkg})
	if err := goCommand(ctx, root, args...); err != nil {
		return "", fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	return program, nil
}

// goCommand runs the go command in the workspace of a checkout.
func goCommand(ctx context.Context, root string, args ...string) error {
	var complaints bytes.Buffer
	flags := slices.DeleteFunc(strings.Fields(os.Getenv("GOFLAGS")), func(flag string) bool {
		return strings.HasPrefix(flag, "-modfile") // not allowed in a workspace
	})
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir, c.Stderr = root, &complaints
	c.Env = append(c.Environ(), "GOWORK="+filepath.Join(root, "go.work"), "GOFLAGS="+strings.Join(flags, " "))
	err := c.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w: %w", ErrNoSource, err)
	case err != nil:
		return fmt.Errorf("go %s: %w\n%s", args[0], err, complaints.Bytes())
	}
	return nil
}

// Run builds the program in package pkg with the mutant, runs it, and returns its exit status. If it cannot run, the
// error says why; it matches [ErrNoSource] if nothing can be built here.
func (m Mutant) Run(ctx context.Context, pkg string, args []string, stdout, stderr io.Writer) (status int, _ error) {
	dir, err := os.MkdirTemp("", "redlock-mutant-")
	if err != nil {
		return 0, fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // a file that stays in the temporary directory does no harm
	program, err := m.Build(ctx, dir, pkg)
	if err != nil {
		return 0, err
	}
	return Execute(ctx, "", program, args, stdout, stderr)
}

// Execute runs a program in a directory and returns its exit status. An empty dir is the current directory.
func Execute(ctx context.Context, dir, program string, args []string, stdout, stderr io.Writer) (status int, _ error) {
	c := exec.CommandContext(ctx, program, args...)
	c.Dir = dir
	c.Stdout, c.Stderr = stdout, stderr
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // the program ends its children, and says so
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode(), nil
	default:
		return 0, fmt.Errorf("mutant: %s: %w", filepath.Base(program), err)
	}
}
