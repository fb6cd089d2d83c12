#!/bin/bash
# smco-trace --sample: where the program spends its time. Nothing here depends
# on how many samples a busy machine gives, but that there are some.
. "$(dirname "$0")/test-lib.sh"

need PTRACE
smco-trace -q --sample 999 -o probe.trace -- true >/dev/null 2>probe.err || {
	cat probe.err
	grep -q 'may not be counted\|no performance events' probe.err &&
		echo "1..0 # SKIP no sampling here" && exit 0
}

# work NAME OPTIONS... - the fixture the same work in each of five, each for longer
# than the start's share of a budget takes to be paid.
work() {
	local name=$1
	shift
	smco-trace -q -t 20 --sample 1999 -o "$name.trace" "$@" \
		-- "$FIXTURES/sample-work" 2500 2 2 >"$name.out" 2>"$name.err" &&
		grep -q EXIT-SUCCESS "$name.out"
}
ok "a program is sampled" work w
# The user's part of each stack, innermost last.
ok "stacks come out folded" smco-report --flamegraph w.trace
smco-report --flamegraph w.trace >folded
sed 's/;[^;]*_\[k\]//g; s/ [0-9]*$//' folded | sort -u >shapes

known_places() {
	! grep -q never folded && grep -q ';often ' folded && grep -q ';seldom ' folded
}
ok "only functions that ran are in them" known_places
# libc.so.6 stands for its functions that have a name in its debug file only,
# which a new machine does not have: here clone3 and start_thread; and so does
# the linker's name for where it begins.
libc='[[]libc[.]so[.]6[]]'
linker='[[]ld-linux-x86-64[.]so[.]2[]]'
of_thread="(.*;start_thread|$libc;$libc)"
begins="^sample-work;(_start;|$linker;$linker|clone3|$libc(;$libc)*(;work;|;[^;]*_[[]k[]]|\$| [0-9]+\$))"
often='work;often'
seldom='work;seldom;seldom;seldom;seldom;seldom'
shapes() { # of the main thread and the children, and of the threads
	# Those that are known to their end; how many are not is another test's.
	grep -E "$begins" shapes >whole
	mv whole shapes
	grep -qx "sample-work;_start;.*;main;$often" shapes &&
		grep -qx "sample-work;_start;.*;main;$seldom" shapes &&
		grep -Eqx "sample-work;$of_thread;$often" shapes &&
		# seldom() is in no other place than under its own recursion
		! grep -E ';often;' shapes &&
		! grep -E ';seldom(;seldom){5}' shapes &&
		! grep -E ';often' shapes | grep -vE ";$often\$"
}
ok "they have the shape of the calls" shapes
forms() { ! grep -vE '^[^;]+(;[^;]+)* [0-9]+$' folded; }
ok "each line is a stack and a number" forms

get() { # FILE EXPRESSION - on $s, the samples of the JSON document
	smco-report --json "$1" | perl -MJSON::PP -0777 -e "my \$d = decode_json(<STDIN>);
		my \$s = \$d->{samples}; sub f { (grep { \$_->{function} eq \$_[0] } @{\$s->{functions}})[0] }
		print do { $2 }, qq(\n)"
}
sums() {
	[ "$(awk '{ n += $NF } END { print n }' folded)" = "$(get w.trace '$s->{samples}')" ] &&
		[ "$(get w.trace 'my $n = 0; $n += $_->{self} for @{$s->{functions}}; $n')" = \
			"$(get w.trace '$s->{samples}')" ] &&
		[ "$(smco-report --events --csv w.trace | grep -c ',sample,')" = "$(get w.trace '$s->{samples}')" ]
}
ok "folded stacks, functions and records have the same sum" sums
once() { # recursion counts once: no more samples than there are
	get w.trace 'join " ", f("seldom")->{total} <= $s->{samples} ? 1 : 0,
		f("seldom")->{total} >= f("seldom")->{self} ? 1 : 0,
		f("main")->{self} <= f("main")->{total} ? 1 : 0, f("often") ? 1 : 0' | tee line
	[ "$(cat line)" = "1 1 1 1" ]
}
ok "a recursion counts once" once
whole() {
	local nr
	nr=$(get w.trace 'join " ", $s->{cut}, $s->{samples}')
	echo "$nr"
	grep -Ev "$begins" folded >early
	cat early
	# No other than those that the report calls cut are without a beginning,
	# and none of the program's own work is.
	[ "$(sum_of early)" -le "${nr% *}" ] &&
		! grep -E ';(main|work|often|seldom)[; ]' early &&
		# Two at each of the five births, beside those that are in the kernel
		# or the linker: those are more where others want the CPU.
		[ "$(grep -Ev '_[[]k[]][; ]|;_dl_|;[[]ld-linux' early | sum_of)" -le 10 ]
}
sum_of() { awk '{ n += $NF } END { print n + 0 }' "$@"; }
ok "stacks reach their outermost frame" whole
past_buffer() { # but at its birth
	local nr
	smco-trace -q -t unlimited --sample 999 -o buffer.trace -- "$FIXTURES/sample_buffer" 400 >out || return 1
	grep -q EXIT-SUCCESS out && nr=$(get buffer.trace 'join " ", $s->{cut}, $s->{samples}') &&
		echo "$nr" && [ "${nr% *}" -le 2 ] && [ "${nr#* }" -gt 10 ]
}
ok "past a buffer of 28 KB on the stack, too" past_buffer

everybody() { # main, two threads, two children
	smco-report --events --csv w.trace | awk -F, '$4 == "sample"' >samples || return 1
	cut -d, -f 6 samples | sort -u | wc -l | tee nr
	[ "$(cat nr)" = 5 ]
}
ok "all threads and children are in it" everybody
selected() {
	local tid all=0 one
	cut -d, -f 6 samples | sort -u >tids
	while read -r tid; do
		one=$(smco-report --flamegraph --thread "$tid" w.trace | awk '{ n += $NF } END { print n }')
		[ "$one" = "$(cut -d, -f 6 samples | grep -cx "$tid")" ] || return 1
		all=$((all + one))
	done <tids
	[ $all = "$(wc -l <samples)" ]
}
ok "--thread selects" selected

follow() {
	work n --no-follow || return 1
	[ "$(smco-report --events --csv n.trace | awk -F, '$4 == "sample"' | cut -d, -f 6 | sort -u | wc -l)" = 3 ]
}
ok "without --follow children are not sampled, threads are" follow

summary() {
	# On a busy machine its start alone may use a tenth of so short a run up.
	smco-trace -t unlimited --sample 499 -o s.trace -- "$FIXTURES/sample-work" 400 0 0 >out 2>err || return 1
	cat err
	grep -q '^samples .* of .* at 499 Hz' err && grep -q ' often  \[sample-work\]$' err &&
		! grep -q '^unused' err
}
ok "the summary has the functions" summary
table() {
	smco-report --samples --csv --where 'function == "often"' w.trace >table || return 1
	smco-report --samples w.trace | grep -q ' often  *sample-work$' || return 1
	cat table
	[ "$(wc -l <table)" = 2 ]
}
ok "smco-report --samples has them, too" table
ok "its columns are in the manual" columns_in_manual samples 5

# beat HZ COMMAND... - samples COMMAND, a sample-beat; prints the share of first(),
# with what it calls, in per cent, and the number of samples.
beat() {
	local hz=$1
	shift
	smco-trace -q -t unlimited --sample "$hz" -o beat.trace -- "$@" >/dev/null || return 1
	get beat.trace 'my ($a, $b) = map { f($_) ? f($_)->{total} : 0 } qw(first second);
		sprintf "%.2f %d", 100 * $a / ($a + $b), $a + $b'
}
# In real time, if that is permitted, for nothing but the program itself to move
# it against its samples. Those in a row depend on each other: within five times
# what would be the deviation of half as many. (Who is kept off the CPUs loses
# some.)
in_step() {
	local first=()
	chrt -f 1 true 2>/dev/null && first=(chrt -f 1)
	for _ in 1 2 3; do
		beat 1000 "${first[@]}" "$FIXTURES/sample-beat" 1000 1200 50 | tee line
		awk '{ exit !($2 > 60 && ($1 - 50) ^ 2 < 5 ^ 2 * 2500 * 2 / $2) }' line || return 1
	done
}
ok "a program that repeats itself at the samples' rate is seen as a whole" in_step
shares() { # within four and a half standard deviations
	beat 1999 "$FIXTURES/sample-beat" 7300 200 30 | tee line
	awk '{ exit !($2 > 300 && ($1 - 30) ^ 2 < 4.5 ^ 2 * 2100 / $2) }' line
}
ok "shares are those of the program's own clock" shares

slower() { # what a sample costs here, the budget decides
	smco-trace -q -t 0.01 --sample 9999 -o t.trace -- "$FIXTURES/sample-work" 10 0 0 >out || return 1
	get t.trace 'join " ", $s->{wanted_hz}, $s->{hz} < 9999 ? 1 : 0,
		$s->{hz} * $s->{cost_ns} <= 1e9 * 0.0001 || $s->{hz} == 1 ? 1 : 0' | tee line
	[ "$(cat line)" = "9999 1 1" ]
}
ok "the target bounds the rate" slower
paused() { # starts have used up the budget: that is why there are none
	smco-trace -t 0.01 --sample 99 -o z.trace -- sh -c "for i in \$(seq 150); do /bin/true; done
		'$FIXTURES/sample-work' 1000 0 0" >out 2>err
	cat err
	grep -A 2 '^samples ' err | grep -Eq '^  *(none|in a quarter of the time) for .*to stay below the target'
}
ok "why there are none is said" paused
beside() {
	smco-trace -m counters,nap --sample 999 -o b.trace -- "$FIXTURES/forgetful-server" >out 2>err || return 1
	cat err
	grep -q '^counters ' err && grep -q '^unused ' err && grep -q '^samples ' err &&
		grep -q search_index err
}
ok "beside counters and naps" beside
# Through the sensors of allocation functions: who calls them is known, also in
# their last instructions. Calls that we have it make at its start come from nowhere.
in_malloc() {
	smco-trace -q -t unlimited -m counters,nap --sample 4000 -o i.trace -- \
		"$FIXTURES/in-blocks" 50000 || return 1
	smco-report --flamegraph i.trace >folded.in
	grep '\(alloc\|free\|memalign\)' folded.in |
		grep -v '_dl_\|^in-blocks;[^;]*;entry_SYSCALL' >inside
	# Between two of the sensor's own instructions somebody may be.
	awk '/unknown/ { unknown += $NF } { all += $NF }
		END { print unknown + 0, all; exit unknown > all / 100 + 1 }' folded.in || return 1
	grep ';main;' inside >known
	diff inside known && [ "$(wc -l <known)" -gt 3 ] || return 1
	# The dynamic linker's own first function has no caller of ours.
	! grep '_dl_start;' folded.in | grep -v '^in-blocks;\(_start\|[[]ld-linux-x86-64[.]so[.]2[]]\);_dl_start;'
}
ok "a stack leads through the sensors of malloc" in_malloc
attach() {
	"$FIXTURES/sample-work" 1000000 0 0 >/dev/null &
	local pid=$!
	smco-trace -q --sample 999 -d 1 -o p.trace -p $pid
	local status=$?
	kill $pid
	[ $status = 0 ] && smco-report --flamegraph p.trace | tee attached
	grep -q ";main;$often " attached
}
ok "attached" attach
short_ones() { # each is sampled though it lives but a moment
	smco-trace -q -t unlimited --sample 1999 -o m.trace -- sh -c "
		for i in \$(seq 30); do '$FIXTURES/sample-work' 20 0 0; done" >out || return 1
	smco-report --flamegraph m.trace >short
	cat short
	grep -q "^sample-work;.*;main;$often" short || return 1
	# Most have ended before their samples are read.
	awk '/^sample-work;[^ ]*;work;/ { n += $NF }
		/^sample-work;[[]unknown[]](;| )/ && !/;[^;]*execve/ { bad += $NF }
		END { print n, bad + 0; exit !(n > 20 && bad * 20 <= n) }' short
}
ok "short ones, started by another" short_ones

for bad in 0 -5 abc 20001 9e3 ''; do
	ok "--sample '$bad' is refused" test_exit 125 smco-trace --sample "$bad" -o bad.trace -- touch ran
done
ok "--target 0 leaves none" test_exit 125 smco-trace -t 0 --sample 99 -o bad.trace -- touch ran
ok "nothing was started" absent ran bad.trace
none() {
	smco-trace -q -m nap -o nap.trace -- true
	for how in --samples --flamegraph; do
		test_exit 9 smco-report $how nap.trace >out 2>err || return 1
		grep -q 'no samples in the trace.*smco-trace --sample' err || return 1
	done
}
ok "a trace without samples says so" none
none_selected() {
	smco-report --samples --thread 1 w.trace | tail -n 1 | grep -qx none &&
		test_exit 9 smco-report --flamegraph --thread 1 w.trace >out 2>err &&
		[ ! -s out ] && grep -q 'no samples are selected' err
}
ok "a selection without samples is not a trace without any" none_selected
ok "--flamegraph is no table" test_exit 2 smco-report --flamegraph --json w.trace
done_testing
