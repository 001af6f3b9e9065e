# What .ci/servers test does. Sourced.

# suites are the tests that are run on every server: a title, packages with commas between them, and which of their tests.
suites() {
	cat <<-'END'
		single ./single Hazard|Share|Fence|Queue|Bundle|Script
		locks .,./internal/scenarios,./internal/hold,./internal/contend,./internal/hazards ^(TestSource|TestS[234]|TestHolder|TestAHolderMadeByHand|TestThisLibrary|TestALock(OfThis|IsTaken)|TestALapsed|TestOnlyAFree|TestEveryKind|TestHazard(27|28|33|36|50|52|54|64)|Example)
		doctor ./audit .
		redsync ./bench/internal/subject Redsync|BothLibraries
	END
}

# build makes the programs and the tests' binaries once for all servers.
build() {
	local packages package
	suites | while read -r _ packages _; do
		for package in ${packages//,/ }; do
			mkdir -p "$work/$package"
			go test -c -o "$work/$package/tests" "$package"
		done
	done
	go build -o "$work/redlock" ./cmd/redlock
	go build -o "$work/redlock-chaos" ./chaos/cmd/redlock-chaos
}

# on_one tries a server, and writes its line of the table; what failed is in its log.
on_one() {
	local name=$1 log="$work/$1.log" cells=() title packages which began=$SECONDS
	[[ $name == this-machine ]] || PATH="$servers/$name:$PATH"
	mkdir -p "$work/$name"
	export TMPDIR="$work/$name"
	: >"$log"
	local version
	version=$("$(command -v redis-server || command -v valkey-server)" --version | sed -E 's/^([A-Z][a-z]+) server v=([^ ]*).*/\1 \2/')
	if [[ $name == redis-6.* ]]; then
		cells=("$(tell refused_clearly)")
		[[ ${cells[0]} != ok ]] || cells=("too old for all but plain locks, and said to be")
	else
		while read -r title packages which; do
			cells+=("$(tell run_suite "$title" "$packages" "$which")")
		done < <(suites)
		cells+=("$(tell with_masters healthy)" "$(tell with_masters probed)" "$(tell chaos_scenario)")
		! grep -q "^UNKNOWN" "$log" || cells[-1]=unknown
	fi
	printf '%s\t%s' "$name" "$version" >"$work/$name.row"
	printf '\t%s' "${cells[@]}" "$((SECONDS - began)) s" >>"$work/$name.row"
}

# tell says whether a step succeeded.
tell() {
	if "$@" >>"$log" 2>&1; then echo ok; else
		echo "=== FAILED on $name: $*" >>"$log"
		echo FAILED
	fi
}

# run_suite runs two packages at a time, since most tests wait.
run_suite() {
	tr , '\n' <<<"$2" | work=$work which=$3 xargs -P 2 -I '{}' bash -c \
		'cd "{}" && "$work/{}/tests" -test.run "$which" -test.parallel 3 -test.timeout 4m -test.failfast'
}

# with_masters runs a function with three masters that fsync always; their URLs are in $masters.
with_masters() (
	local i pids=() urls=()
	trap '((${#pids[@]} == 0)) || { kill "${pids[@]}"; wait; } 2>/dev/null' EXIT
	for i in 1 2 3; do
		mkdir -p "$TMPDIR/m$i"
		redis-server --port 0 --unixsocket "$TMPDIR/$i.sock" --save '' --appendonly yes --appendfsync always --dir "$TMPDIR/m$i" &
		pids+=("$!")
		urls+=("unix://$TMPDIR/$i.sock")
	done
	for i in 1 2 3; do
		until [[ -S $TMPDIR/$i.sock ]]; do
			kill -0 "${pids[i - 1]}" || exit 1
			sleep 0.05
		done
	done
	masters=$(IFS=,; echo "${urls[*]}")
	"$@"
)

healthy() { "$work/redlock" doctor -strict -masters "$masters"; }

probed() { "$work/redlock" doctor -probe -masters "$masters"; }

# chaos_scenario fails when a promise was broken. On a machine that is short of processors the verdict may be that too little was
# seen; that the harness can judge is what other tests show.
chaos_scenario() {
	local status=0
	"$work/redlock-chaos" run -backend process -scenario everything -duration 5s -seed 1 -quiet -dir "$TMPDIR/chaos" || status=$?
	((status != 3)) || echo "UNKNOWN: too little was seen"
	((status == 0 || status == 3))
}

# refused_clearly wants a server that is too old to be named as such: by the doctor, and by a lock that asks more of it.
refused_clearly() { with_masters too_old; }

too_old() {
	local status=0 said
	said=$("$work/redlock" doctor -strict -masters "$masters") || status=$?
	echo "doctor: status $status: $said"
	[[ $status == 1 && $said == *"Use version 6.2 or later"* ]] || return 1
	"$work/redlock" run -fenced=false -masters "$masters" -key k -- true || return 1
	status=0
	said=$("$work/redlock" run -masters "$masters" -key k -wait 30s -- echo ran 2>&1) || status=$?
	echo "a fenced lock: status $status: $said"
	[[ $status == 69 && $said == *6.2* && $said != ran* ]]
}

# test_servers fetches what is not there yet, and tries the servers two at a time. A mirror that does not answer leaves one out.
test_servers() {
	local name names there=() failed=0
	cd "$(dirname "$0")/.."
	servers=${CI_SERVERS:-${XDG_CACHE_HOME:-$HOME/.cache}/redlock-servers}
	work=$(mktemp -d "${TMPDIR:-/tmp}/redlock-servers.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	names=("$@")
	case "$*" in
	"") mapfile -t names < <(echo this-machine && table | cut -d ' ' -f 1) ;;
	others)
		mapfile -t names < <(table | cut -d ' ' -f 1)
		set --
		;;
	esac
	for name in "${names[@]}"; do
		if [[ $name == this-machine ]] || "$0" fetch "$servers" "$name"; then
			there+=("$name")
		else
			echo "LEFT OUT: $name can't be had from the mirror; nothing is known about it"
			(($# == 0)) || failed=1 # it was asked for by name
		fi
	done
	if ((${#there[@]} == 0 && $# == 0)); then
		echo "NONE of them is there, so the machine's own is tried"
		there=(this-machine)
	fi
	build
	export GOFLAGS="${GOFLAGS:--buildvcs=false}"
	for name in "${there[@]}"; do
		while (($(jobs -pr | wc -l) >= 2)); do wait -n; done
		on_one "$name" &
	done
	wait
	{
		printf 'server\tversion\tsingle\troot\tdoctor\tredsync beside it\tdoctor -strict\tdoctor -probe\tchaos\ttime\n'
		for name in "${there[@]}"; do
			cat "$work/$name.row" || printf '%s\tit ended before its row' "$name"
			echo
		done
	} | column -t -s $'\t'
	for name in "${there[@]}"; do
		if [[ ! -e $work/$name.row ]] || grep -q FAILED "$work/$name.row"; then
			failed=1
			echo "--- $name"
			grep -E -A 6 '^ *--- FAIL' "$work/$name.log" | head -n 60 || true
			tail -n 40 "$work/$name.log"
		fi
	done
	return "$failed"
}
