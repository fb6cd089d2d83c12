#!/bin/bash
# What a smco-trace that was killed leaves in a program does not add up, and
# the next one takes it out: text as in its files, mappings as they were, however
# often that happens. And the program goes on meanwhile.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"
need PTRACE

# files_of_ours PID - sets $files to the inodes of what is mapped of ours, each
# with a space before and after it. Without a process, for it is asked often.
files_of_ours() {
	local maps inode rest
	files=' '
	read -r -d '' maps <"/proc/$1/maps"
	while read -r _ _ _ _ inode rest; do
		[[ $rest != *memfd:smco* || $files = *" $inode "* ]] || files+="$inode "
	done <<<"$maps"
}

# planted PID OLD - there is one that is not in OLD.
planted() {
	local files inode
	files_of_ours "$1"
	for inode in $files; do
		[[ $2 = *" $inode "* ]] || return 0
	done
	return 1
}

# killed_in PID OPTIONS... - attached to, killed when it has planted. Without a
# limit, for who costs too much is let go for a while, with nothing left in it.
killed_in() {
	local pid=$1 files old smco status=0
	shift
	files_of_ours "$pid"
	old=$files
	smco-trace -q -t unlimited --nap 20ms "$@" -o left.trace -p "$pid" &
	smco=$!
	wait_for 60 planted "$pid" "$old" || status=1
	kill -9 $smco
	wait $smco 2>/dev/null
	return $status
}

# pages PID - mappings of executable memory from no file
pages() { grep -cE 'r-xp 00000000 00:00 0 +$' "/proc/$1/maps"; }

# left_at_most PID FILES PAGES - files of ours that are mapped; executable memory
# from no file: theirs, and a page where calls are run, or two if a thread was in
# it. Not more than one more of that than the PAGES of the first death.
left_at_most() {
	local files pages inodes
	files_of_ours "$1"
	read -ra inodes <<<"$files"
	pages=$(pages "$1")
	echo "${#inodes[@]} files, $pages executable mappings, $3 at first"
	[ "${#inodes[@]}" -gt 0 ] && [ "${#inodes[@]}" -le "$2" ] && [ "$pages" -le 4 ] &&
		[ "$pages" -le $(($3 + 1)) ]
}

# Its threads rest a little, or smco-trace and these checks would wait for a CPU;
# less where there is time for more.
rest=${SMCO_TEST_KILLS:+5000}
rest=${rest:-20000}
# cleared TIMES FILES OPTIONS...
cleared() {
	local times=$1 files=$2 i first
	shift 2
	rm -f vdso
	start thread_churn 0 "$rest" || return
	belongings "$pid" >before
	text_is_own "$pid" vdso || return
	for ((i = 0; i < times; i++)); do
		killed_in "$pid" "$@" || return
		[ "$i" -gt 0 ] || first=$(pages "$pid")
		left_at_most "$pid" "$files" "$first" || {
			cat "/proc/$pid/maps"
			return 1
		}
	done
	SMCO_DEBUG=whole timeout -k 2 60 smco-trace -q -t 50 --nap 20ms "$@" \
		-d 0.2 -o last.trace -p "$pid" && untouched "$pid" || return
	belongings "$pid" >after
	diff before after && text_is_own "$pid" vdso &&
		kill -TERM "$pid" && finish
}
times=${SMCO_TEST_KILLS:-4}
ok "sensors for allocations" cleared "$times" 1
ok "and protected pages" cleared "$times" 2 --mechanism=mprotect
! prereq_ROOT || ok "and userfaultfd" cleared "$times" 1 --mechanism=uffd
ok "sensors for ranges" cleared "$times" 1 -m range
ok "sensors at marks" cleared "$times" 1 --phase sdt:churn:leaf

# All of it at once, by one that wants none of it.
cleared_by_another() {
	rm -f vdso
	start thread_churn 0 "$rest" || return
	belongings "$pid" >before
	text_is_own "$pid" vdso || return
	killed_in "$pid" -m nap,range --phase sdt:churn:leaf \
		--mechanism=mprotect || return
	smco-trace -q -m counters -d 0.2 -o last.trace -p "$pid" || return
	belongings "$pid" >after
	diff before after && text_is_own "$pid" vdso &&
		kill -TERM "$pid" && finish
}
ok "everything, cleared by one that plants nothing" cleared_by_another

# A jump of two bytes to padding with the one to a sensor, which goes first: where
# only that fits (fixtures/range/short.h), threads would come to a trap.
has_short_jump() {
	perl - "$1" "$(nm "/proc/$1/exe" | awk '$3 == "turned" { print $1 }')" <<-'END'
	my ($pid, $turned) = @ARGV;
	open my $maps, '<', "/proc/$pid/maps" or die "maps: $!";
	open my $mem, '<:raw', "/proc/$pid/mem" or die "mem: $!";
	my ($from, $at) = map { /^(\w+)-\w+ r-xp (\w+) .*thread_churn/ } <$maps>;
	sysseek $mem, hex($from) - hex($at) + hex($turned), 0 or die "seek: $!";
	sysread($mem, my $is, 80) == 80 or die "read: $!";
	exit $is !~ /\xeb[\x80-\xff]/;
	END
}
short_jump_cleared() {
	local smco status=0
	rm -f vdso
	start thread_churn 0 "$rest" && text_is_own "$pid" vdso || return
	smco-trace -q -t unlimited -m range -o left.trace -p "$pid" &
	smco=$!
	wait_for 60 has_short_jump "$pid" || status=1
	kill -9 $smco
	wait $smco 2>/dev/null
	has_short_jump "$pid" && [ $status = 0 ] &&
		smco-trace -q -m counters -d 0.2 -o last.trace -p "$pid" &&
		text_is_own "$pid" vdso && kill -TERM "$pid" && finish
}
ok "a short jump and what it leads to" short_jump_cleared

# Killed before the linker has mapped the libraries, of which it is to tell us:
# that does nothing to the program, whose files' text is its own. Here the linker
# waits for a library that is a pipe.
linker_waits() {
	[[ $(readlink "/proc/$1/exe") = */linker_left ]] &&
		grep -q "^257 " "/proc/$1/syscall" && ! text_is_own "$1" vdso
}
# left_in_linker COMMAND... - that of linker_left
left_in_linker() {
	local smco status=0
	rm -f out vdso other pid library
	text_is_own $$ vdso || return
	mkfifo library
	# shellcheck disable=SC2016 # for the other shell
	smco-trace -q -o left.trace -- sh -c 'echo $$ >pid
		LD_PRELOAD=$PWD/library exec "$@"' sh "$@" >out 2>err &
	smco=$!
	wait_for 10 test -s pid && pid=$(<pid) &&
		wait_for 10 linker_waits "$pid" || status=1
	kill -9 $smco
	wait $smco 2>/dev/null
	timeout 10 sh -c ': >library'
	[ $status = 0 ] && wait_for 10 grep -qx "ready, 0 signals" out &&
		! text_is_own "$pid" vdso && text_is_own "$pid" other || return
	smco-trace -q -m counters -d 0.2 -o last.trace -p "$pid" || status=1
	untouched "$pid" && text_is_own "$pid" vdso || status=1
	kill -TERM "$pid"
	wait_for 10 grep -q EXIT-SUCCESS out && return $status
}
ok "what waits for the linker" left_in_linker "$FIXTURES/linker_left"

# Threads that get a CPU for a millisecond in 600 do not stand in time, when what
# was left has gone and all are to stand again for their start: that is tried
# anew, more than once. The group's files are those of either version.
slow_group() {
	local dir=/sys/fs/cgroup/cpu group
	[ -w $dir/cpu.shares ] || dir=/sys/fs/cgroup
	group=$dir/smco-$$
	mkdir "$group" 2>/dev/null || return 1
	if { echo 600000 >"$group/cpu.cfs_period_us" &&
		echo 1000 >"$group/cpu.cfs_quota_us"; } 2>/dev/null ||
		echo "1000 600000" 2>/dev/null >"$group/cpu.max"; then
		echo "$group"
	else
		rmdir "$group"
		return 1
	fi
}
without_a_cpu() {
	local i status
	for ((i = 0; i < 3; i++)); do
		start thread_churn 0 && killed_in "$pid" || return
		echo "$pid" >"$1/cgroup.procs"
		timeout -k 2 100 smco-trace -q -t 50 -d 0.1 -o slow.trace \
			-p "$pid" 2>said
		status=$?
		echo "$pid" >"${1%/*}/cgroup.procs"
		cat said
		smco-report slow.trace >report
		[ $status = 0 ] && grep 'sensors in' report &&
			! grep 'does not stop' report && kill -TERM "$pid" &&
			finish || return
	done
}
if group=$(slow_group); then
	ok "who gets no CPU to stand on is waited for" without_a_cpu "$group"
	wait_for 5 rmdir "$group"
fi

done_testing
