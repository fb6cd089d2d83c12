#!/bin/bash
# Bad input gets one clear line and status 125, and nothing is started; help
# and version go to standard output.
. "$(dirname "$0")/test-lib.sh"

# bad MESSAGE ARGUMENTS... - the command, if any, would leave a mark.
bad() {
	local want=$1 status
	shift
	rm -f started
	smco-trace "$@" >out 2>err </dev/null
	status=$?
	cat err
	[ $status -eq 125 ] || { echo "status $status, want 125" && return 1; }
	[ ! -s out ] || { echo "wrote to standard output" && return 1; }
	[ ! -e started ] || { echo "the command was started" && return 1; }
	[ "$(head -n 1 err)" = "smco-trace: $want" ] ||
		{ echo "want: smco-trace: $want" && return 1; }
	# At most the line and a pointer to --help.
	[ "$(wc -l <err)" -le 2 ] || { echo "too many lines" && return 1; }
}
percentage='is not a percentage from 0 to 1000 or "unlimited"'
while IFS='|' read -r args message; do
	eval "set -- $args"
	ok "bad: $args" bad "$message" "$@"
done <<END
--nonsense touch started|unknown option --nonsense
-Z touch started|unknown option -Z
--quiet=yes touch started|--quiet takes no value
--co touch started|option --co is ambiguous
-t -5 touch started|--target: '-5' $percentage
-t abc touch started|--target: 'abc' $percentage
-t '' touch started|--target: '' $percentage
-t 1001 touch started|--target: '1001' $percentage
-t|-t needs an argument
-o t|nothing to watch: give a command, or a process with -p
|nothing to watch: give a command, or a process with -p
-p 1 touch started|either a command or -p, not both
-p abc|--pid: 'abc' is not a process id
-p 0|--pid: '0' is not a process id
-p ''|--pid: no process id given (was the process found?)
-d 0 touch started|--duration: must be more than 0
-d soon touch started|--duration: 'soon' is not a time (like 60, 1.5s, 2m, 500ms)
--nap 0 touch started|--nap: must be at least 10ms
--min-size 1 touch started|--min-size: must be at least 4K (whole pages are watched)
-e cs --interval 0 touch started|--interval: must be at least 1ms
-e '' touch started|--event: the list is empty
-e cycels touch started|unknown event 'cycels'; nearest: CYCLES
-m ranges touch started|--monitor: unknown 'ranges'; known: nap, counters, range, samples
--mechanism=magic touch started|--mechanism: unknown 'magic'; known: auto, bits, pagescan, uffd, mprotect
--controller=pid touch started|--controller: unknown 'pid'; known: cascade, adhoc, global
--color=red touch started|--color: unknown 'red'; known: auto, always, never
-o '' touch started|--output: the file name is empty
-o %x touch started|--output: '%x': % must be followed by p (pid), n (name) or %
--kill-on-exit -p 1|--kill-on-exit is for commands started by smco-trace, not for -p
END

no_such_pid() {
	local pid status
	sh -c 'echo $$' >pid
	pid=$(cat pid)
	smco-trace -o t -p "$pid" >out 2>err
	status=$?
	cat err
	[ $status -eq 125 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] &&
		grep -q "^smco-trace: .*\b$pid\b" err
}
ok "a pid that is gone: one line with the pid" no_such_pid

to_stdout() {
	smco-trace "$@" >out 2>err || return 1
	[ -s out ] && [ ! -s err ]
}
ok "--help" to_stdout --help
ok "--help names the options" grep -q -- '--target PERCENT' out
ok "-h" to_stdout -h
ok "--version" to_stdout --version
ok "--version is one line" test_exit 0 grep -qx 'smco-trace [0-9.]*' out
ok "-V" to_stdout -V
# A full disk is not a success.
ok "--help to a full device fails" test_exit 125 sh -c 'smco-trace --help >/dev/full 2>/dev/null'
ok "no trace was written by any of these" absent smco.trace

done_testing
