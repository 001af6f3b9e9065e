# Functions of .ci/run. Sourced, not run.

# section prints a heading with the time since the start.
section() { printf '\n=== %02d:%02d  %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$1"; }

# check runs one check under its own heading; verdict fails when any of them did.
failures=()
check() {
	section "$1"
	"${@:2}" || failures+=("$1")
}

verdict() {
	if ((${#failures[@]} > 0)); then
		printf 'FAILED: %s\n' "${failures[@]}"
		return 1
	fi
	echo "all checks passed"
}

# modules lists the directories of go.work, the root first.
modules() { go work edit -json | sed -n 's/.*"DiskPath": "\(.*\)".*/\1/p' | sort; }

# each_module runs a command in every module as a user of that module alone would: without the workspace. It goes on
# after a failure, so that one run shows them all.
each_module() { in_modules "$(modules)" "$@"; }

# each_nested_module is each_module without the root.
each_nested_module() { in_modules "$(modules | grep -Fvx .)" "$@"; }

in_modules() {
	local list=$1 module failed=0
	shift
	for module in $list; do
		echo "--- $module: $*"
		(cd "$module" && GOWORK=off "$@") || failed=1
	done
	return "$failed"
}

# go_files lists the Go files that git knows or would add.
go_files() {
	local file
	git ls-files --cached --others --exclude-standard --deduplicate -- '*.go' | while read -r file; do
		if [[ -e $file ]]; then printf '%s\n' "$file"; fi # not those just deleted
	done
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
	mkdir "$scratch/tmp" "$scratch/bin"
	export TMPDIR="$scratch/tmp"
	trap clean_up EXIT
}

clean_up() {
	local status=$?
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

no_files_left() {
	local left
	left=$(find "$TMPDIR" -mindepth 1 -maxdepth 2 | head -n 20)
	if [[ -n $left ]]; then
		printf '%s\n' "$left"
		return 1
	fi
}
