// Package cli has the common parts of this module's commands.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// The exit statuses.
const (
	OK = iota
	Failed
	Usage
)

// Main runs a command, which a signal interrupts, and exits with its status.
func Main(run func(ctx context.Context, args []string, stdout, stderr io.Writer) int) {
	logging.Disable() // the clients meet broken connections by the hundred
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// Status returns OK if there is no error, or if the user asked for help. Otherwise it prints the error and returns
// failed.
func Status(stderr io.Writer, command string, err error, failed int) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return OK
	}
	fmt.Fprintf(stderr, "%s: %v\n", command, err)
	return failed
}

// Logf returns a function that tells people the time and the progress.
func Logf(stderr io.Writer) func(format string, args ...any) {
	return func(format string, args ...any) {
		fmt.Fprintf(stderr, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
	}
}

// Machine returns the time and the machine.
func Machine() []string {
	return []string{
		time.Now().UTC().Format("2006-01-02 15:04 MST"),
		fmt.Sprintf("%s on %s/%s, %d CPUs", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
	}
}

// Versions returns a line with the versions of modules in this program. It is empty if the program does not know them.
func Versions(modules ...string) string {
	var versions []string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if slices.Contains(modules, dep.Path) {
				versions = append(versions, dep.Path+" "+dep.Version)
			}
		}
	}
	return strings.Join(versions, ", ")
}

// WriteFile does nothing without a path. It returns an error if the file could not be written completely, also if
// closing it fails.
func WriteFile(path string, write func(io.Writer) error) (err error) {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return write(f)
}

// WriteJSON is WriteFile for a value.
func WriteJSON(path string, v any) error {
	return WriteFile(path, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	})
}
