package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
)

func completionCommand() command {
	return command{
		name:    "completion",
		args:    "bash|zsh|fish",
		summary: "print a shell's completion script",
		help: `
Prints a script that teaches the shell redlock's commands and flags:
   bash   source <(redlock completion bash)
   zsh    source <(redlock completion zsh)
   fish   redlock completion fish | source`,
		setup: func(*flag.FlagSet) func(context.Context, *terminal, []string) error {
			return func(_ context.Context, t *terminal, args []string) error {
				if len(args) != 1 {
					return usage("completion: want one of bash, zsh, fish")
				}
				switch args[0] {
				case "bash":
					return writeWhole(t.out, writeBash)
				case "zsh":
					return writeWhole(t.out, writeZsh)
				case "fish":
					return writeWhole(t.out, writeFish)
				}
				return usage("completion: no such shell; there are bash, zsh, fish")
			}
		},
	}
}

func writeZsh(out io.Writer) {
	fmt.Fprint(out, "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n")
	writeBash(out)
}

// writeBash writes a function that completes the command's name, then its flags, then, after --, other commands.
func writeBash(out io.Writer) {
	fmt.Fprint(out, `_redlock() {
    local word=${COMP_WORDS[COMP_CWORD]} i
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "`+strings.Join(commandNames(), " ")+` help" -- "$word"))
        return
    fi
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            compopt -o filenames 2>/dev/null
            while IFS= read -r i; do COMPREPLY+=("$i"); done < <(compgen -c -f -- "$word") # names may have blanks
            return
        fi
    done
    case ${COMP_WORDS[1]} in
`)
	for _, c := range commands() {
		words := flagNames(c)
		if c.name == "completion" {
			words = []string{"bash", "zsh", "fish"}
		}
		fmt.Fprintf(out, "        %s) COMPREPLY=($(compgen -W %q -- \"$word\")) ;;\n", c.name, strings.Join(words, " "))
	}
	fmt.Fprintf(out, "        help) COMPREPLY=($(compgen -W %q -- \"$word\")) ;;\n", strings.Join(commandNames(), " "))
	fmt.Fprint(out, "    esac\n}\ncomplete -o default -F _redlock redlock\n")
}

func writeFish(out io.Writer) {
	for _, c := range commands() {
		fmt.Fprintf(out, "complete -c redlock -f -n __fish_use_subcommand -a %s -d %s\n", c.name, quoted(c.summary))
		fs := newFlags(c.name)
		c.setup(fs)
		fs.VisitAll(func(f *flag.Flag) {
			value, text := flag.UnquoteUsage(f)
			takes := " -r"
			if value == "" {
				takes = ""
			}
			fmt.Fprintf(out, "complete -c redlock -n '__fish_seen_subcommand_from %s' -o %s%s -d %s\n", c.name, f.Name, takes, quoted(text))
		})
	}
	fmt.Fprint(out, "complete -c redlock -f -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n")
}

func commandNames() []string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
}

func flagNames(c command) []string {
	fs := newFlags(c.name)
	c.setup(fs)
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, "-"+f.Name) })
	return append(names, "-h")
}

// quoted quotes a text for fish.
func quoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}
