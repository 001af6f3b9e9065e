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
Prints a script that completes the commands and flags of redlock, and the command of redlock run. In bash the
arguments of that command are completed only if bash-completion is loaded.

   bash   source <(redlock completion bash)
   zsh    source <(redlock completion zsh), or a file _redlock in $fpath
   fish   redlock completion fish | source`,
		setup: func(*flag.FlagSet) action {
			return func(_ context.Context, t *terminal, args []string) error {
				if len(args) != 1 {
					return usage("completion: want one of bash, zsh, fish")
				}
				script, ok := scripts[args[0]]
				if !ok {
					return usage("completion: no such shell; there are bash, zsh, fish")
				}
				_, err := t.out.WriteString(script)
				return err
			}
		},
	}
}

// completeCommand is the first argument of this program when a shell asks for completions, see [complete].
const completeCommand = "(complete)"

// scripts ask this program, each in a shell's language.
var scripts = map[string]string{
	"bash": `_redlock() {
    local word=${COMP_WORDS[COMP_CWORD]} begin kind name
    COMPREPLY=()
    {
        read -r begin kind
        while IFS=$'\t' read -r name _; do COMPREPLY+=("$name"); done
    } < <("${COMP_WORDS[0]}" '(complete)' "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if ((begin > 0 && begin < COMP_CWORD)) && declare -F _command_offset >/dev/null; then
        _command_offset "$begin"
        return
    fi
    case $kind in
        files) kind=-f ;;
        commands) kind='-c -f' ;;
        *) return ;;
    esac
    if [[ $word == = ]]; then word=; fi # -flag=value is three words
    compopt -o filenames 2>/dev/null
    # names may have blanks
    while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen $kind -- "$word")
}
complete -o bashdefault -F _redlock redlock
`,
	"zsh": `#compdef redlock
_redlock() {
    local begin kind name text
    local -a choices
    {
        read -r begin kind
        while IFS=$'\t' read -r name text; do choices+=("$name:$text"); done
    } < <($words[1] '(complete)' "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    if ((begin > 0)); then
        words=("${(@)words[begin+1,-1]}")
        ((CURRENT -= begin))
        _normal
        return
    fi
    (($#choices)) && _describe -o -t values value choices
    case $kind in
        files) _files ;;
        commands) _command_names -e ;;
    esac
}
if [[ $funcstack[1] == _redlock ]]; then
    _redlock "$@"
else
    (($+functions[compdef])) || { autoload -Uz compinit && compinit; }
    compdef _redlock redlock
fi
`,
	"fish": `function __redlock_complete
    set -l words (commandline -opc)
    set -l answer ($words[1] '(complete)' $words[2..] (commandline -ct) 2>/dev/null)
    set -l first (string split ' ' -- $answer[1])
    if test "$first[1]" -gt 0
        set -l run (string escape -- $words[(math $first[1] + 1)..])
        complete --do-complete=(string join ' ' -- $run (commandline -ct))
        return
    end
    printf '%s\n' $answer[2..]
    switch $first[2]
        case files
            __fish_complete_path (commandline -ct)
        case commands
            complete --do-complete=(commandline -ct)
    end
end
complete -c redlock -f -a '(__redlock_complete)'
`,
}

// complete prints the completions of the last of these words, which follow the program's name on a command line. The
// first line has the place of the command that redlock run runs, or 0. Then it has "files" or "commands" if the shell
// completes such names, or else "-". Each other line has a word and its meaning.
func complete(out io.Writer, words []string) {
	kind, choices := following(words)
	fmt.Fprintln(out, kind)
	last := words[len(words)-1]
	if last == "=" { // bash takes -flag=value for three words
		last = ""
	}
	for _, c := range choices {
		if strings.HasPrefix(c.word, last) {
			fmt.Fprintf(out, "%s\t%s\n", c.word, c.meaning)
		}
	}
}

type choice struct{ word, meaning string }

// following returns the first line of complete, and the words of the others.
func following(words []string) (kind string, choices []choice) {
	last := len(words) - 1
	if last == 0 || words[0] == "help" {
		for _, c := range commands() {
			choices = append(choices, choice{c.name, c.summary})
		}
		return "0 -", append(choices, choice{"help", "explain a command"})
	}
	c, err := find(words[0])
	if err != nil {
		return "0 -", nil
	}
	fs, _ := c.flags()
	switch begin := commandAt(fs, words); {
	case c.name != "run" || begin == 0:
	case begin == last:
		return fmt.Sprint(begin+1, " commands"), nil
	default:
		return fmt.Sprint(begin+1, " files"), nil
	}
	before := words[last-1]
	if before == "=" && last > 1 {
		before = words[last-2]
	}
	switch value := valueOf(fs, before); {
	case before == "-log" || before == "--log":
		return "0 -", []choice{{"text", ""}, {"json", ""}}
	case value == "file":
		return "0 files", nil
	case value != "":
		return "0 -", nil
	}
	fs.VisitAll(func(f *flag.Flag) {
		if _, meaning := flag.UnquoteUsage(f); f.Name != "password" { // which a command line must not have
			choices = append(choices, choice{"-" + f.Name, meaning})
		}
	})
	choices = append(choices, choice{"-h", "explain the command"})
	switch {
	case c.name == "completion":
		choices = append(choices, choice{"bash", ""}, choice{"zsh", ""}, choice{"fish", ""})
	case c.name == "run" && !strings.HasPrefix(words[last], "-"): // the command may begin here, without --
		return "0 commands", choices
	}
	return "0 -", choices
}

// valueOf names the value that follows this flag; "" if none does.
func valueOf(fs *flag.FlagSet, word string) (value string) {
	name := strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-")
	if f := fs.Lookup(name); f != nil && name != word {
		value, _ = flag.UnquoteUsage(f)
	}
	return value
}

// commandAt returns the place of the command that redlock run runs; 0 if it has not begun.
func commandAt(fs *flag.FlagSet, words []string) int {
	for i := 1; i < len(words)-1; {
		switch {
		case words[i] == "--":
			return i + 1
		case !strings.HasPrefix(words[i], "-"):
			return i
		case words[i+1] == "=":
			i += 3
		case valueOf(fs, words[i]) != "":
			i += 2
		default:
			i++
		}
	}
	return 0
}

func commandNames() []string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
}
