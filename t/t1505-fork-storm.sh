#!/bin/bash
# A program that makes one short-lived child after the other is attached to, over
# and over: a child that it makes meanwhile, before any sensor is planted, goes on
# as the others do. Those for which the budget has no room are not watched, have
# nothing of ours but sensors that pass all on, and are told of. SMCO_TEST_ATTACHES=200
# for more.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"
need PTRACE

# begin_storm ARGUMENTS... - its pid is in $pid, a line for each ten children in out.
begin_storm() {
	rm -f out
	"$FIXTURES/fork-storm" "$@" >out 2>err &
	pid=$!
	wait_for 10 test -s out
}
end_storm() { kill -TERM "$pid" && wait "$pid"; }
# meanwhile LINES COMMAND... - the command, which traces it, is left when so many
# lines have been written meanwhile.
meanwhile() {
	local tracer status
	timeout -k 2 60 "${@:2}" -p "$pid" &
	tracer=$!
	wait_for 10 is_traced && wait_for 10 has_lines $(($(wc -l <out) + $1))
	status=$?
	kill -TERM $tracer
	test_exit 0 wait $tracer && return $status
}
is_traced() { grep -q '^TracerPid:.*[1-9]' "/proc/$pid/status"; }
has_lines() { [ "$(wc -l <out)" -ge "$1" ]; }

# storm LINES OPTIONS... - to and fro.
storm() {
	local i lines=$1
	shift
	begin_storm stay || return
	for ((i = 0; i < ${SMCO_TEST_ATTACHES:-10}; i++)); do
		meanwhile "$lines" smco-trace -q "$@" -o storm.trace || { echo "attach $i"; return 1; }
		untouched "$pid" || return
	done
	end_storm
}

# A thousandth pays for no start in a moment.
most_wait() {
	storm 10 -t 0.1 || return
	smco-report --json storm.trace | perl -MJSON::PP -0777 -ne '
		my $d = decode_json($_);
		my ($late, $all) = ($d->{meta}{unwatched_processes} // 0,
			scalar @{$d->{processes}});
		print "$late of $all processes\n";
		exit !($all >= 10 && $late > $all / 2)'
}

# frugal MOST [exec] - of those that wait no more files are opened than MOST, but
# of some that live when it is looked what processes are called.
frugal() {
	local most=$1
	shift
	"${CC:-cc}" -O1 -shared -fPIC -o opens.so "$SRC/t/fixtures/preload/opens.c" ||
		return
	rm -f opens
	begin_storm "$@" || return
	meanwhile 10 env LD_PRELOAD="$PWD/opens.so" "$BUILD/smco-trace" -q -t 0.1 \
		-o read.trace || return
	end_storm || return
	smco-report --json read.trace | MOST=$most perl -MJSON::PP -0777 -ne '
		my %all = map { $_->{pid} => 0 } @{decode_json($_)->{processes}};
		open(my $f, "<", "opens") or die;
		$all{$_}++ for <$f> =~ m{^/proc/(?:self/fd/\d+/)?(\d+)/}mg;
		my $nr = grep { $_ > $ENV{MOST} } values %all;
		print "$nr of ", scalar %all, " processes read\n";
		exit !(%all >= 10 && $nr >= 1 && $nr < %all / 2)'
}

# What a parent's threads used within a moment, of which the status of its end
# tells only together with its children's: in the account, beside its stops.
parent_is_counted() {
	local used i
	for i in 1 2 3; do
		smco-trace -q -m counters -e page-faults -o used.trace -- "$FIXTURES/used-before-fork" >used || return
		used=$(cat used)
		smco-report --overhead --csv used.trace | tail -n 1 |
			awk -F, -v used="$used" '{ own = ($6 - $8) / 1000; print "used", used, "us, in the account", own; exit own < used * 0.8 }' || return
	done
}

ok "naps" storm 3 -t 10
ok "for most children there is no room" most_wait
ok "of those nothing is read" frugal 0
ok "of what they exec only its name" frugal 1 exec
ok "without a limit" storm 3 -t unlimited
ok "with protected pages" storm 3 -t 10 --mechanism=mprotect
ok "with ranges, phases and counters" \
	storm 3 -t 10 -m nap,range,counters --phase work
ok "what a parent of children used is counted, as theirs is" parent_is_counted
done_testing
