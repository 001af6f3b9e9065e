#!/usr/bin/env bash
# A Redlock in bash alone, for redlock-chaos -exec; docs/evidence/bash.md describes it.
#
# It is an example, not a lock to use: no waiting, no fencing, no renewal. With --on-error-yes it takes a master without
# an answer for one that said yes, as a script does that ignores a status; redlock-chaos finds that out.
set -u
trap '' PIPE # a master may be gone, and a caller that knows enough reads no further votes
silent=none
[[ ${1-} == --on-error-yes ]] && silent=yes
release="if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
extend="if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0"
masters=()

# now_ms: the clock that nobody sets, in steps of ten milliseconds.
now_ms() { read -r up _ </proc/uptime; now=$((10#${up/./} * 10)); }

seconds() { printf -v within %d.%03d $(($1 / 1000)) $(($1 % 1000)); }

# say WORD...: a request on $conn.
say() {
	local word text="*$#"$'\r\n'
	for word; do text+="\$${#word}"$'\r\n'"$word"$'\r\n'; done
	printf %s "$text" >&"$conn"
}

# hear MS: the answer, yes, no or none.
hear() {
	local line within
	seconds "$1"
	vote=none
	read -r -t "$within" -u "$conn" line || return 0
	case $line in
	$'$-1\r' | $':0\r') vote=no ;;
	-*) ;;
	*) vote=yes ;;
	esac
}

# try MS MASTER WORD...: one request on a connection of its own. Nothing is sent on one that took so long to get that
# nobody waits for the vote any more.
try() {
	local within=$1 master=$2 begun
	shift 2
	vote=none conn=
	now_ms
	begun=$now
	{ exec {conn}<>"/dev/tcp/${master%:*}/${master##*:}"; } 2>/dev/null || return 0
	now_ms
	((now - begun <= within)) && say "$@" 2>/dev/null && hear "$within"
}

# set_key MS MASTER KEY OWNER TTL: prints the vote. A yes that comes later, or that nobody reads, is taken back on the same
# connection: on another one that request could come before the one that it takes back. If that connection is dead,
# another one is right.
set_key() {
	try "$1" "$2" SET "$3" "$4" NX PX "$5"
	echo "${vote/none/$silent} $2" 2>/dev/null || vote=none
	[[ $vote == none && -n $conn ]] || return 0
	say EVAL "$release" 1 "$3" "$4" 2>/dev/null && hear 1000 && hear 1000
	[[ $vote != none ]] || ask_release "$@" 2>/dev/null
}

# ask_release MS MASTER KEY OWNER TTL: prints the vote. A master without an answer is asked again until it has one, or the
# key has expired there.
ask_release() {
	local end
	now_ms
	end=$((now + $5))
	try "$1" "$2" EVAL "$release" 1 "$3" "$4"
	echo "$vote $2"
	while [[ $vote == none && $now -lt $end ]]; do
		[[ -z $conn ]] || exec {conn}>&-
		read -r -t 0.1 -u "$never"
		try "$1" "$2" EVAL "$release" 1 "$3" "$4"
		now_ms
	done
}

ask_extend() {
	try "$1" "$2" EVAL "$extend" 1 "$3" "$4" "$5"
	echo "$vote $2"
}

# everywhere HOW KEY OWNER TTL MASTER...: asks these masters at once. What they said is in yes, no and none.
everywhere() {
	local how=$1 key=$2 owner=$3 ttl=$4 timeout votes vote m within
	shift 4
	timeout=$((ttl / 20 > 60 ? ttl / 20 : 60))
	seconds $((2 * timeout)) # to get a connection, and for the answer
	exec {votes}< <(for m; do "$how" "$timeout" "$m" "$key" "$owner" "$ttl" & done)
	yes=() no=() none=()
	while ((${#yes[@]} + ${#no[@]} + ${#none[@]} < $#)) && read -r -t "$within" -u "$votes" vote m; do
		case $vote in
		yes) yes+=("$m") ;;
		no) no+=("$m") ;;
		none) none+=("$m") ;; # anything else is the end of a line whose beginning came too late
		esac
	done
	exec {votes}<&-
}

acquire() {
	local id=$1 key=$2 ttl=$3 begun valid owner why=held
	now_ms
	begun=$now
	valid=$((ttl - ttl / 100 - 12)) # clocks of masters may run one percent faster, and this one has steps
	read -r owner </proc/sys/kernel/random/uuid
	everywhere set_key "$key" "$owner" "$ttl" "${masters[@]}"
	now_ms
	if ((${#yes[@]} >= quorum && now - begun < valid)); then
		printf '{"id":%s,"hold":"%s %s %s","owner":"%s","valid_ms":%s}\n' "$id" "$key" "$owner" "$ttl" "$owner" "$valid"
		return
	fi
	((${#yes[@]} + ${#no[@]} >= quorum)) || why=no-quorum
	printf '{"id":%s,"error":"%s","message":"%s of %s masters"}\n' "$id" "$why" "${#yes[@]}" "${#masters[@]}"
	# The others have no key, or set_key takes it back. A vote that came too late to be read may be a yes.
	local m keys=()
	for m in "${masters[@]}"; do
		[[ " ${no[*]} ${none[*]} " == *" $m "* ]] || keys+=("$m")
	done
	everywhere ask_release "$key" "$owner" "$ttl" "${keys[@]}"
}

# operate HOW ID KEY OWNER TTL: an extension or a release.
operate() {
	everywhere "$1" "$3" "$4" "$5" "${masters[@]}"
	if ((${#yes[@]} < quorum)); then
		printf '{"id":%s,"error":"lost","message":"%s of %s masters"}\n' "$2" "${#yes[@]}" "${#masters[@]}"
	elif [[ $1 == ask_extend ]]; then
		printf '{"id":%s,"valid_ms":%s}\n' "$2" $(($5 - $5 / 100 - 12))
	else
		printf '{"id":%s}\n' "$2"
	fi
}

# field NAME: the value in $line. Enough for this protocol's requests, and no JSON in general.
field() {
	value=
	[[ $line =~ \"$1\":(\"([^\"]*)\"|([0-9]+)) ]] && value=${BASH_REMATCH[2]}${BASH_REMATCH[3]}
}

exec {never}<> <(:) # nothing ever comes from here: a pause without another process
while read -r line; do
	field id && id=$value
	field op && op=$value
	field ttl_ms && ttl=$value
	field key && key=$value
	field hold && read -r key_held owner ttl_held <<<"$value"
	case $op in
	open)
		[[ $line =~ \"masters\":\[([^]]*)\] ]]
		IFS=, read -ra masters <<<"${BASH_REMATCH[1]//\"/}"
		quorum=$((${#masters[@]} / 2 + 1))
		printf '{"id":%s}\n' "$id"
		;;
	acquire) acquire "$id" "$key" "$ttl" & ;;
	extend) operate ask_extend "$id" "$key_held" "$owner" "$ttl" & ;;
	release) operate ask_release "$id" "$key_held" "$owner" "$ttl_held" & ;;
	close)
		printf '{"id":%s}\n' "$id"
		exit
		;;
	cancel) ;; # an attempt takes a twentieth of the ttl, so it need not be cancelled
	*) printf '{"id":%s,"error":"unsupported"}\n' "$id" ;;
	esac
done
