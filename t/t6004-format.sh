#!/bin/bash
# A reader that was written from reports/FORMAT.md alone, in another language,
# says of every trace what smco-report says.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"

prereq_PYTHON() { python3 -c 'import zlib, subprocess'; }
prereq_ZSTD() { zstd --version; }
need PYTHON ZSTD

# same STATUS TRACE... - each of them has records, and both see the same.
same() {
	local status=$1 t
	shift
	for t; do
		python3 "$SRC/t/read-trace.py" "$t" >theirs || return 1
		test_exit "$status" smco-report --juwel "$t" >ours || return 1
		[ -s ours ] || { echo "$t: no records" && return 1; }
		cmp ours theirs || return 1
	done
}
# The same of keys, and of stacks with the names of their frames.
same_tables() {
	python3 "$SRC/t/read-tables.py" "$1" >theirs.all || return 1
	"$BUILD/t/drive/tables-drive" "$1" >ours.all || return 1
	sort theirs.all >theirs && sort ours.all >ours || return 1
	[ "$(grep -c '^stack .*|' ours)" -gt "$2" ] || { cat ours && return 1; }
	diff ours theirs
}
"$BUILD/t/unit/u-summary-text" sample.trace || exit 1
ok "a session" same 0 sample.trace
ok "its keys and stacks" same_tables sample.trace 4
"$BUILD/t/unit/u-trace-roundtrip" random.trace >out || exit 1
ok "random records of every kind" same 0 random.trace
ok "these were enough" test "$(smco-report --juwel random.trace | wc -l)" = 20000
if prereq_PTRACE; then
	smco-trace -q -t 10 --nap 50ms -o real.trace -- \
		"$FIXTURES/nap-schedule" >out 2>&1 </dev/null || true
	ok "a real one" same 0 real.trace
	ok "its keys and stacks, each defined again with names" same_tables real.trace 4
fi
head -c 300000 random.trace >cut.trace
ok "one that was cut" same 10 cut.trace
cp random.trace bad.trace
printf 'oops' | dd of=bad.trace bs=1 seek=200000 conv=notrunc status=none
ok "one that is damaged in the middle" same 11 bad.trace
cp "$SRC/t/format-4.trace" .
smco-report --juwel format-4.trace >ours
ok "a trace of format 4 is read as before" cmp ours "$SRC/t/format-4.juwel"
ok "the reader is short" test "$(wc -l <"$SRC/t/read-trace.py")" -lt 300
ok "that of tables, too" test "$(wc -l <"$SRC/t/read-tables.py")" -lt 150

done_testing
