#!/bin/bash
# A program that has put itself into a sandbox may be killed for a call that it
# never makes itself. So none is made in it, neither while it is watched nor to
# take out what was planted before, and the report says what that cost.
. "$(dirname "$0")/test-lib.sh"
need PTRACE
prereq_SECCOMP() { timeout 20 "$FIXTURES/strict_sandbox" 0 | grep EXIT-SUCCESS; }
need SECCOMP

attached() {
	rm -f end
	"$FIXTURES/strict_sandbox" 100 end >out &
	local pid=$! status
	wait_for 10 grep -q ready out || return
	test_exit 0 smco-trace -q -t 50 -d 2 -o a.trace "$@" -p $pid
	status=$?
	touch end
	wait $pid && grep EXIT-SUCCESS out && [ $status -eq 0 ]
}
left() {
	rm -f end
	test_exit 0 smco-trace -q -t 50 -d 2 -o l.trace "$@" -- \
		"$FIXTURES/strict_sandbox" 100 end >out || return
	touch end
	wait_for 20 grep EXIT-SUCCESS out && grep -q ready out
}
watched_to_its_end() {
	test_exit 0 smco-trace -q -t 50 -o w.trace "$@" -- \
		"$FIXTURES/strict_sandbox" 2 >out && grep EXIT-SUCCESS out
}
ok "attached to" attached
said() {
	smco-report a.trace >report
	cat report
	tr -s '\n ' ' ' <report | grep -q "has a seccomp filter of its own"
}
ok "what could not be done is said" said
for how in --mechanism=mprotect --mechanism=uffd "-m range" "--phase work" \
	"-m counters,nap,range --sample 99"; do
	# shellcheck disable=SC2086
	soon "attached to, $how" attached $how
done
told
for how in "" --mechanism=mprotect --mechanism=uffd "-m range" "--phase work"; do
	# shellcheck disable=SC2086
	soon "sensors planted before, left ($how)" left $how
done
told
soon "watched to its end" watched_to_its_end

# Who only finds out which filters there are has none, and its stacks are whole.
asked() {
	test_exit 0 smco-trace -q -t 50 --nap 200ms -o q.trace -- \
		"$FIXTURES/asks_for_filters" 1500 >out &&
		grep EXIT-SUCCESS out || return
	smco-report q.trace >report
	cat report
	grep -q "for_one  " report && grep -q "for_another  " report
}
soon "one that asks for filters and sets none has its stacks" asked
told

# Each stop would have the whole time pass anew: 5.4 s. Beside others, who is
# attached to may have waited for longer than can be told: so not in each run.
waits_once() {
	"$FIXTURES/sandbox_wait" >out &
	local pid=$! status
	wait_for 10 grep -q ready out || return
	for _ in 1 2 3 4 5; do
		sleep 0.3
		smco-trace -q -t 50 -d 100ms -o s.trace -p "$pid,$(pgrep -d , -P "$pid")"
	done
	wait $pid
	status=$?
	cat out
	[ $status -eq 0 ] && grep -q EXIT-SUCCESS out
}
waits_no_longer() {
	for _ in 1 2 3 4 5; do
		waits_once || return 1
		# Never shorter.
		! grep -q ': [12]\?[0-9]\{1,3\} ms$' out || return 1
		[ "$(grep -c ': 3[0-9][0-9][0-9] ms$' out)" -eq 4 ] && return
	done
	return 1
}
ok "waits in it last as long as they would" waits_no_longer

# A thread may have its calls sent to itself, by where they are made
# (PR_SET_SYSCALL_USER_DISPATCH, as Wine does): none of ours arrives.
if timeout 20 "$FIXTURES/diverts_calls" 1 | grep -q EXIT-SUCCESS; then
	diverts() {
		test_exit 0 smco-trace -q -t 50 -o d.trace "$@" -- \
			"$FIXTURES/diverts_calls" 1500 >out
		cat out
		grep -q EXIT-SUCCESS out
	}
	for how in "" "-t unlimited -m range,nap --nap 200ms" "--phase work" \
		"--mechanism=mprotect --nap 200ms" --mechanism=uffd; do
		# shellcheck disable=SC2086
		soon "calls that are sent to itself ($how)" diverts $how
	done
	told
	diverts_attached() {
		rm -f end
		"$FIXTURES/diverts_calls" 100000 end >out &
		local pid=$! status
		wait_for 10 grep -q ready out || return
		test_exit 0 smco-trace -q -t 50 -d 1 -o d.trace -p $pid
		status=$?
		touch end
		wait $pid && grep EXIT-SUCCESS out && [ $status -eq 0 ] || return
		smco-report d.trace >report
		cat report
		tr -s '\n ' ' ' <report | grep -q "system calls sent to themselves"
	}
	ok "attached to, which is said" diverts_attached
else
	echo "# PR_SET_SYSCALL_USER_DISPATCH: not here"
fi

# In strict mode, and by PR_SET_TSC, reading the time stamp counter is a fault.
without_clock() {
	local how
	for how in "" "-t unlimited --nap 50ms" --mechanism=mprotect "-m nap,range"; do
		# shellcheck disable=SC2086
		test_exit 9 smco-trace -q -t 50 -o n.trace $how -- "$@" >out || return
		cat out
		grep -q EXIT-SUCCESS out || return
	done
}
soon "in strict mode" without_clock "$FIXTURES/no_clock" strict
soon "without the time stamp counter" without_clock "$FIXTURES/no_clock"
attached_without() {
	"$FIXTURES/no_clock" slow >out &
	local pid=$!
	wait_for 10 grep -q ready out || return
	test_exit 0 smco-trace -q -t 50 -d 1 -o n.trace -p $pid &&
		smco-report n.trace >report && cat report &&
		grep "sensors in glibc malloc" report || return
	test_exit 9 wait $pid && grep -q EXIT-SUCCESS out
}
soon "attached to without it" attached_without
told

done_testing
