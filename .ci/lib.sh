# Functions of .ci/run. Sourced, not run.

# section prints a heading with the time since the start.
section() { printf '\n=== %02d:%02d  %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$1"; }

# check runs one check under its own heading; verdict fails when any of them did.
failures=()
took=()
check() {
	local began=$SECONDS cpu
	cpu=$(cpu_of_children)
	section "$1"
	"${@:2}" 2>&1 | tee "$scratch/check.out" || failed "$1" "$scratch/check.out"
	took+=("$(printf '%5d s, %5d s of CPU  %s' $((SECONDS - began)) $(($(cpu_of_children) - cpu)) "$1")")
}

# failed notes a check that failed, and of its output what tells why: in the whole of it that is hard to find.
failed() {
	failures+=("$1")
	{
		echo "FAILED: $1"
		{ grep -aE '^ *--- FAIL|_test\.go:[0-9]+: |^FAIL[[:space:]]|^panic: |FAILED|LEFT OUT|^[^ ]*: error' "$2" | head -n 30 || tail -n 5 "$2"; } | cut -c 1-1000 | sed 's/^/    /'
	} >>"$scratch/failures"
}

# cpu_of_children is the time in seconds that what a shell has run and waited for has used: this one, or that of a process id.
cpu_of_children() { awk '{print int(($16 + $17) / 100)}' "/proc/${1:-$$}/stat" 2>/dev/null || echo 0; }

# beside begins a check that may run while others do: it gets what these leave of the processors. Its output is kept until
# wait_for_beside, which shows it and counts the check like any other. It ends with this shell, which tells it by the group.
beside=()
beside() {
	local at="$scratch/beside.${#beside[@]}"
	beside+=("$1")
	section "$1 (begins, beside what follows)"
	set -m # a process group of its own
	(
		set +m
		renice -n 10 -p "$BASHPID" >/dev/null 2>&1 || true
		self=$BASHPID SECONDS=0 status=0
		"${@:2}" >"$at.out" 2>&1 || status=1
		echo "$status $SECONDS $(cpu_of_children "$self")" >"$at.status"
	) &
	echo "$!" >"$at.pid"
	set +m
}

# idly runs what only computes, in the time that nothing else wants.
idly() {
	chrt --idle --pid 0 "$BASHPID" 2>/dev/null || true # Linux only
	"$@"
}

wait_for_beside() {
	local i at status seconds cpu
	for i in "${!beside[@]}"; do
		at="$scratch/beside.$i"
		wait "$(cat "$at.pid")" || true
		section "${beside[$i]}"
		cat "$at.out"
		status=1 seconds=0 cpu=0
		if [[ -e $at.status ]]; then read -r status seconds cpu <"$at.status"; fi # none: it was killed
		((status == 0)) || failed "${beside[$i]}" "$at.out"
		took+=("$(printf '%5d s, %5d s of CPU  %s, beside others' "$seconds" "$cpu" "${beside[$i]}")")
		rm -f "$at".*
	done
	beside=()
}

# slowest lists the checks and the packages that took longest.
slowest() {
	printf '%s\n' "${took[@]}" | sort -rn
	if [[ -s ${scratch-}/tested ]]; then
		echo "of the tests:"
		awk '$1 == "ok" && $3 ~ /^[0-9.]+s$/ {printf "%5d s  %s\n", $3, $2}' "$scratch/tested" | sort -rn | head -n 12
	fi
}

verdict() {
	if ((${#failures[@]} > 0)); then
		cat "$scratch/failures"
		return 1
	fi
	echo "all checks passed"
}

# modules lists the directories of go.work, the root first.
modules() { go work edit -json | sed -n 's/.*"DiskPath": "\(.*\)".*/\1/p' | sort; }

# each_module runs a command in every module as a user of that module alone would: without the workspace. It goes on
# after a failure, so that one run shows them all.
each_module() {
	local module failed=0
	for module in $(modules); do
		echo "--- $module: $*"
		alone "$module" "$@" || failed=1
	done
	return "$failed"
}

# alone runs a command in one module without the workspace. The modules require each other at the version of a release that
# may not have been made yet, so here each finds the others in this tree: by a copy of its go.mod with replacements.
alone() {
	local module=$1 mod other
	mod=$(copy_of_mod "$1")
	shift
	if [[ ! -e $mod || $module/go.mod -nt $mod || $module/go.sum -nt $mod ]]; then
		mkdir -p "$scratch/mod"
		cp "$module/go.mod" "$mod"
		cp "$module/go.sum" "${mod%.mod}.sum" 2>/dev/null || : >"${mod%.mod}.sum"
		for other in $(modules | grep -Fvx "$module"); do
			go mod edit -replace="$(module_path "$other")=$PWD/$other" "$mod"
		done
	fi
	case "$1 ${2-}" in # by a flag where it can be: the programs that a test starts inherit GOFLAGS
	"go mod") (cd "$module" && GOWORK=off go mod "$3" -modfile="$mod" "${@:4}") ;;
	go\ *) (cd "$module" && GOWORK=off go "$2" -modfile="$mod" "${@:3}") ;;
	*) (cd "$module" && GOWORK=off GOFLAGS="${GOFLAGS-} -modfile=$mod" "$@") ;;
	esac
}

# copy_of_mod names the file in which alone keeps its copy of a module's go.mod.
copy_of_mod() { echo "$scratch/mod/${1//\//_}.mod"; }

module_path() { sed -n 's/^module //p' "$1/go.mod"; }

# no_programs fails when a file that git knows or would add is so big that it must be a program or an archive.
no_programs() {
	git ls-files -z --cached --others --exclude-standard --deduplicate | { xargs -0 wc -c 2>/dev/null || true; } | # without those just deleted
		awk '$1 > 2000000 && $2 != "total"' >"$scratch/programs"
	is_empty "too big for a source" "$scratch/programs"
}

# is_empty fails when a file that lists offenders names any.
is_empty() {
	if [[ -s $2 ]]; then
		echo "$1:"
		cat "$2"
		return 1
	fi
}

# make_scratch gives this run a temporary directory of its own, so that what a test leaves there can be found.
make_scratch() {
	scratch=$(cd "$(mktemp -d "${TMPDIR:-/tmp}/redlock-ci.XXXXXX")" && pwd -P) # as /proc will name it
	chmod 755 "$scratch" # tests run programs from it as other users
	mkdir "$scratch/tmp" "$scratch/bin"
	export TMPDIR="$scratch/tmp"
	trap clean_up EXIT
}

# use_huge_pages lets programs have pages of 2 MB until usual_pages. Where a virtual machine's page faults are slow, compilers
# take a third less time. It is a setting of the whole machine, so only a machine that does nothing else gets it.
huge_pages=/sys/kernel/mm/transparent_hugepage/enabled
use_huge_pages() {
	if [[ -w $huge_pages ]]; then
		huge_pages_before=$(sed 's/.*\[\(.*\)\].*/\1/' "$huge_pages")
		echo always >"$huge_pages"
	fi
}

usual_pages() {
	if [[ ${huge_pages_before-} ]]; then echo "$huge_pages_before" >"$huge_pages"; fi
}

clean_up() {
	local status=$? pid
	usual_pages
	for pid in "$scratch"/beside.*.pid; do
		if [[ -e $pid ]]; then kill -- "-$(cat "$pid")" 2>/dev/null || true; fi
	done
	rm -rf "$scratch"
	return "$status"
}

# vulnerability_database_answers asks for the database's index, briefly.
vulnerability_database_answers() {
	local database="${GOVULNDB:-https://vuln.go.dev}"
	if command -v curl >/dev/null; then
		curl -fsS -o /dev/null --max-time 10 "$database/index/db.json" 2>/dev/null
	elif command -v wget >/dev/null; then
		wget -q -O /dev/null -T 10 -t 1 "$database/index/db.json" 2>/dev/null
	else
		timeout 10 bash -c '</dev/tcp/vuln.go.dev/443' 2>/dev/null
	fi
}

# left_processes lists the processes whose working directory lies in this run's temporary directory. Servers change
# their titles, but a test server never leaves its data directory.
left_processes() {
	local cwd pid
	for cwd in /proc/[0-9]*/cwd; do
		pid=${cwd#/proc/}
		pid=${pid%/cwd}
		if [[ $(readlink "$cwd" 2>/dev/null) == "$TMPDIR"* ]]; then
			printf '%s %s\n' "$pid" "$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"
		fi
	done
}

no_processes_left() {
	local left
	left=$(left_processes)
	if [[ -n $left ]]; then
		printf '%s\n' "$left"
		return 1
	fi
}

# checkout lists what git sees changed or new in it.
checkout() { git status --porcelain --untracked-files=all; }

# checkout_is_still fails when something else is there than a file lists: a test wrote beside its sources.
checkout_is_still() { checkout | diff "$1" -; }

no_files_left() {
	local left
	left=$(find "$TMPDIR" -mindepth 1 -maxdepth 2 | head -n 20)
	if [[ -n $left ]]; then
		printf '%s\n' "$left"
		return 1
	fi
}
