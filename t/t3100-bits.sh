#!/bin/bash
# Accessed bits through the whole tool: named in the report, refused with a
# reason, nothing left behind in the program when the supervisor is killed.
. "$(dirname "$0")/test-lib.sh"

prereq_BITS() {
	"$BUILD/t/unit/u-access" | grep -q '^# bits: works here'
}
need ROOT BITS

# A program whose output depends on every byte it has in memory.
native() { sh -c 'seq 200000 | sort -r | cksum'; }
watched() { smco-trace -o w.trace "$@" -- sh -c 'seq 200000 | sort -r | cksum'; }
native >want

is_named() {
	watched --mechanism=bits >out 2>err && cmp want out &&
		grep -q '^mechanism *bits' err
}
ok "same output, mechanism named" is_named

# Nothing is planted: -9 is as harmless as any other end.
survives() {
	rm -f w.trace
	smco-trace -q --mechanism=bits -o w.trace -- \
		sh -c "touch started; sleep 0.5; seq 200000 | sort -r | cksum >out; touch ended" &
	local pid=$!
	wait_for 20 test -e started || return 1
	kill -9 $pid
	wait $pid
	wait_for 60 test -e ended && cmp want out
}
ok "the program goes on after kill -9" survives

# process_madvise knows a process by its first thread, which has no memory then.
first_thread_ends() {
	test_exit 3 smco-trace -q -t unlimited --mechanism=bits -o g.trace -- \
		"$FIXTURES/first-thread-gone" 3 &&
		smco-report --naps g.trace | tee g.naps &&
		grep -q '1 MiB' g.naps
}
ok "a program whose first thread ends is looked at to its end" first_thread_ends

as_nobody() {
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}
# What was asked for and cannot be had: the program runs, the reason is said.
explains() {
	mkdir -m 777 nobody
	chmod 755 .
	as_nobody "$(command -v smco-trace)" --mechanism=bits \
		-o nobody/x.trace -- echo hi >out 2>err
	[ "$(cat out)" = hi ] && grep -q 'CAP_BPF and CAP_PERFMON' err
}
# Only the three capabilities that the message asks for.
is_enough() {
	as_nobody --inh-caps +bpf,+perfmon,+sys_nice \
		--ambient-caps +bpf,+perfmon,+sys_nice \
		"$(command -v smco-trace)" --mechanism=bits \
		-o nobody/y.trace -- echo hi >out 2>err
	[ "$(cat out)" = hi ] && grep -q '^mechanism *bits' err
}
if as_nobody test -x "$BUILD/smco-trace" &&
	as_nobody --inh-caps +bpf --ambient-caps +bpf true; then
	ok "without privilege: which capabilities are missing" explains
	ok "those capabilities are enough" is_enough
else
	echo "# nobody cannot run the build, or has no capabilities here"
fi

done_testing
