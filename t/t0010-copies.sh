#!/bin/bash
# Copies of a program whose memory is watched, followed or let go: they see
# their data, whatever was planted in their parent.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

"$FIXTURES/fork-data" 0 2 >want
tail -n 1 want | grep -q EXIT-SUCCESS || exit 1

# copies MECHANISM OPTION
copies() {
	smco-trace -t 50 --nap 300ms --mechanism="$1" "$2" -o t.trace -- \
		"$FIXTURES/fork-data" >got 2>summary
	local status=$?
	cat summary
	[ $status -eq 0 ] && diff want got
}
# was_watched MECHANISM: naps were seen, so there was something planted.
was_watched() {
	grep -q "^mechanism  $1:" summary &&
		grep -q "naps of at least 300 ms" summary
}
# On a busy machine there may be no room for that: then once more, of the same.
watched_at_last() {
	for _ in 1 2 3 4; do
		was_watched "$1" && return
		copies "$1" "$2" || return
	done
	was_watched "$1"
}
for mechanism in bits mprotect uffd pagescan; do
	for follow in --follow --no-follow; do
		ok "$mechanism $follow: data" copies $mechanism $follow
		if grep -q "^mechanism  none" summary; then
			TAP_NR=$((TAP_NR + 1))
			echo "ok $TAP_NR # SKIP no $mechanism here"
		else
			ok "$mechanism $follow: was watched" \
				watched_at_last $mechanism $follow
		fi
	done
done

done_testing
