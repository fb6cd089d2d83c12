#!/bin/bash
# A reader that was written from reports/FORMAT.md alone, in another language,
# says of every trace what smco-report says.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"

prereq_PYTHON() { python3 -c 'import zlib, subprocess'; }
prereq_ZSTD() { zstd --version; }
need PYTHON ZSTD

# read_both STATUS TRACE [FROM TO [THREAD]] - records as theirs and ours, keys and
# stacks as theirs.tables; how many chunks were read as theirs.err.
read_both() {
	local status=$1 trace=$2
	shift 2
	test_exit "$status" python3 "$SRC/t/read-trace.py" "$trace" "$@" \
		>theirs.all 2>theirs.err || { cat theirs.err && return 1; }
	grep '^[0-9]' theirs.all >theirs
	grep -v '^[0-9]' theirs.all | sort >theirs.tables
	test_exit "$status" smco-report --juwel ${1:+--from "$1ns"} \
		${2:+--to "$2ns"} ${3:+--thread "$3"} "$trace" >ours || return 1
	[ -s ours ] || { echo "$trace: no records" && return 1; }
	# Of one that is not whole the last line, and no other, is a mark.
	if [ "$status" != 0 ]; then
		tail -n 1 ours | grep -q '^# smco-report: ' || return 1
		sed -i '$d' ours
	fi
	cmp ours theirs
}
# same STATUS TRACE STACKS - both see the same records, keys, and stacks with the
# names of their frames, of which there are more than STACKS.
same() {
	read_both "$1" "$2" || return 1
	"$BUILD/t/drive/tables-drive" "$2" | sort >ours.tables
	[ "$(grep -c '^stack .*|' ours.tables)" -ge "$3" ] ||
		{ cat ours.tables && return 1; }
	diff ours.tables theirs.tables
}
# sought TRACE FROM TO [THREAD] - by the index they find what reading everything
# finds, and do not read everything.
sought() {
	local nr of rest
	smco-report --juwel "$1" >all
	awk -v from="$2" -v to="$3" -v thread="$4" '$2 >= from && $2 < to &&
		(thread == "" || $4 == thread)' all >within
	read_both 0 "$@" || return 1
	cmp within theirs || return 1
	read -r nr of rest <theirs.err
	cat theirs.err
	[ "$of" = of ] && [ "$nr" -gt 0 ] && [ "$nr" -lt "${rest%% *}" ]
}
"$BUILD/t/unit/u-summary-text" sample.trace || exit 1
ok "a session" same 0 sample.trace 5
"$BUILD/t/unit/u-trace-roundtrip" random.trace >out || exit 1
ok "random records of every kind" same 0 random.trace 0
ok "these were enough" test "$(smco-report --juwel random.trace | wc -l)" = 20000
if prereq_PTRACE; then
	smco-trace -q -t 10 --nap 50ms -o real.trace -- \
		"$FIXTURES/nap-schedule" -d 3000 >out 2>&1 </dev/null || true
	ok "a real one, its frames named at its end" same 0 real.trace 5
fi
"$BUILD/t/unit/u-trace-live" columns.trace modelled.trace >out || exit 1
ok "by the index, some time" sought columns.trace 20500 20600
ok "by the index, a thread" sought columns.trace 0 99999 33
ok "by the index, both" sought columns.trace 3000 40000 33
ok "by the index, chunks that need others" sought modelled.trace 36000 40000
head -c 300000 random.trace >cut.trace
ok "one that was cut" same 10 cut.trace 0
cp random.trace bad.trace
printf 'oops' | dd of=bad.trace bs=1 seek=200000 conv=notrunc status=none
ok "one that is damaged in the middle" same 11 bad.trace 0
cp "$SRC/t/format-4.trace" .
smco-report --juwel format-4.trace >ours
ok "a trace of format 4 is read as before" cmp ours "$SRC/t/format-4.juwel"
# Stacks are defined twice there. Records, then keys and stacks.
cp "$SRC/t/format-5.trace" .
{
	smco-report --juwel format-5.trace
	"$BUILD/t/drive/tables-drive" format-5.trace | sort
} >ours
ok "a trace of format 5 is read as before" cmp ours "$SRC/t/format-5.text"
# Modelled otherwise. Records, among them what samples stand for, then stacks.
{
	smco-report --juwel "$SRC/t/short/python3.trace"
	smco-report --flamegraph "$SRC/t/short/python3.trace" | sed 's/ [0-9]*$//'
} | sha256sum >ours
ok "a trace of format 6 is read as before" test "$(cut -d ' ' -f 1 ours)" = \
	6a3072ccba68feb686bf3ac6f600bf1a7ea3a00ca52229817bb7501227af487e
ok "the reader is short" test "$(wc -l <"$SRC/t/read-trace.py")" -lt 300

done_testing
