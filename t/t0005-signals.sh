#!/bin/bash
# Signals to smco-trace: the command's own handling decides.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

# in_group SIGNAL COMMAND... - start in a process group of its own, wait for
# its "ready" file, signal the whole group as a terminal does; the status.
in_group() {
	local signal=$1 pid status
	shift
	rm -f ready
	perl -e 'setpgrp; $SIG{INT} = $SIG{QUIT} = "DEFAULT"; exec @ARGV' \
		"$@" >out 2>err &
	pid=$!
	wait_for 20 test -e ready || { kill -9 -$pid && return 1; }
	kill "-$signal" -$pid
	wait $pid
	status=$?
	return $status
}
default='touch ready; while :; do sleep 0.05; done'
handler='trap "echo caught; exit 5" INT TERM; '$default

ok "SIGINT to the group, default action" \
	test_exit 130 in_group INT smco-trace -o t -- sh -c "$default"
ok "the summary is there" grep -q smco-report err
ok "SIGINT to the group, a handler" \
	test_exit 5 in_group INT smco-trace -o t -- sh -c "$handler"
ok "it ran" grep -qx caught out
ok "the summary is there" grep -q smco-report err
ok "and the trace is whole" test_exit 0 smco-report t
ok "SIGINT that the command ignores" test_exit 6 in_group INT \
	smco-trace -q -o t -- sh -c 'trap "" INT; touch ready; sleep 0.5; exit 6'

# own NR - a command that sends itself so many: each of them is a stop.
own() {
	# shellcheck disable=SC2016
	smco-trace --color=never -o t -- perl -e '
		$SIG{USR1} = sub { $n++ }; kill USR1 => $$ for 1 .. shift;
		exit($n != shift)' "$1" "$1" 2>err || return 1
	smco-report --json t | perl -MJSON::PP -0777 -e '
		print decode_json(<STDIN>)->{meta}{signal_stops}, "\n"' >nr
	cat nr && [ "$(cat nr)" = "$1" ]
}
ok "the command's own signals are counted" own 900
ok "and the summary says that they are what stops are for" \
	grep -q 'stops, 900 of them for signals' err
ok "of few of them, too" own 2
ok "and the summary does not speak of these" test_exit 1 grep -q signals err

# to_smco SIGNAL COMMAND... - to smco-trace only.
to_smco() {
	local signal=$1 pid
	shift
	rm -f ready
	smco-trace -o t -- "$@" >out 2>err &
	pid=$!
	wait_for 20 test -e ready || { kill -9 $pid && return 1; }
	kill "-$signal" $pid
	wait $pid
}
ok "SIGTERM to smco-trace is passed on" \
	test_exit 5 to_smco TERM sh -c "$handler"
ok "SIGTERM, default action" test_exit 143 to_smco TERM sh -c "$default"
ok "SIGHUP, default action" test_exit 129 to_smco HUP sh -c "$default"
ok "the trace is whole" test_exit 0 smco-report t

# kill -9 of smco-trace: the command does not notice, unless asked to.
survives() {
	local pid command status
	rm -f ready
	# shellcheck disable=SC2016
	smco-trace -q -o t "$@" -- sh -c \
		'echo $$ >pid; touch ready; sleep 0.3; while [ ! -e stop ]; do
		sleep 0.02; done; touch survived' &
	pid=$!
	wait_for 20 test -e ready || return 1
	command=$(cat pid)
	kill -9 $pid
	wait $pid
	sleep 0.5
	touch stop
	wait_for 5 test ! -d "/proc/$command"
	[ -e survived ]
	status=$?
	rm -f survived stop
	return $status
}
ok "the command survives kill -9 of smco-trace" survives
ok "but not with --kill-on-exit" test_exit 1 survives --kill-on-exit

# Job control: stop and continue reach the command, and it is in that state.
state() { sed 's/.*) \(.\).*/\1/' "/proc/$1/stat"; }
# shellcheck disable=SC2016
smco-trace -q -o t -- sh -c 'echo $$ >pid; touch ready2
	while [ ! -e stop ]; do sleep 0.02; done; exit 3' &
smco=$!
wait_for 20 test -e ready2
command=$(cat pid)
is_stopped() { [ "$(state "$1")" = T ] || [ "$(state "$1")" = t ]; }
is_not_stopped() { ! is_stopped "$1"; }
kill -STOP "$command"
ok "SIGSTOP stops the command" wait_for 5 is_stopped "$command"
sleep 0.3
ok "and it stays stopped" is_stopped "$command"
kill -CONT "$command"
ok "SIGCONT continues it" wait_for 5 is_not_stopped "$command"
touch stop
wait $smco
ok "its status after all that" test $? = 3

# One of SIGCHLD before there is a handler, one after: what is ignored is asked
# at each stop anew.
late_handler() {
	# shellcheck disable=SC2016
	smco-trace "$@" -q -o t -- perl -e '
		sub child { $p = fork // die; exit if !$p; waitpid $p, 0 }
		child();
		$SIG{CHLD} = $SIG{WINCH} = $SIG{URG} = sub { $n{$_[0]}++ };
		child();
		kill $_ => $$ for qw(WINCH URG);
		print join(" ", map { "$_ $n{$_}" } sort keys %n), "\n"' >out
}
for monitor in nap counters; do
	ok "a handler that is made after the first signal ($monitor)" \
		test_exit 0 late_handler -m $monitor
	ok "has each" grep -qx 'CHLD 1 URG 1 WINCH 1' out
done

done_testing
