#!/bin/bash
# smco-diff as a command: options, errors, statuses, outputs; and two versions
# of a program, of which exactly what was planted is found.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"

export LC_ALL=C.UTF-8
unset PAGER SMCO_PAGER COLUMNS
"$BUILD/t/unit/u-diff-print" . || exit 1

# usage STATUS PATTERN ARGUMENT... - one line on stderr that fits PATTERN,
# nothing on stdout, that status.
usage() {
	local status=$1 pattern=$2
	shift 2
	test_exit "$status" smco-diff "$@" >out 2>err || return 1
	[ ! -s out ] || { echo "stdout is not empty" && return 1; }
	[ "$(wc -l <err)" = 1 ] || { cat err && return 1; }
	grep -q -- "^smco-diff: .*$pattern" err || { cat err && return 1; }
}

ok "no trace" usage 2 "two traces are needed"
ok "one trace" usage 2 "two traces are needed" v1.trace
ok "three traces" usage 2 "more with --base and --new" v1.trace v2.trace v2.trace
ok "a base without new" usage 2 "--new wants at least one" --base v1.trace
ok "a new without base" usage 2 "--base wants at least one" --new v1.trace
ok "a trace of no side" usage 2 '"v2.trace" is neither' v2.trace --base v1.trace --new v1.trace
ok "unknown option" usage 2 "unknown option --nonsense" --nonsense
ok "unknown short option" usage 2 "unknown option -x" -x
ok "option without its value" usage 2 "top wants a value" --top
ok "a percentage that is none" usage 2 '"many"' --min-change many v1.trace v2.trace
ok "standard input twice" usage 2 "can be read once" - -
ok "--accuracy with what is about changes" usage 2 "--accuracy and --top do not go" --accuracy --top 3 v1.trace v2.trace
ok "--accuracy with sides" usage 2 "--accuracy and --new do not go" --accuracy --base v1.trace --new v2.trace
ok "--accuracy of a stream" usage 2 "--accuracy reads files" --accuracy - v1.trace
ok "--accuracy by nothing" usage 2 "bare.trace: no ranges in the trace" --accuracy bare.trace bare.trace
ok "--accuracy of one trace" usage 2 "two traces are needed" --accuracy v1.trace
ok "a rule that is none" usage 2 "there is no 'nap.nonsense'" --fail-on 'nap.nonsense > 1' v1.trace v2.trace

# Bad input: one line each, and no output.
echo hello >text
: >empty
head -c 60000 /dev/zero >zeros
ok "no such file" usage 2 "nosuch: No such file" v1.trace nosuch
ok "a directory" usage 2 "Is a directory" . v1.trace
ok "not a trace" usage 2 "text: not a trace" text v1.trace
ok "not a trace, but large" usage 2 "zeros: not a trace" v1.trace zeros
ok "an empty file" usage 2 "empty: not a trace" empty v1.trace
head -c 64 v1.trace >header
ok "a trace with nothing in it" usage 2 "header: .*empty" header v1.trace
head -c -10 v1.trace >short
ok "a trace without its end" usage 2 "short: .*has no end.*--force" v1.trace short
cut_forced() {
	smco-diff --force v1.trace short >out && grep -q 'have no end' out
}
ok "a trace without its end, all the same" cut_forced
newer() {
	cp v1.trace newer
	perl -e 'open F, "+<", "newer"; binmode F; read F, $h, 60;
		substr($h, 8, 4) = pack "vv", 9, 9;
		$c = 0xffffffff;
		for (unpack "C*", $h) { $c ^= $_;
			$c = $c & 1 ? $c >> 1 ^ 0xedb88320 : $c >> 1 for 1 .. 8 }
		seek F, 0, 0; print F $h, pack "V", $c ^ 0xffffffff'
	usage 2 "newer: .*format 9" v1.trace newer
}
ok "a newer trace" newer
# harm FILE - in the middle: behind the keys, which say of which program it is.
harm() {
	local middle=$(($(stat -c %s "$1") / 2))
	printf 'harm' | dd of="$1" bs=1 seek=$middle conv=notrunc status=none
}
damaged() {
	cp v1.trace bad
	harm bad
	for format in --all --json --html "--fail-on=sites.new>0" --force; do
		test_exit 11 smco-diff "$format" v1.trace bad >out 2>err || return 1
		[ "$(wc -l <err)" = 1 ] &&
			grep -q '^smco-diff: bad is damaged: 1 part skipped' err || return 1
		case $format in
		--json) grep -q '"damaged_chunks": 1,' out ;;
		*) grep -q '1 damaged part of the traces skipped' out ;;
		esac || { echo "not said with $format" && return 1; }
	done
	test_exit 11 smco-diff bad v1.trace >out 2>err
}
ok "a damaged trace: the rest is compared, it is said, and in the status" damaged
cut_and_damaged() {
	cp short both
	harm both
	usage 2 "both: .*has no end" v1.trace both || return 1
	test_exit 11 smco-diff --force v1.trace both >out 2>err || return 1
	grep -q '1 of the traces have no end' out &&
		grep -q '1 damaged part of the traces' out
}
ok "a trace with both: both are said" cut_and_damaged
unreadable() {
	cp v1.trace locked && chmod 0 locked
	if [ "$(id -u)" = 0 ]; then
		chmod 755 . && setpriv --reuid 65534 --clear-groups \
			"$BUILD/smco-diff" locked v1.trace >out 2>err
	else
		smco-diff locked v1.trace >out 2>err
	fi
	[ $? = 2 ] && [ ! -s out ] && grep -q 'locked: Permission denied' err
}
ok "no permission" unreadable
ok "another program" usage 2 'different programs: .*"prog".*"other".*--force' v1.trace other.trace
forced() { smco-diff --force v1.trace other.trace >out && grep -q '^in all' out; }
ok "another program, all the same" forced

help() { smco-diff --help | grep -q -- --fail-on && smco-diff -h | grep -q usage; }
ok "help" help
version() { smco-diff -V | grep -qx "smco-diff ${SMCO_VERSION:-[0-9.]*}"; }
ok "version" version
full() { test_exit 2 smco-diff v1.trace v2.trace >/dev/full 2>err && grep -q 'No space' err; }
ok "to a full disk" full
json_full() { test_exit 2 smco-diff --json v1.trace v2.trace >/dev/full 2>err && grep -q 'No space' err; }
ok "JSON to a full disk" json_full

same() {
	cp v1.trace copy.trace
	smco-diff v1.trace copy.trace >out && grep -q '^sites *nothing changed, 5 unchanged' out &&
		! grep -q '^[0-9]' out
}
ok "the same run twice differs in nothing" same
stdin() {
	# shellcheck disable=SC2002
	cat v2.trace | smco-diff v1.trace - >out && grep -q '^2  *new' out
}
ok "from a pipe" stdin
several() {
	smco-diff --base v1.trace copy.trace --new v2.trace v2.trace -- v2.trace >out &&
		grep -q '^base .*2 runs' out && grep -q '^new .*3 runs' out
}
ok "several runs" several
top() {
	smco-diff --top 1 v1.trace v2.trace >out && grep -q '^1 ' out &&
		! grep -q '^2 ' out && grep -q 'more (--top)' out
}
ok "--top" top
frames() { smco-diff --frames 1 v1.trace v2.trace >out && grep -q 'more (--frames)' out; }
ok "--frames" frames
all() { smco-diff --all v1.trace v2.trace >out && grep -q '^[0-9]*  *same' out; }
ok "--all" all
min_change() {
	smco-diff --min-change 0.1 v1.trace v2.trace >out && grep -q '2 grown, 1 shrunk' out &&
		smco-diff --min-change 60% v1.trace v2.trace >out && grep -q 'sites *1 new, 1 shrunk, 1 gone;' out
}
ok "--min-change" min_change
ascii() { LC_ALL=C smco-diff --all v1.trace v2.trace >out && ! LC_ALL=C grep -q '[^ -~]' out; }
ok "ASCII outside UTF-8" ascii
esc=$(printf '\033')
color() {
	smco-diff --color always v1.trace v2.trace | grep -q "$esc" &&
		! smco-diff v1.trace v2.trace | grep -q "$esc" &&
		! smco-diff --color never v1.trace v2.trace | grep -q "$esc"
}
ok "--color" color
json() { smco-diff --json v1.trace v2.trace >out && [ "$(head -c 1 out)" = '{' ] && [ "$(tail -n 1 out)" = '}' ]; }
ok "--json" json
html() {
	smco-diff --html v1.trace v2.trace >out && [ "$(head -n 1 out)" = '<!DOCTYPE html>' ] &&
		[ "$(tail -n 1 out)" = '</body></html>' ] && ! grep -qi 'http[s]*://\|<script' out
}
ok "--html" html
to_file() {
	local form
	for form in --json --html --color=never; do
		smco-diff "$form" v1.trace v2.trace >out
		echo old >file
		smco-diff "$form" v1.trace v2.trace -o file && cmp out file || return 1
	done
	echo old >file
	test_exit 2 smco-diff -o file v1.trace /dev/null 2>err && [ "$(cat file)" = old ] &&
		test_exit 1 smco-diff -o - --fail-on 'sites.new > 0' v1.trace v2.trace >out && [ -s out ] &&
		test_exit 2 smco-diff -o no/where v1.trace v2.trace 2>err && grep -q 'no/where' err &&
		[ "$(wc -l <err)" = 1 ] && ! ls file?* 2>/dev/null
}
ok "-o writes all of it or nothing" to_file
cp v2.trace kept.trace
ok "-o that is one of the traces" usage 2 "kept.trace would replace a trace" -o kept.trace v1.trace kept.trace
ok "which stays" cmp v2.trace kept.trace

rules() {
	test_exit 1 smco-diff --fail-on 'sites.new > 0' v1.trace v2.trace >out &&
		grep -q '^fail-on *crossed: sites.new > 0: 1' out &&
		test_exit 0 smco-diff --fail-on 'sites.new > 1' v1.trace v2.trace >out &&
		grep -q '^fail-on *kept: ' out &&
		test_exit 1 smco-diff --fail-on 'sites.new>1' --fail-on 'nap.unused_bytes > +1%' \
			--json v1.trace v2.trace >out && grep -q '"crossed": true' out
}
ok "--fail-on decides the status" rules

about_nothing() {
	test_exit 2 smco-diff --fail-on 'counter.instuctions > +5%' v1.trace v2.trace >out 2>err &&
		test ! -s out && test "$(wc -l <err)" = 1 &&
		grep -q "v1.trace does not count instuctions but instructions" err &&
		test_exit 2 smco-diff --fail-on 'phases.new > 0' v1.trace v2.trace 2>err &&
		grep -q "v1.trace has no phases" err
}
ok "a rule about what the traces do not have is an error" about_nothing

prereq_SCRIPT() { script -qec true /dev/null; }
if prereq_SCRIPT >/dev/null 2>&1; then
	pager() { PAGER='sed s/^/P:/' script -qec "smco-diff v1.trace v2.trace" /dev/null </dev/null >out 2>&1 && grep -q '^P:in all' out; }
	ok "pager on a terminal" pager
fi

man_page() {
	MANWIDTH=80 man --warnings -l "$SRC/reports/smco-diff.1" >man.out 2>man.err &&
		[ ! -s man.err ] && grep -q 'EXIT STATUS' man.out
}
if command -v man >/dev/null; then
	ok "the man page formats" man_page
fi
options_documented() {
	local o
	for o in $(smco-diff --help | grep -o -- '--[a-z-]*' | sort -u); do
		sed 's/\\-/-/g' "$SRC/reports/smco-diff.1" | grep -q -- "$o" ||
			{ echo "$o is not in the man page" && return 1; }
		grep -q -- "$o" "$SRC/README.md" || { echo "$o is not in the README" && return 1; }
	done
}
ok "every option is in the man page and the README" options_documented
metrics_documented() {
	local m page
	for m in $(smco-diff --json v1.trace v2.trace | sed -n 's/^   *"\([a-z]*\.[a-z_]*\)": {$/\1/p' | sort -u) overhead duration; do
		for page in smco-diff.1 JSON.md; do
			grep -q -- "$m" "$SRC/reports/$page" ||
				{ echo "$m is not in $page" && return 1; }
		done
	done
}
ok "every metric is documented" metrics_documented
help_fits() { ! smco-diff --help | grep -q '.\{81\}'; }
ok "--help fits 80 columns" help_fits

# Two versions, built in different directories by different options, the
# second with 40 lines more at its head; five runs of each, beside each other, so
# that both have as much of a busy machine. They take as long in both but where
# one is very late: half as much again is planted at least. Smaller changes are
# u-diff's business.
if prereq_PTRACE >/dev/null 2>&1; then
	mkdir v1 v2
	cp "$SRC/t/fixtures/two-versions.c" v1/shop.c
	{
		for i in $(seq 40); do echo "/* $i */"; done
		cat v1/shop.c
	} >v2/shop.c
	(cd v1 && ${CC:-gcc} -g -O1 -o shop shop.c)
	(cd v2 && ${CC:-gcc} -g -O2 -DVERSION=2 -o shop shop.c)
	# runs A B OPTION...
	runs() {
		local i v pair=("$1" "$2")
		shift 2
		for i in 1 2 3 4 5; do
			for v in "${pair[@]}"; do
				smco-trace -q -t unlimited --nap 400ms "$@" \
					-o "$v/$i.trace" -- "$v/shop" 1200 >/dev/null &
			done
			wait
		done
	}
	runs v1 v2 -m nap --phase settle --phase main
	# What was found, as "verdict function", the function being get()'s caller.
	found() {
		awk '/^[0-9]+ .* (settle|main)$/ { print $2, $NF }
			/^[0-9]+ / { verdict = $2 }
			/^    allocated  get / { getline; print verdict, $1 }' "$1" | sort
	}
	planted() {
		smco-diff --min-change 50 --base v1/*.trace --new v2/*.trace >out || return 1
		cat out
		printf '%s\n' 'gone import_goods' 'grown cache_pages' \
			'new load_prices' 'new print_receipt' 'grown settle' |
			sort >want
		found out | diff -u want -
	}
	ok "of two versions exactly what was planted is found" planted
	# Lines moved: what is the same was found again, and not by chance.
	matched() {
		smco-diff --all --json --base v1/*.trace --new v2/*.trace >out
		[ "$(grep -c '"match": "moved"' out)" -ge 4 ] &&
			[ "$(grep -c '"match": "none"' out)" = 1 ] &&
			! grep -q '"ambiguous": true' out
	}
	ok "sites are matched though lines moved" matched
	nothing() {
		smco-diff --min-change 50 --base v1/[135].trace --new v1/[24].trace >out
		cat out
		[ -z "$(found out)" ]
	}
	ok "of one version nothing is found" nothing
	# ci RULE A B - crossed by B, not by A itself
	ci() {
		test_exit 1 smco-diff --fail-on "$1" --base "$2"/*.trace --new "$3"/*.trace >out &&
			test_exit 0 smco-diff --fail-on "$1" \
				--base "$2"/[135].trace --new "$2"/[24].trace >out
	}
	# Eight, by a wait; a share of what the first takes, which is a quarter of one,
	# is what other programs' time slices make.
	ok "a pipeline fails on the slower phase" ci 'phase.mean > +4ms' v1 v2
	ok "a pipeline fails on the second version only" ci 'site.nap.unused_bytes > +256K' v1 v2
	# What variables and counters say, too. Built alike, for an optimiser decides
	# which values of a variable there are to see.
	mkdir w1 w2
	cp v1/shop.c w1 && cp v2/shop.c w2
	(cd w1 && ${CC:-gcc} -g -O1 -o shop shop.c)
	(cd w2 && ${CC:-gcc} -g -O1 -DVERSION=2 -o shop shop.c)
	runs w1 w2 -m nap,range,counters -e task-clock
	# The same, with the names of counters and variables.
	found_all() {
		found "$1"
		awk '/^[0-9]+ .* task-clock/ { print $2, "task-clock" }
			/^[0-9]+ .*\(shop\.c\)$/ { print $2, $(NF - 1) }' "$1"
	}
	all_kinds() {
		smco-diff --min-change 50 --base w1/*.trace --new w2/*.trace >out || return 1
		cat out
		printf '%s\n' 'gone import_goods' 'grown cache_pages' 'new load_prices' \
			'new print_receipt' 'grown task-clock' 'grown shelf' >want
		found_all out | diff -u want - && tr '\n' ' ' <out | tr -s ' ' |
			grep -q ' shelf (shop.c) range 11 → 47, +327 % '
	}
	ok "a leak, a stale table, a wider index, a slower phase and a fix: just those" all_kinds
	no_kinds() {
		smco-diff --min-change 50 --base w1/[135].trace --new w1/[24].trace >out
		cat out
		[ -z "$(found_all out)" ]
	}
	ok "of one version nothing is found of those, either" no_kinds
	ok "a pipeline fails on the wider index" ci 'variables.grown > 0' w1 w2
fi

done_testing
