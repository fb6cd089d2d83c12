#!/bin/bash
# Attached to by smco-trace and left again, over and over, a program of 32
# threads that make and end threads all the time loses none of its work, and
# nothing of ours stays in it. SMCO_TEST_ATTACHES=200 for more.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"
need PTRACE

# comes_and_goes TIMES REST OPTIONS... - REST: microseconds, see thread_churn.
comes_and_goes() {
	local times=$1 rest=$2 i
	shift 2
	rm -f vdso go.trace
	start thread_churn 0 "$rest" || return
	belongings "$pid" >before
	text_is_own "$pid" vdso || return
	for ((i = 0; i < times; i++)); do
		timeout -k 2 60 smco-trace -q -t 50 --nap 20ms -d 0.1 "$@" \
			-o go.trace -p "$pid" || { echo "attach $i: $?"; break; }
		untouched "$pid" || break
	done
	belongings "$pid" >after
	[ "$i" -eq "$times" ] && diff before after &&
		text_is_own "$pid" vdso && smco-report go.trace >report &&
		kill -TERM "$pid" && finish
}
times=${SMCO_TEST_ATTACHES:-3}
# At first all CPUs are busy; then its threads rest a little, unless there is time
# for more: what is asked is the same, and the machine is not theirs alone.
rest=${SMCO_TEST_ATTACHES:+0}
rest=${rest:-10000}
ok "come and gone, it loses no count and nothing stays" \
	comes_and_goes "$times" 0
ok "with protected pages" comes_and_goes "$times" "$rest" --mechanism=mprotect
! prereq_ROOT || ok "with userfaultfd" \
	comes_and_goes "$times" "$rest" --mechanism=uffd
ok "counted" comes_and_goes "$times" "$rest" -m counters
ok "with sensors for ranges" comes_and_goes "$times" "$rest" -m range

done_testing
