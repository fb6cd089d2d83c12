#!/bin/bash
# What the kernel may refuse is taken away, one after the other and all at
# once: the program runs as it does alone, its naps are found, and the report
# says by which mechanism, why not by a better one, and what it cost.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

"${CC:-cc}" -O1 -shared -fPIC -o deny.so "$SRC/t/fixtures/preload/deny.c" ||
	exit 1
prereq_BITS() {
	"$BUILD/t/unit/u-access" | grep -q '^# bits: works here'
}

# judge RECALL LENGTHS
judge() {
	perl "$SRC/t/nap-check.pl" --threshold 300 --recall "$1" --lengths "$2" \
		--kinds read,write,syscall,never truth report.json >judged
	local status=$?
	cat judged
	return $status
}

# works_without WHAT MECHANISM [AS...] - beside a load few naps may be found:
# then once more, for longer, but nothing is wrong in any of them.
works_without() {
	local ms right=1
	[ "$2" != bits ] || right=$(lengths_by_bits)
	for ms in 2500 5000 10000; do
		runs_without $ms "$@" || return
		judge 0.2 "$right" && return
		judge 0 "$right" ||
			grep -q "^naps: 0 of .* 0 false, 0 of 0 lengths wrong, 0 split" \
				judged || return
	done
	return 1
}
# runs_without MILLISECONDS WHAT MECHANISM [AS...]
runs_without() {
	local ms=$1 what=$2 mechanism=$3
	shift 3
	"$@" env DENY="$what" LD_PRELOAD="$PWD/deny.so" "$BUILD/smco-trace" -q \
		-t 100 --nap 300ms -o w.trace -- sh -c 'echo "<$LD_PRELOAD$DENY>" >&2
		LD_PRELOAD=$HIDE "$0" -n 60 -t 300 -m 50 -j 2 -i -d '"$ms"' -s 7; exit 7' \
		"$FIXTURES/nap-schedule" >truth 2>err
	local got=$?
	cat err
	[ $got -eq 7 ] && grep -qx '<>' err || return
	smco-report --json w.trace >report.json &&
		smco-report w.trace >report || return
	cat report
	grep -q "^mechanism *$mechanism:" report &&
		grep -q '^overhead *[0-9.]* % of at most 100 %' report &&
		grep -q '^ *stops [0-9.]* %' report
}
says_why() {
	grep -q 'because bits: .*CAP_BPF and CAP_PERFMON' report
}
# What those pages do to somebody whom nobody sees.
says_what_else() {
	tr -s '\n ' ' ' <report | grep -q 'mechanism mprotect: .* process_vm_readv gets an error'
}
# Asked for by name: the program runs, and the report says why it is not used.
refused() {
	[ "$(env DENY=bpf LD_PRELOAD="$PWD/deny.so" "$BUILD/smco-trace" \
		--mechanism=bits -o r.trace -- echo hi 2>err)" = hi ] || return
	cat err
	! grep -q 'no malloc' err && tr -s '\n ' ' ' <err |
		grep -q 'mechanism none because bits: .*CAP_BPF and CAP_PERFMON'
}

if prereq_BITS; then
	ok "without perf_event_open" works_without perf bits
	ok "without writing to /proc/PID/mem" works_without mem bits
	ok "without a userfaultfd" works_without uffd bits
fi
ok "without BPF: by ptrace and protected pages" works_without bpf mprotect
ok "the report says why" says_why
ok "and what another process might see of it" says_what_else
ok "without any of them" works_without bpf,perf,uffd,mem mprotect
ok "BPF asked for all the same" refused

# A program that runs already, by somebody under a real filter.
attached() {
	rm -f w.trace
	"$FIXTURES/forgetful-server" 60 >server.out &
	local server=$! status
	"$@" "$FIXTURES/without" bpf,perf_event_open,userfaultfd \
		"$BUILD/smco-trace" -q -t 100 --nap 300ms -d 4 -o w.trace \
		-p "$server"
	status=$?
	kill "$server"
	smco-report w.trace >report && cat report
	[ $status -eq 0 ] && grep -q '^mechanism *mprotect:' report &&
		grep -q 'allocated  cache_page' report && says_why
}
ok "attached, under a filter that forbids all of them" attached
# Root as a container has it: to trace is permitted, nothing else.
few_capabilities() {
	works_without none mprotect setpriv --bounding-set \
		-all,+sys_ptrace,+setuid,+setgid --inh-caps -all
}
! prereq_ROOT || ok "root without capabilities" few_capabilities

if prereq_ROOT && chmod 777 . && setpriv --reuid 65534 --clear-groups \
	test -x "$BUILD/smco-trace" -a -r "$PWD/deny.so"; then
	ok "an ordinary user, none of them" works_without bpf,perf,uffd,mem \
		mprotect setpriv --reuid 65534 --regid 65534 --clear-groups
	# Whose files in /proc he may not open once it runs, as of ssh-agent.
	cat >hide.c <<-END
	#include <sys/prctl.h>
	__attribute__((constructor)) static void hide(void)
	{
		prctl(PR_SET_DUMPABLE, 0);
	}
	END
	"${CC:-cc}" -shared -fPIC -o hide.so hide.c || exit 1
	hidden() {
		works_without none mprotect setpriv --reuid 65534 --regid 65534 \
			--clear-groups env HIDE="$PWD/hide.so"
	}
	ok "an ordinary user, a program that lets nobody look into it" hidden
fi

done_testing
