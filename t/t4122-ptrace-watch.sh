#!/bin/bash
# --ptrace-watch: where perf events are refused, ptrace's debug registers see
# what is written; no thread has one when it is left, however that happens.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE WATCHPOINTS
# shellcheck source=t/range-lib.sh
. "$SRC/t/range-lib.sh"

export LC_ALL=C.UTF-8
source=$SRC/t/fixtures/range
"${CC:-cc}" -O1 -shared -fPIC -o deny.so "$SRC/t/fixtures/preload/deny.c" ||
	exit 1
for name in pointed behind written; do
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -g -O0 -o $name "$source/$name.c" \
		-lpthread || exit 1
done

# Without perf events.
refused=(env --default-signal=INT "DENY=bpf,perf" "LD_PRELOAD=$PWD/deny.so" "$BUILD/smco-trace" -q
	-m range -o run.trace)
# by_ptrace OPTIONS... -- COMMAND... - what it prints, sorted, is the truth
by_ptrace() {
	timeout 100 "${refused[@]}" --ptrace-watch "$@" >out || return 1
	sort out | grep -v '^begins\|^writes' >truth
	read_report
}
read_report() {
	found >found.txt
	smco-report run.trace | tr -s '\n ' ' ' >summary
	grep -o 'watchpoints: .*' summary | cut -c1-400
}
by_watchpoint() {
	smco-report --ranges --csv --where 'how == "watchpoint"' run.trace | tee table
}
no_hits() { grep -q 'watchpoints: .* 0 hits of ' summary; }

exact() {
	by_ptrace -t unlimited --var number --var large --var half --var still \
		-- ./pointed 20 || return 1
	grep -E '^(number|large|half|still) ' truth >some && mv some truth
	[ "$(by_watchpoint | wc -l)" = 5 ] && compare exact
}
ok "exact, through pointers, by threads and a child" exact
said() { grep -q 'ms for arming, by ptrace, as perf events are refused' summary; }
ok "it is said" said
in_turns() {
	by_ptrace -t unlimited -- ./pointed 2000 && compare within &&
		[ "$(by_watchpoint | wc -l)" -gt 8 ]
}
ok "more than four each have their turn" in_turns
fields() {
	by_ptrace -t unlimited --var bits.low --var bits.high -- ./pointed 20 &&
		grep '^bits' truth >some && mv some truth && compare exact
}
ok "bit-fields" fields
follows() {
	by_ptrace -t unlimited --watch 'server.conf->in->limit' \
		--watch 'server.conf->level' --var server.count -- ./behind &&
		[ "$(by_watchpoint | wc -l)" -ge 3 ] && compare exact
}
ok "--watch: exactly what was written while the pointers led there" follows

# A variable that is written all the time has few hits, whatever else runs here: a
# hit takes some ten thousand times as long as a write, and of a target of a
# hundredth those that there was room for are fewer than one in two million
# writes; twenty times as many where nothing limits them. 32 are free.
limited() {
	local hits writes
	by_ptrace -t "$1" -- ./written 1500 && compare within && ! no_hits || return 1
	hits=$(sed 's/.* \([0-9]*\) hits of .*/\1/' summary)
	writes=$(sed -n 's/^writes //p' out)
	echo "$hits hits, $writes writes"
	[ $(((hits - 32) * 2000000)) -le $((writes * $1)) ]
}
ok "-t 10: within the target, no value that it did not have" limited 10
ok "-t 2: the same" limited 2
hot() { by_ptrace -t unlimited -- ./written 300 && compare exact; }
ok "without a limit: each of a hundred thousand" hot

# What the program does with SIGTRAP is its own.
# attached HOW - to one that does that already, from its beginning to its end
attached() {
	local pid smco
	rm -f enough run.trace
	./written enough "$1" >out &
	pid=$!
	wait_for 20 grep -q begins out
	"${refused[@]}" --ptrace-watch -t unlimited -p $pid &
	smco=$!
	wait_for 20 is_traced $pid && pause 0.2
	touch enough
	wait $pid && wait $smco && read_report && echo number 0 999 >truth &&
		grep -q '^number 0 999$' out
}
is_traced() { grep -q '^TracerPid:.*[1-9]' "/proc/$1/status"; }
own() {
	attached "$1" && no_hits &&
		grep -q 'handles or ignores SIGTRAP, which it would lose' summary
}
ok "a program that handles SIGTRAP is not watched so, and why is said" own handle
ok "nor one that ignores it" own ignore
blocks() { attached block && ! no_hits && compare exact; }
ok "one that blocks it goes on blocking it" blocks
later() {
	by_ptrace -t unlimited -- ./written 300 later && compare within && ! no_hits &&
		grep -q 'handles or ignores SIGTRAP, which it would lose' summary
}
ok "one that comes to handle it has all of its own, and is left alone" later
execs() { by_ptrace -t unlimited -- ./written 300 exec && compare exact; }
ok "exec: what comes is watched anew" execs

# left HOW - attached to while it writes, and left: it goes on to its end.
left() {
	local pid smco
	rm -f enough run.trace
	./written enough >out &
	pid=$!
	wait_for 20 grep -q begins out
	for _ in 1 2 3; do
		if [ "$1" = -d ]; then
			"${refused[@]}" --ptrace-watch -t unlimited -d 0.2 -p $pid || return 1
		else
			"${refused[@]}" --ptrace-watch -t unlimited -p $pid &
			smco=$!
			wait_for 20 is_traced $pid && pause 0.2
			kill -"$1" $smco
			wait $smco || return 1
		fi
		read_report
		no_hits && return 1
	done
	touch enough
	wait $pid && grep -q '^number 0 999$' out
}
for how in -d TERM INT HUP; do
	ok "left by $how in the middle of hits: it goes on" left $how
done
command_left() {
	"${refused[@]}" --ptrace-watch -t unlimited -d 0.2 -- ./written 1000 >out &&
		wait_for 20 grep -q '^number 0 999$' out
}
ok "a command, too" command_left

# Below one that, as process 1 of many containers, waits for none but whom it
# has begun: who is left to it?
# orphans OPTIONS... - their names
orphans() {
	perl -e 'syscall(157, 36, 1, 0, 0, 0) and exit 9; # PR_SET_CHILD_SUBREAPER
		my $failed = system(@ARGV);
		open my $f, "<", "/proc/$$/task/$$/children" or exit 8;
		for (split " ", <$f>) { open my $c, "<", "/proc/$_/comm"; print STDERR <$c>; }
		exit $failed >> 8;' \
		"${refused[@]}" --ptrace-watch -t unlimited "$@" >out 2>names
	local status=$?
	cat names
	return $status
}
ends_alone() { orphans -- ./written 100 && [ ! -s names ]; }
ok "its other process ends with it, and is waited for" ends_alone
leaves_alone() { orphans -d 0.2 -- ./written 1000 && [ "$(cat names)" = written ]; }
ok "also where the command is left" leaves_alone
fails_alone() {
	orphans -- ./none
	[ $? = 127 ] && grep -q none names && [ "$(wc -l <names)" = 1 ]
}
ok "and where there is no command" fails_alone

# Only where it was asked for.
unasked() {
	"${refused[@]}" -t unlimited -- ./pointed 100 >out && read_report &&
		grep -q 'watchpoints: none.*--ptrace-watch' summary
}
ok "not by default: none, and what can be done" unasked
permitted() {
	smco-trace -q -m range --ptrace-watch -t unlimited -o run.trace -- \
		./pointed 20 >out && read_report && ! said
}
ok "nor where perf events are permitted" permitted

done_testing
