package cli

import (
	"flag"
	"strings"
)

// AllFlags are the flags of all commands.
func AllFlags() []string {
	var names []string
	for _, c := range commands() {
		fs := newFlags(c.name)
		c.setup(fs)
		fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	}
	return names
}

// AllHelp returns the output of -h, by command.
func AllHelp() map[string]string {
	texts := make(map[string]string)
	for _, c := range commands() {
		var b strings.Builder
		writeCommandHelp(&b, c)
		texts[c.name] = b.String()
	}
	return texts
}
