#!/bin/bash
# make bench-same-run [CHILDREN=5] [AT_ONCE=60] [RESULTS=file] [RAW=file]
#
# Every event that can be counted here, but those of the machine as a whole and
# clocks, in one run that perf stat and smco-trace count at once, AT_ONCE together.
# What is not the same is in a table. perf stat counts our stops, we do not.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
# shellcheck source=t/same-run-lib.sh
. "$SRC/t/same-run-lib.sh"
: "${CHILDREN:=5}" "${AT_ONCE:=60}" "${RAW:=}"
FIXTURES=$BUILD/t/fixtures
PATH=$BUILD:$PATH
wait_for() { # SECONDS COMMAND...
	local end=$((SECONDS + $1))
	shift
	until "$@" 2>/dev/null; do
		[ $SECONDS -lt $end ] || fail "waited in vain for: $*"
		sleep 0.02
	done
}

smco-trace --list-events | awk '$1 == "yes" { print $2 }' | grep -v '^syscalls-\|-clock$\|/$' >names
while mapfile -t -n "$AT_ONCE" few && [ ${#few[@]} -gt 0 ]; do
	both "$(IFS=,; echo "${few[*]}")" "$CHILDREN" </dev/null || fail "not counted: ${few[*]}"
	join perf us
done <names >counts
[ -z "$RAW" ] || cp counts "$RAW"
{
	echo
	echo "## $(date -u +%Y-%m-%d), $(nproc) CPUs, Linux $(uname -r): each event, in the same run as perf stat"
	echo
	awk '{ all++; some += $2 > 0; same += $2 == $3
			d = $3 - $2; close_by += d <= $2 / 1000 && -d <= $2 / 1000 }
		$2 != $3 { row[++nr] = "| " $1 " | " $2 " | " $3 " |" }
		END { printf "%d events, %d of them happened. %d are the same, %d within 0.1 %%.\n", all, some, same, close_by
			if (nr) print "\n| event | perf stat | smco-trace |\n| --- | --- | --- |"
			for (i = 1; i <= nr; i++) print row[i] }' counts
} | tee -a "$RESULTS"
