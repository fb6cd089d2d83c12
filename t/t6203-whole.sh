#!/bin/bash
# What is printed of a trace that is cut or damaged, or by a tool that has not
# enough memory, never looks as if it were all; and no name of a file and no
# text of a trace makes a message more than one line.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"

export LC_ALL=C.UTF-8
unset PAGER SMCO_PAGER COLUMNS
"$BUILD/t/unit/u-html" 63 30000 whole.trace >/dev/null || exit 1
size=$(stat -c %s whole.trace)
head -c $((size * 2 / 3)) whole.trace >cut.trace
# In the records: of these some are lost, how many chunks depends on when they
# were written; of what names the stacks nothing.
cp whole.trace bad.trace
printf 'harm' | dd of=bad.trace bs=1 seek=$((size / 2)) conv=notrunc status=none

# Forms that are read line by line: a last line that is none of theirs.
lines=(--csv "--naps --csv" "--counters --csv" "--events --csv" --juwel
	--flamegraph=naps)
# marked STATUS WORDS TRACE ARGUMENT...
marked() {
	local status=$1 words=$2 trace=$3
	shift 3
	test_exit "$status" smco-report "$@" "$trace" >out 2>err || return 1
	tail -n 1 out | grep -q "^# smco-report: $trace $words" &&
		[ "$(grep -c '^#' out)" = 1 ] &&
		test_exit "$status" smco-report "$@" "$trace" -o out2 2>err &&
		cmp out out2
}
unmarked() { smco-report "$@" whole.trace >out && ! grep -q '^#' out; }
for form in "${lines[@]}"; do
	# shellcheck disable=SC2086 # words
	{
		ok "$form of a trace that was cut" marked 10 "has no end" cut.trace $form
		ok "$form of a damaged one" marked 11 "is damaged: [1-9][0-9]* part" bad.trace $form
		ok "$form of a whole one" unmarked $form
	}
done
two() {
	test_exit 11 smco-report --csv --naps cut.trace whole.trace bad.trace >out 2>err
	[ "$(grep -c '^# smco-report: cut.trace has no end' out)" = 1 ] &&
		[ "$(grep -c '^# smco-report: bad.trace is damaged' out)" = 1 ] &&
		[ "$(grep -c '^#' out)" = 2 ]
}
ok "of several those that are not whole are named" two
table() {
	test_exit 10 smco-report --naps --top 2 --width 60 cut.trace >out 2>err
	tail -n 2 out | tr '\n' ' ' | grep -q 'cut.trace has no end: ' && ! grep -q '.\{61,\}' out
}
ok "a table for people says so, too" table

# Documents say so in themselves.
# says TRACE ARGUMENTS EXPRESSION - d is the document, in python3, which reads
# some ten megabytes in no time.
says() {
	# shellcheck disable=SC2086 # words
	smco-report -o doc $2 "$1" 2>/dev/null
	python3 -c 'import json, sys; d = json.load(open("doc")); sys.exit(not eval(sys.argv[1]))' "$3"
}
for form in "--naps --json" "--events --json" "--overhead --json"; do
	ok "$form of a trace that was cut" says cut.trace "$form" 'd["truncated"] is True and d["damaged_chunks"] == 0'
	ok "$form of a damaged one" says bad.trace "$form" 'd["truncated"] is False and d["damaged_chunks"] > 0 and d["lost_records"] > 9'
	ok "$form of a whole one" says whole.trace "$form" 'd["truncated"] is False and d["damaged_chunks"] == 0 and d["lost_records"] == 0'
done
ok "--json of a trace that was cut" says cut.trace --json 'd["run"]["truncated"] is True'
ok "--perfetto of it" says cut.trace --perfetto 'd["otherData"]["truncated"]'
ok "--perfetto of a damaged one" says bad.trace --perfetto 'd["otherData"]["damaged_chunks"] and d["otherData"]["lost_records"] > 9'
ctf() {
	smco-report --ctf "$1" "$2" 2>/dev/null
	grep -qx "	truncated = $3;" "$1/metadata" && grep -qx "	damaged_chunks = $4;" "$1/metadata" || return 1
	! command -v babeltrace2 >/dev/null || babeltrace2 "$1" >/dev/null
}
ok "CTF of a trace that was cut" ctf ctf1 cut.trace 1 0
ok "CTF of a damaged one" ctf ctf2 bad.trace 0 "[1-9][0-9]*"

# Every allocation fails once, or as many as there is time for.
"${CC:-cc}" -O1 -fno-builtin -shared -fPIC -o fail.so "$SRC/t/fixtures/preload/fail-alloc.c" || exit 1
"$BUILD/t/unit/u-html" 63 6 few.trace >/dev/null || exit 1
preloaded() { LD_PRELOAD=$SCRATCH/fail.so LC_ALL=C "$@"; }
# looks_whole WANT - "got" is not what is wanted, and nothing shows it.
looks_whole() {
	case $1 in
	*json | *perfetto) tail -n 1 got | grep -qx '}}*' ;;
	*html) [ "$(tail -n 1 got)" = '</body></html>' ] ;;
	*) [ -s got ] && ! tail -n 3 got | grep -q 'out of memory' ;;
	esac
}
# short FORM TOOL ARGUMENT... - the same, or failed and not whole.
short() {
	local form=$1 tool nr step status i=1
	shift
	tool=$(command -v "$1")
	shift
	"$tool" "$@" >want 2>/dev/null || return 1
	nr=$(preloaded "$tool" "$@" 2>&1 >got | tail -n 1)
	[ "$nr" -gt 50 ] || return 1
	step=$((nr / 25 + 1))
	for ((; i <= nr; i += step)); do
		FAIL_AT=$i preloaded "$tool" "$@" >got 2>err </dev/null
		status=$?
		if [ $status = 0 ]; then
			cmp want got || { echo "allocation $i: other output" && return 1; }
		elif [ $status -gt 2 ]; then
			echo "allocation $i: status $status" && cat err && return 1
		elif [ "$(wc -l <err)" != 1 ] || looks_whole "$form"; then
			echo "allocation $i: status $status" && cat err && return 1
		fi
	done
}
export LC_ALL=C
for form in "" --json --html --perfetto "--naps --json" "--naps --csv" --counters --juwel --flamegraph=naps --phase-counters "--events --top 9"; do
	# shellcheck disable=SC2086 # words
	ok "no memory for smco-report $form" short "$form" smco-report $form few.trace
done
for form in --all --json --html; do
	ok "no memory for smco-diff $form" short "$form" smco-diff $form few.trace few.trace
done
export LC_ALL=C.UTF-8

# Names that are hostile.
evil=$'a\nb\033[31m'
# one_line STATUS COMMAND...
one_line() {
	test_exit "$@" >out 2>err </dev/null
	[ "$(wc -l <err)" = 1 ] && grep -q 'a?b?\[31m' err && ! grep -q $'\033' out err
}
echo hello >"$evil.text"
: >"$evil.empty"
cp cut.trace "$evil.cut"
cp bad.trace "$evil.bad"
cp whole.trace "$evil.whole"
mkdir "$evil.dir"
ok "a hostile name: no such file" one_line 9 smco-report "$evil"
ok "not a trace" one_line 3 smco-report "$evil.text"
ok "empty" one_line 5 smco-report "$evil.empty"
ok "a directory" one_line 7 smco-report "$evil.dir"
ok "cut" one_line 10 smco-report --csv "$evil.cut"
ok "damaged" one_line 11 smco-report "$evil.bad"
ok "in an option" one_line 2 smco-report --top "$evil" whole.trace
ok "an option" one_line 2 smco-report "--$evil" whole.trace
ok "an output" one_line 1 smco-report --json whole.trace -o "$evil/x"
ok "no such file to compare" one_line 2 smco-diff "$evil" whole.trace
ok "not a trace to compare" one_line 2 smco-diff "$evil.text" whole.trace
ok "one that is cut" one_line 2 smco-diff "$evil.cut" whole.trace
ok "one that is damaged" one_line 11 smco-diff "$evil.bad" whole.trace
ok "a rule" one_line 2 smco-diff --fail-on "$evil" whole.trace whole.trace
clean() { smco-report "$@" "$evil.whole" >out && ! grep -q $'\033' out; }
for form in "" --json --naps --csv; do
	# shellcheck disable=SC2086 # words
	ok "shown all the same: $form" clean $form
done

# A name so long that there is no room for it has room for what is said of it.
long=$(printf 'd%.0s' {1..200})/$(printf 'e%.0s' {1..200})
mkdir "${long%/*}" && cp cut.trace "$long"
# says_why STATUS WORDS COMMAND...
says_why() {
	local status=$1 words=$2
	shift 2
	test_exit "$status" "$@" >out 2>err
	[ "$(wc -l <err)" = 1 ] && grep -q "e: $words\|e $words" err
}
ok "a long name: what is missing" says_why 10 "has no end: .* was shown" smco-report "$long"
ok "of a file that is not there" says_why 9 "No such file" smco-report "x$long"
ok "to compare" says_why 2 "the trace has no end" smco-diff "$long" whole.trace
ok "to write" says_why 1 "No such file" smco-report --json whole.trace -o "x$long"

# A stream takes no more memory than a file, and what is no trace is not read.
endless() { (ulimit -v 1000000 && report_refuses 3 "not a trace" /dev/zero); }
ok "a stream without an end that is no trace" endless
smco-report --csv --naps cut.trace 2>/dev/null | grep -v '^#' >want
# stream LIMIT... - the trace, and 100 MB behind it; limits as of ulimit.
stream() {
	{ cat cut.trace && head -c 100000000 /dev/zero; } |
		(ulimit "$@" && exec smco-report --csv --naps -) 2>err | grep -v '^#' | cmp - want
}
ok "a stream of 100 MB in 50 MB of memory" stream -v 50000
ok "and all in memory where there is no room for files" stream -f 1000

done_testing
