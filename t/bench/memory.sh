#!/bin/bash
# t/bench/memory.sh [BLOCKS] - how much memory smco-trace takes for each live
# block that it knows: the difference between runs with BLOCKS (default 200000)
# and half as many, everything else the same. Prints a table; never passes or
# fails.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
blocks=${1:-200000}

# peak BLOCKS OPTION... - the most that smco-trace had in memory, in KiB: its
# own, what it shares with the program; and the most blocks that it knew.
peak() {
	local nr=$1 own=0 shared=0 pid a s known
	shift
	"$BUILD/smco-trace" -q -d 20 -o "$SCRATCH/trace" "$@" -- \
		"$BUILD/t/fixtures/many-blocks" "$nr" 20 >/dev/null &
	pid=$!
	while kill -0 $pid 2>/dev/null; do
		read -r a s < <(awk '/^RssAnon/ { a = $2 } /^RssShmem/ { s = $2 }
			END { print a, s }' "/proc/$pid/status" 2>/dev/null)
		[ "${a:-0}" -le "$own" ] || own=$a
		[ "${s:-0}" -le "$shared" ] || shared=$s
		sleep 0.05
	done
	wait $pid
	known=$("$BUILD/smco-report" --json "$SCRATCH/trace" |
		perl -ne 'while (/"known": *(\d+)/g) { $m = $1 if $1 > $m }
			END { print $m + 0 }')
	echo "$own $shared $known"
}

printf '%-24s %21s %21s %12s %8s\n' "memory of smco-trace" \
	"blocks known" "KiB" "bytes/block" "shared"
# line NAME OPTION...
line() {
	local name=$1 a b
	shift
	a=$(peak $((blocks / 2)) "$@")
	b=$(peak "$blocks" "$@")
	# shellcheck disable=SC2086 # three words each
	set -- $a $b
	awk -v name="$name" -v own1="$1" -v shared1="$2" -v known1="$3" \
		-v own2="$4" -v shared2="$5" -v known2="$6" 'BEGIN {
		nr = known2 - known1
		each = shared = "-"
		if (nr > 1000) {
			each = sprintf("%.1f", (own2 - own1) * 1024 / nr)
			shared = sprintf("%.1f", (shared2 - shared1) * 1024 / nr)
		}
		printf "%-24s %10d %10d %10d %10d %12s %8s\n", name, known1,
			known2, own1, own2, each, shared
	}'
}
# Without a limit every block is known and, used now and then, looked at.
line "-t unlimited" -t unlimited
