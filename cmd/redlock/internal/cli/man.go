package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func manCommand() command {
	return command{
		name:    "man",
		args:    "[DIR]",
		summary: "write manual pages",
		help: `
Writes manual pages into DIR, which has to exist: redlock.1, redlock-run.1 and so on. Without DIR it prints
redlock.1. The pages say what -h says.

   redlock man /usr/local/share/man/man1
   redlock man | man -l -`,
		setup: func(*flag.FlagSet) action {
			return func(_ context.Context, t *terminal, args []string) error {
				switch len(args) {
				case 0:
					return writeWhole(t.out, writeMan)
				case 1:
					return writePages(args[0])
				}
				return usage("man: want one folder, or none")
			}
		},
	}
}

func writePages(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return usage("man: %w", err)
	case !info.IsDir():
		return usage("man: %s is no folder", dir)
	}
	pages := map[string]func(io.Writer){"redlock": writeMan}
	for _, c := range commands() {
		pages["redlock-"+c.name] = func(out io.Writer) { writeCommandMan(out, c) }
	}
	for name, write := range pages {
		page, err := replace(filepath.Join(dir, name+".1"))
		if err != nil {
			return err
		}
		if err := page.finish(public, func(out io.Writer) error { return writeWhole(out, write) }); err != nil {
			return err
		}
	}
	return nil
}

// writeMan writes the page of redlock itself.
func writeMan(out io.Writer) {
	manHead(out, "redlock", "take locks by majority over independent Redis masters")
	fmt.Fprint(out, ".SH SYNOPSIS\n.B redlock\n.I COMMAND\n[\\fIflags\\fR] ...\n.SH COMMANDS\n")
	for _, c := range commands() {
		fmt.Fprintf(out, ".TP\n.BR redlock\\-%s (1)\n%s\n", manText(c.name), manText(c.summary))
	}
	fmt.Fprint(out, ".PP\n.B redlock\n.I COMMAND\n.B \\-h\nsays the same as the command's page.\n.SH ENVIRONMENT\n")
	manParagraphs(out, settingsHelp)
}

// writeCommandMan writes the manual page of a command, with the text of its -h.
func writeCommandMan(out io.Writer, c command) {
	fs, _ := c.flags()
	manHead(out, "redlock-"+c.name, c.summary)
	fmt.Fprintf(out, ".SH SYNOPSIS\n.B redlock %s\n[\\fIflags\\fR] %s\n.SH DESCRIPTION\n", manText(c.name),
		manText(c.args))
	manParagraphs(out, c.help)
	heading := ".SH OPTIONS\n"
	fs.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		if value != "" {
			value = " \\fI" + manText(value) + "\\fR"
		}
		fmt.Fprintf(out, "%s.TP\n\\fB\\-%s\\fR%s\n%s\n", heading, manText(f.Name), value, manText(text))
		heading = ""
	})
	if fs.Lookup("config") != nil {
		fmt.Fprint(out, ".SH ENVIRONMENT\n")
		manParagraphs(out, settingsHelp)
	}
	fmt.Fprint(out, ".SH SEE ALSO\n.BR redlock (1)\n")
}

func manHead(out io.Writer, name, summary string) {
	v := ownVersion()
	fmt.Fprintf(out, ".TH %s 1 %q %q \"redlock manual\"\n.SH NAME\n%s \\- %s\n",
		strings.ToUpper(manText(name)), manDate(v), "redlock "+v.Version, manText(name), manText(summary))
}

// manDate returns the day of the revision. If it is not known, it is the date of this program's file.
func manDate(v version) string {
	if day, _, ok := strings.Cut(v.Time, "T"); ok {
		return day
	}
	path, _ := os.Executable() // after an error there is no such file
	file, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return file.ModTime().UTC().Format(time.DateOnly)
}

// manParagraphs writes a help text: paragraphs, and indented lines unchanged.
func manParagraphs(out io.Writer, text string) {
	begin, literal := "", false
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimRight(line, "\n")
		isLiteral := strings.HasPrefix(line, "   ")
		if literal && !isLiteral {
			fmt.Fprint(out, ".fi\n.RE\n")
			begin = ".PP\n"
		}
		switch {
		case isLiteral && !literal:
			fmt.Fprint(out, ".PP\n.RS 4\n.nf\n")
			begin = ""
		case line == "":
			begin, literal = ".PP\n", false
			continue
		}
		literal = isLiteral
		fmt.Fprintf(out, "%s%s\n", begin, manText(strings.TrimPrefix(line, "   ")))
		begin = ""
	}
	if literal {
		fmt.Fprint(out, ".fi\n.RE\n")
	}
}

// manText makes roff print the text unchanged.
func manText(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, `"`, `\(dq`, "`", "\\`", `^`, `\(ha`, `~`, `\(ti`).
		Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
