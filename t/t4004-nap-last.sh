#!/bin/bash
# What is quiet for long enough only when the program ends, between two ticks, is
# found all the same: its end waits for a look. Here smco-trace stands (SIGSTOP)
# from before the nap is complete until the program wants to end.
. "$(dirname "$0")/test-lib.sh"
need PTRACE ROOT

program='use POSIX; my $kept = "x" x 5e6; sleep 5; POSIX::_exit(7)'

ends() { # PID - it wants to, and stands for that
	grep -q '^State:.*t (tracing stop)' "/proc/$1/status"
}
begun() { # PID-OF-SMCO-TRACE - sets child
	child=$(pgrep -P "$1" perl)
}

found() {
	local child status=0
	SMCO_DEBUG=nap smco-trace -q -t 10 --nap 3s -o last.trace -- \
		perl -e "$program" 2>log &
	local smco=$!
	wait_for 30 begun $smco || return 1
	sleep 2
	kill -STOP $smco
	wait_for 60 ends "$child" || status=1
	kill -CONT $smco
	wait $smco
	[ $? -eq 7 ] && [ $status -eq 0 ] || return 1
	# A tick may have come first, as it stood.
	grep 'at its end' log || return
	smco-report --json last.trace >last.json &&
		perl -MJSON::PP -0777 -ne '
		my @n = grep { $_->{size} > 4e6 } @{ decode_json($_)->{naps} };
		print "$_->{length_ns} ns, $_->{ended}\n" for @n;
		exit !(@n && $n[0]{length_ns} > 3e9);' last.json
}
ok "a nap that is complete only when the program ends" found

done_testing
