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

// completed has the facts about a command that a shell needs to complete it.
type completed struct {
	command
	flags []completedFlag
	words []string // its arguments may be
}

// completedFlag has the same for a flag.
type completedFlag struct {
	name, text string
	takesValue bool
	values     []string // all of them; nil: any
	file       bool     // its value is one
}

// completion returns the facts about all commands that shells need.
func completion() (all []completed) {
	for _, c := range commands() {
		one := completed{command: c}
		fs := newFlags(c.name)
		c.setup(fs)
		fs.VisitAll(func(f *flag.Flag) {
			if f.Name == "password" { // which a command line must not have
				return
			}
			value, text := flag.UnquoteUsage(f)
			one.flags = append(one.flags, completedFlag{
				name: f.Name, text: text, takesValue: value != "", values: valuesOf(f), file: value == "file",
			})
		})
		one.flags = append(one.flags, completedFlag{name: "h", text: "explain the command"})
		if c.name == "completion" {
			one.words = []string{"bash", "zsh", "fish"}
		}
		all = append(all, one)
	}
	return append(all, completed{command: command{name: "help", summary: "explain a command"}, words: commandNames()})
}

// valuesOf returns all values of a flag; nil if there are too many.
func valuesOf(f *flag.Flag) []string {
	if f.Name == "log" {
		return logForms
	}
	return nil
}

// valueFlags returns the flags of a command that take a value, as alternatives of a shell's pattern.
func valueFlags(of, separator string) string {
	var names []string
	for _, c := range completion() {
		for _, f := range c.flags {
			if c.name == of && f.takesValue {
				names = append(names, "-"+f.name, "--"+f.name)
			}
		}
	}
	return strings.Join(names, separator)
}

// writeBash writes a function that completes the command's name, then its flags and their values, then other commands.
// Bash treats "=" as a word, so -flag=value is three words.
func writeBash(out io.Writer) {
	fmt.Fprint(out, `# Where the command begins that redlock run runs; 0: it has not.
_redlock_command() {
    local i=2
    while ((i < COMP_CWORD)); do
        case ${COMP_WORDS[i]} in
            --) echo $((i + 1)); return ;;
            `+valueFlags("run", "|")+`)
                if [[ ${COMP_WORDS[i + 1]} == = ]]; then ((i += 3)); else ((i += 2)); fi ;;
            -*) if [[ ${COMP_WORDS[i + 1]} == = ]]; then ((i += 3)); else ((i += 1)); fi ;;
            *) echo "$i"; return ;;
        esac
    done
    echo 0
}

_redlock() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} i
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "`+strings.Join(commandNames(), " ")+` help" -- "$word"))
        return
    fi
    if [[ ${COMP_WORDS[1]} == run ]]; then
        local begin=$(_redlock_command)
        if ((begin > 0 && begin < COMP_CWORD)) && declare -F _command_offset >/dev/null; then
            _command_offset "$begin"
            return
        fi
        if ((begin > 0)); then
            local kinds=(-f)
            ((begin == COMP_CWORD)) && kinds=(-c -f)
            compopt -o filenames 2>/dev/null
            # names may have blanks
            while IFS= read -r i; do COMPREPLY+=("$i"); done < <(compgen "${kinds[@]}" -- "$word")
            return
        fi
    fi
    if [[ $word == = ]]; then word=; fi
    if [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
    case ${COMP_WORDS[1]} in
`)
	for _, c := range completion() {
		fmt.Fprintf(out, "        %s)\n            case $before in\n", c.name)
		var files, values, words []string
		for _, f := range c.flags {
			words = append(words, "-"+f.name)
			switch {
			case f.values != nil:
				fmt.Fprintf(out, "                -%s|--%s) COMPREPLY=($(compgen -W %q -- \"$word\")); return ;;\n",
					f.name, f.name, strings.Join(f.values, " "))
			case f.file:
				files = append(files, "-"+f.name, "--"+f.name)
			case f.takesValue:
				values = append(values, "-"+f.name, "--"+f.name)
			}
		}
		if len(files) > 0 {
			fmt.Fprintf(out, "                %s) compopt -o filenames 2>/dev/null; while IFS= read -r i; do "+
				"COMPREPLY+=(\"$i\"); done < <(compgen -f -- \"$word\"); return ;;\n", strings.Join(files, "|"))
		}
		if len(values) > 0 {
			fmt.Fprintf(out, "                %s) return ;;\n", strings.Join(values, "|"))
		}
		fmt.Fprint(out, "            esac\n")
		if c.name == "run" { // the command may begin here, without --
			fmt.Fprint(out, "            [[ $word == -* ]] || COMPREPLY=($(compgen -c -- \"$word\"))\n")
		}
		fmt.Fprintf(out, "            COMPREPLY+=($(compgen -W %q -- \"$word\")) ;;\n",
			strings.Join(append(words, c.words...), " "))
	}
	fmt.Fprint(out, "    esac\n}\ncomplete -o bashdefault -F _redlock redlock\n")
}

// writeZsh writes a function of zsh's own completion, for a file in $fpath or to be sourced.
func writeZsh(out io.Writer) {
	fmt.Fprint(out, `#compdef redlock
_redlock() {
    local -a choices
    if ((CURRENT == 2)); then
        choices=(
`)
	for _, c := range completion() {
		fmt.Fprintf(out, "            %s\n", zshChoice(c.name, c.summary))
	}
	fmt.Fprint(out, `        )
        _describe -t commands 'redlock command' choices
        return
    fi
    if [[ $words[2] == run ]]; then
        local i=3 begin=0
        while ((i < CURRENT)); do
            case $words[i] in
                --) begin=$((i + 1)); break ;;
                -*=*) ((i += 1)) ;;
                `+valueFlags("run", "|")+`) ((i += 2)) ;;
                -*) ((i += 1)) ;;
                *) begin=$i; break ;;
            esac
        done
        if ((begin > 0)); then
            words=("${(@)words[begin,-1]}")
            ((CURRENT -= begin - 1))
            _normal
            return
        fi
    fi
    case $words[2] in
`)
	for _, c := range completion() {
		fmt.Fprintf(out, "        %s)\n            case $words[CURRENT-1] in\n", c.name)
		for _, f := range c.flags {
			switch {
			case f.values != nil:
				fmt.Fprintf(out, "                -%s|--%s) compadd -- %s; return ;;\n", f.name, f.name,
					strings.Join(f.values, " "))
			case f.file:
				fmt.Fprintf(out, "                -%s|--%s) _files; return ;;\n", f.name, f.name)
			case f.takesValue:
				fmt.Fprintf(out, "                -%s|--%s) _message -r %s; return ;;\n", f.name, f.name,
					zshQuoted(f.text))
			}
		}
		fmt.Fprint(out, "            esac\n            choices=(\n")
		for _, f := range c.flags {
			fmt.Fprintf(out, "                %s\n", zshChoice("-"+f.name, f.text))
		}
		fmt.Fprint(out, "            )\n            _describe -o -t flags flag choices\n")
		if len(c.words) > 0 {
			fmt.Fprintf(out, "            compadd -- %s\n", strings.Join(c.words, " "))
		}
		if c.name == "run" { // the command may begin here, without --
			fmt.Fprint(out, "            [[ $words[CURRENT] == -* ]] || _command_names -e\n")
		}
		fmt.Fprint(out, "            ;;\n")
	}
	fmt.Fprint(out, `    esac
}
if [[ $funcstack[1] == _redlock ]]; then
    _redlock "$@"
else
    (($+functions[compdef])) || { autoload -Uz compinit && compinit; }
    compdef _redlock redlock
fi
`)
}

// zshChoice is an entry for _describe.
func zshChoice(name, text string) string {
	return zshQuoted(name + ":" + strings.ReplaceAll(text, ":", `\:`))
}

func zshQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// writeFish writes completions for fish, and functions that find the command of redlock run.
func writeFish(out io.Writer) {
	fmt.Fprint(out, `# The command that redlock run runs, as far as it has been typed; false if it has not begun.
function __redlock_command
    set -l words (commandline -opc)
    test "$words[2]" = run; or return 1
    set -e words[1..2]
    while set -q words[1]
        switch $words[1]
            case --
                set -e words[1]
                string join \n -- $words
                return 0
            case '-*=*'
                set -e words[1]
            case `+valueFlags("run", " ")+`
                set -e words[1]
                set -e words[1]
            case '-*'
                set -e words[1]
            case '*'
                string join \n -- $words
                return 0
        end
    end
    return 1
end
function __redlock_complete_command
    complete --do-complete=(string join ' ' -- (string escape -- (__redlock_command)) (commandline -ct))
end
function __redlock_is
    set -l words (commandline -opc)
    test "$words[2]" = $argv[1]; and not __redlock_command >/dev/null
end
complete -c redlock -f
complete -c redlock -n '__redlock_command >/dev/null' -a '(__redlock_complete_command)'
complete -c redlock -n '__redlock_is run' -a '(
    string match -q -- "-*" (commandline -ct); or complete --do-complete=(commandline -ct))'
`)
	for _, c := range completion() {
		fmt.Fprintf(out, "complete -c redlock -n 'test (count (commandline -opc)) = 1' -a %s -d %s\n", c.name,
			quoted(c.summary))
		for _, f := range c.flags {
			takes := ""
			switch {
			case f.values != nil:
				takes = " -x -a " + quoted(strings.Join(f.values, " "))
			case f.file:
				takes = " -r -F"
			case f.takesValue:
				takes = " -x"
			}
			fmt.Fprintf(out, "complete -c redlock -n '__redlock_is %s' -o %s%s -d %s\n", c.name, f.name, takes,
				quoted(f.text))
		}
		if len(c.words) > 0 {
			fmt.Fprintf(out, "complete -c redlock -n '__redlock_is %s' -a %s\n", c.name,
				quoted(strings.Join(c.words, " ")))
		}
	}
}

func commandNames() []string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
}

// quoted quotes a text for fish.
func quoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}
