#!/bin/bash
# Somebody else sets uprobes at the allocation functions while they have our
# sensors, as those do who look for leaks (bpftrace, memleak), or at functions of
# the program whose parameters are watched or that are phases, takes them out again, and sees what
# he would have seen: the program does not notice.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

events=/sys/kernel/tracing/uprobe_events
group=smco_test_$$
# Of a libc of our own: those of the system's would be hit by all others.
mkdir libc
cp "$(ldd "$FIXTURES/hook-live" | awk '$1 ~ /^libc\.so/ {print $3}')" libc
libc=$PWD/libc/libc.so.6
functions=(malloc free calloc realloc reallocarray mmap mremap)

# offset_of FILE NAME - where in the file the function begins.
offset_of() {
	readelf -lsW "$1" | perl -ne '
		BEGIN { $name = shift }
		push @load, [map { hex } $1, $2, $3]
			if /^\s*LOAD\s+0x(\S+)\s+0x(\S+)\s+\S+\s+0x(\S+)/;
		$at = hex $1 if /^\s*\d+:\s+(\S+)\s.*\s\Q$name\E(@|$)/;
		END { for (@load) { printf "0x%x\n", $at - $_->[1] + $_->[0]
			if $at >= $_->[1] && $at < $_->[1] + $_->[2] } }' "$2"
}
# set_at FILE NAME...
set_at() {
	local name file=$1
	shift
	for name in "$@"; do
		echo "p:$group/$name $file:$(offset_of "$file" "$name")" >>$events &&
			echo 1 >"/sys/kernel/tracing/events/$group/$name/enable" ||
			return
	done
}
set_all() { set_at "$libc" "${functions[@]}"; }
unset_all() {
	local name
	for name in "${functions[@]}" push_first sub_first; do
		if [ -e "/sys/kernel/tracing/events/$group/$name" ]; then
			echo 0 >"/sys/kernel/tracing/events/$group/$name/enable"
			echo "-:$group/$name" >>$events
		fi
	done
}
trap unset_all EXIT

prereq_UPROBES() { [ -w $events ] && set_all && unset_all; }
need UPROBES

# hits NAME - how often it was passed since it was set.
hits() {
	awk -v name="$1" '$2 == name { print $3 }' /sys/kernel/tracing/uprobe_profile
}
has_sensors() {
	local pid
	pid=$(pgrep -P "$1" hook-live) &&
		grep -q 'memfd:smco-trace@' "/proc/$pid/maps"
}
# were_passed SMCO NAME... - each of them, or it has ended.
were_passed() {
	local name
	kill -0 "$1" || return 0
	for name in "${@:2}"; do [ "$(hits "$name")" -gt 0 ] || return; done
}
# come_and_go SMCO FILE NAME... - uprobes at these functions come and go twice
# while it runs, which passes the first four. In hits.NAME how often it did.
come_and_go() {
	local smco=$1 name
	shift
	for name in "${@:2}"; do echo 0 >"hits.$name"; done
	for _ in 1 2; do
		set_at "$@" && wait_for 10 were_passed "$smco" "${@:2:4}" || return
		for name in "${@:2}"; do
			echo $(($(cat "hits.$name") + $(hits "$name"))) >"hits.$name"
		done
		unset_all
		kill -0 "$smco" || break
	done
}
# watched OPTIONS - It begins with sensors, uprobes come and go, and it ends by
# itself: each of its threads has checked what it was given.
watched() {
	local smco name
	rm -f live.out
	smco-trace -q -o live.trace -t unlimited "$@" -- \
		env LD_LIBRARY_PATH="$PWD/libc" "$FIXTURES/hook-live" live.out 2 60000 &
	smco=$!
	wait_for 20 has_sensors $smco || return
	come_and_go $smco "$libc" "${functions[@]}" || return
	wait $smco || return
	tail -n 1 live.out
	for name in malloc free calloc realloc; do
		echo "$name $(cat hits.$name)"
		[ "$(cat hits.$name)" -gt 0 ] || return
	done
	[ "$(tail -n 1 live.out)" = EXIT-SUCCESS ] &&
		smco-report --json live.trace | grep -q "glibc malloc, 1[0-9] functions"
}
# They were there before we came, and go while we are there: no sensors, which
# is said.
were_there() {
	local pid smco
	rm -f live.out
	set_all || return
	LD_LIBRARY_PATH=$PWD/libc "$FIXTURES/hook-live" live.out 2 60000 &
	pid=$!
	wait_for 20 grep -q "$libc" /proc/$pid/maps || return
	smco-trace -q -o before.trace -t unlimited -p $pid &
	smco=$!
	wait_for 20 is_said || return
	unset_all
	kill $smco
	wait $smco && wait $pid && tail -n 1 live.out || return
	is_said && [ "$(tail -n 1 live.out)" = EXIT-SUCCESS ]
}
is_said() {
	smco-report before.trace | tr -s '\n ' ' ' | grep "somebody's breakpoint is there"
}
# Sensors for parameters are behind the first instruction of a function.
cat >entries.c <<'END'
#include <stdio.h>
#include <unistd.h>
__attribute__((noipa)) static long leaf(long value)
{
	__asm__ volatile("" : "+r"(value));
	return value + 1;
}
__attribute__((noipa)) static long push_first(int first, unsigned char small)
{
	long sum = leaf(first);
	return sum + leaf(small) + first;
}
__attribute__((noipa)) static long sub_first(int second, short negative)
{
	volatile long kept[3];
	kept[0] = second;
	kept[1] = negative;
	leaf(second);
	return kept[0] + kept[1];
}
int main(void)
{
	unsigned long wrong = 0, turns = 0;
	alarm(300);
	do {
		for (int i = 0; i < 1000; i++) {
			wrong += push_first(i - 300, (unsigned char)(i % 200)) !=
				 2 * (i - 300) + i % 200 + 2;
			wrong += sub_first(i % 100, (short)(-i)) != i % 100 - i;
		}
		turns++;
	} while (access("enough", F_OK));
	printf("%lu wrong\n", wrong);
	fprintf(stderr, "%lu\n", turns * 1000);
	return turns < 10;
}
END
are_watched() { smco-report --ranges entries.trace | grep -q 'sub_first::negative.* 0 '; }
entries() {
	local smco
	${CC:-gcc} -O2 -g -o entries entries.c || return
	smco-trace -q -o entries.trace -m range -t unlimited -- ./entries >out 2>calls &
	smco=$!
	wait_for 20 are_watched || return
	come_and_go $smco "$PWD/entries" push_first sub_first || return
	touch enough
	wait $smco || return
	smco-report --ranges entries.trace >ranges
	cat out hits.push_first hits.sub_first ranges
	[ "$(cat out)" = "0 wrong" ] && [ "$(cat hits.push_first)" -gt 0 ] &&
		[ "$(cat hits.sub_first)" -gt 0 ] &&
		grep -q 'push_first::first.* -300 .* 699 ' ranges &&
		grep -q 'push_first::small.* 0 .* 199 ' ranges &&
		grep -q 'sub_first::second.* 0 .* 99 ' ranges &&
		grep -q 'sub_first::negative.* -999 .* 0 ' ranges
}
# The same of phases: each passing is counted, also by way of a uprobe.
are_phased() { smco-report --phases phases.trace | grep 'sub_first *[1-9]'; }
phases() {
	local smco
	rm -f enough
	smco-trace -q -o phases.trace --phase push_first --phase sub_first \
		-t unlimited -- ./entries >out 2>calls &
	smco=$!
	wait_for 20 are_phased || return
	come_and_go $smco "$PWD/entries" push_first sub_first || return
	touch enough
	wait $smco || return
	smco-report --phases --csv phases.trace >phases
	cat out calls hits.push_first hits.sub_first phases
	[ "$(cat out)" = "0 wrong" ] && [ "$(cat hits.push_first)" -gt 0 ] &&
		[ "$(cat hits.sub_first)" -gt 0 ] &&
		[ "$(grep -c "_first,.*\b$(cat calls)\b" phases)" = 2 ]
}
both() {
	watched -m nap --phase malloc --phase free &&
		smco-report --phases live.trace | tee phases &&
		[ "$(grep -cE '(malloc|free) ' phases)" = 2 ]
}
ok "that come before us and go before us" were_there
ok "uprobes at functions that have sensors" watched
ok "uprobes at functions whose parameters are watched" entries
ok "uprobes at functions that are phases" phases
ok "uprobes at functions that have sensors and are phases" both

done_testing
