// Package cli is the redlock command: its subcommands, the sources of their settings, and their exit statuses.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9/logging"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
)

// Exit statuses. Statuses above 63 are chosen so that a command under a lock is unlikely to use them itself.
const (
	statusOK        = 0   // done
	statusNo        = 1   // done, and the answer is no: not held, unsafe, a check failed
	statusUsage     = 64  // bad usage; no master was asked
	statusNoQuorum  = 69  // too few masters can be used
	statusUnknown   = 70  // there was too little data for a verdict
	statusLost      = 73  // the lock was lost while the command ran
	statusWrite     = 74  // the output could not be written
	statusHeld      = 75  // another client holds the lock
	statusContended = 76  // several want the lock, and none was seen to get it
	statusRanOn     = 77  // the lock was lost, and the command could not be killed
	statusOutdated  = 78  // the configuration of masters is out of date
	statusCantRun   = 126 // the command could not be started
	statusNotFound  = 127 // the command does not exist
	statusSignal    = 128 // plus the number of the signal that ended the command
)

type command struct {
	name    string
	args    string // the arguments after the flags, for the usage line; "": there are none
	summary string // one line
	help    string // paragraphs
	// setup defines the flags and returns the function to run when they are set.
	setup func(fs *flag.FlagSet) action
}

// action does the work of a command. args follow the flags.
type action func(ctx context.Context, io *terminal, args []string) error

// terminal has the files that a command reads and writes.
type terminal struct {
	in, out, err *os.File
}

func commands() []command {
	return []command{
		runCommand(),
		holdCommand(),
		acquireCommand(),
		statusCommand(),
		listCommand(),
		doctorCommand(),
		benchCommand(),
		releaseCommand(),
		membersCommand(),
		demoCommand(),
		completionCommand(),
		manCommand(),
		versionCommand(),
	}
}

// statusError is an error with an exit status; with a nil error nothing is printed.
type statusError struct {
	status int
	err    error
	signal os.Signal // this program dies of this signal instead, if it can
	group  bool      // and its process group with it
}

func (e *statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

func exit(status int, format string, args ...any) error {
	return &statusError{status: status, err: fmt.Errorf(format, args...)}
}

func usage(format string, args ...any) error { return exit(statusUsage, format, args...) }

// unexpected returns the error for an argument that must not follow the flags. The error does not show the argument: if
// a list of masters with blanks is not quoted, its end becomes such an argument, with its passwords.
func unexpected(command string) error {
	meant := "a value with blanks has to be quoted"
	if command == "hold" {
		meant = "redlock run runs commands"
	}
	return usage("%s: an argument after the flags, where none belongs; %s", command, meant)
}

func asStatus(err error) *statusError {
	if err == nil {
		return &statusError{}
	}
	if s, ok := errors.AsType[*statusError](err); ok {
		return s
	}
	return &statusError{status: statusOf(err), err: err}
}

// silently exits with a status and without a message.
func silently(status int) error {
	if status == statusOK {
		return nil
	}
	return &statusError{status: status}
}

// Main runs the command line args, without the program's name, and returns the exit status.
func Main(args []string) int {
	switch {
	case len(args) == 1 && args[0] == child.WatchCommand:
		child.RunWatch(os.Stdin, os.Stdout)
		return statusOK
	case len(args) > 3 && args[0] == child.ExecCommand:
		status, err := child.RunExec(args[1:])
		if err != nil {
			fmt.Fprintln(os.Stderr, "redlock:", shown(err))
		}
		return status
	case len(args) > 1 && args[0] == completeCommand:
		complete(os.Stdout, args[1:])
		return statusOK
	}
	logging.Disable() // our errors already contain every failed connection
	t := &terminal{os.Stdin, os.Stdout, os.Stderr}
	err := dispatch(context.Background(), t, args)
	if err == nil {
		return statusOK
	}
	s := asStatus(err)
	last := newNotes(t.err)
	if s.err != nil {
		last.printf("redlock: %v", bare{s.err})
	}
	switch {
	case s.err == nil: // the status may be a command's own
	case s.status == statusUsage:
		last.printf("%s says how it is used", helpCommand(args))
	case s.status == statusNoQuorum && strings.Contains(s.err.Error(), "WRONGTYPE "):
		last.printf("redlock status KEY shows what another program keeps there")
	case s.status == statusNoQuorum:
		last.printf("redlock doctor, with the same masters, says why they can't be used")
	}
	last.flush()
	if s.signal != nil {
		child.DieOf(s.signal, s.group)
	}
	return s.status
}

// helpCommand returns the command line that explains this command.
func helpCommand(args []string) string {
	if len(args) > 0 {
		if c, err := find(args[0]); err == nil {
			return "redlock " + c.name + " -h"
		}
	}
	return "redlock -h"
}

// bare is an error of the library without the package's name, for use inside a sentence of this command.
type bare struct{ error }

func (b bare) Error() string {
	text := b.error.Error()
	for _, name := range []string{"redlock: ", "single: "} {
		text = strings.TrimPrefix(text, name)
	}
	return text
}

func (b bare) Unwrap() error { return b.error }

func dispatch(ctx context.Context, t *terminal, args []string) error {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	switch {
	case name == "":
		writeHelp(t.err)
		return usage("no command given")
	case isHelp(name) && (len(args) == 1 || isHelp(args[1])):
		return writeWhole(t.out, writeHelp)
	case isHelp(name):
		return dispatch(ctx, t, []string{args[1], "-h"})
	case slices.Contains([]string{"-version", "--version", "-v", "-V"}, name):
		name = "version"
	}
	c, err := find(name)
	if err != nil {
		return err
	}
	fs, run := c.flags()
	switch err := fs.Parse(args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return writeWhole(t.out, func(out io.Writer) { writeCommandHelp(out, c) })
	case err != nil:
		return usage("%s: %w%s", c.name, flagError(fs, err), suggestion(fs, err))
	}
	if err := fillIn(fs); err != nil {
		return err
	}
	if c.args == "" && fs.NArg() > 0 {
		return unexpected(c.name)
	}
	return run(ctx, t, fs.Args())
}

func isHelp(name string) bool {
	return slices.Contains([]string{"help", "-h", "-help", "--help"}, name)
}

func find(name string) (command, error) {
	names := commandNames()
	if i := slices.Index(names, name); i >= 0 {
		return commands()[i], nil
	}
	if !nameForm().MatchString(name) { // perhaps a URL with a password
		name = "like this"
	}
	meant := didYouMean(name, "redlock ", names)
	if other := otherNames[name]; other != "" {
		meant = "; did you mean redlock " + other + "?"
	}
	return command{}, usage("no command %q%s; there are %s", name, meant, strings.Join(names, ", "))
}

func (c command) flags() (*flag.FlagSet, action) {
	fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // Main prints the error
	fs.Usage = func() {}
	return fs, c.setup(fs)
}

func writeHelp(out io.Writer) {
	fmt.Fprint(out, "redlock takes locks by majority over independent Redis masters.\n\nusage: redlock COMMAND "+
		"[flags] ...\n\n")
	for _, c := range commands() {
		fmt.Fprintf(out, "  %-12s %s\n", c.name, c.summary)
	}
	fmt.Fprint(out, "\nredlock COMMAND -h tells more.\n")
}

func writeCommandHelp(out io.Writer, c command) {
	fs, _ := c.flags()
	fmt.Fprintf(out, "%s\nusage: redlock %s [flags]", folded("redlock "+c.name+": "+c.summary, columns, "", ""), c.name)
	if c.args != "" {
		fmt.Fprint(out, " ", c.args)
	}
	fmt.Fprintf(out, "\n\n%s\n", strings.TrimSpace(wrapped(c.help)))
	heading := "\nFlags:\n"
	fs.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		if value != "" {
			value = " " + value
		}
		fmt.Fprintf(out, "%s  -%s%s\n%s", heading, f.Name, value, folded(text, columns, "      ", "      "))
		heading = ""
	})
	if fs.Lookup("config") != nil {
		fmt.Fprint(out, "\n"+wrapped(settingsHelp))
	}
}
