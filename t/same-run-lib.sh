# shellcheck shell=bash
# Sourced by who has wait_for, $BUILD and $FIXTURES (test-lib.sh): one run of a
# program, counted by perf stat and by smco-trace at once.

# both EVENTS CHILDREN - the counts of each in perf and us: "EVENT COUNT".
both() {
	local program perf us
	rm -f ctl ack
	mkfifo ctl ack
	"$FIXTURES/when-told" 200 "$2" &
	program=$!
	wait_for 5 grep -q '^State:[[:space:]]*T' "/proc/$program/status"
	perf stat -x, -o perf.csv -D -1 --control fifo:ctl,ack -e "$1" -p $program 2>perf.err &
	perf=$!
	exec 6<>ctl 7<>ack
	smco-trace -q -t unlimited -e "$1" -o c.trace -p $program 2>err &
	us=$!
	wait_for 5 traced $program $us
	echo enable >&6
	read -rn 3 -t 60 <&7 # "ack"
	kill -CONT $program
	wait $program && wait $perf && wait $us || return 1
	exec 6>&- 7>&-
	awk -F, '$1 ~ /^[0-9]+$/ { print $3, $1 }' perf.csv | sort >perf
	smco-report --json c.trace | perl -MJSON::PP -0777 -e '
		my $c = decode_json(<STDIN>)->{counters}[0];
		print "$c->{events}[$_]{name} $c->{counts}[$_]{count}\n" for 0 .. $#{$c->{events}}' |
		sort >us
}
# Who stands still is let run when it is counted, and not before.
traced() { # PROGRAM TRACER
	grep -q 'TracerPid:[[:space:]]*[1-9]' "/proc/$1/status" || ! kill -0 "$2"
}
