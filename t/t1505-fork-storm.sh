#!/bin/bash
# A program that makes one short-lived child after the other is attached to, over
# and over: a child that it makes meanwhile, before any sensor is planted, goes on
# as the others do. Those for which the budget has no room are not watched, have
# nothing of ours but sensors that pass all on, and are told of. SMCO_TEST_ATTACHES=200
# for more.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"
need PTRACE

# storm OPTIONS... - to and fro; each time children come and go meanwhile.
storm() {
	local i before
	rm -f out
	"$FIXTURES/fork-storm" stay >out 2>err &
	pid=$!
	wait_for 10 test -s out || return
	for ((i = 0; i < ${SMCO_TEST_ATTACHES:-10}; i++)); do
		before=$(wc -l <out)
		timeout -k 2 60 smco-trace -q -d 0.5 "$@" -o storm.trace \
			-p "$pid" || { echo "attach $i: $?"; return 1; }
		[ "$(wc -l <out)" -gt "$before" ] ||
			{ echo "attach $i: no ten children in all its time"; return 1; }
		untouched "$pid" || return
	done
	kill -TERM "$pid" && wait "$pid"
}

# A thousandth pays for no start in half a second.
most_wait() {
	storm -t 0.1 || return
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
	rm -f out opens
	"$FIXTURES/fork-storm" "$@" >out 2>err &
	pid=$!
	wait_for 10 test -s out || return
	LD_PRELOAD=$PWD/opens.so timeout -k 2 60 "$BUILD/smco-trace" -q -d 0.5 \
		-t 0.1 -o read.trace -p "$pid" || return
	kill -TERM "$pid" && wait "$pid" || return
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

ok "naps" storm -t 10
ok "for most children there is no room" most_wait
ok "of those nothing is read" frugal 0
ok "of what they exec only its name" frugal 1 exec
ok "without a limit" storm -t unlimited
ok "with protected pages" storm -t 10 --mechanism=mprotect
ok "with ranges, phases and counters" \
	storm -t 10 -m nap,range,counters --phase work
ok "what a parent of children used is counted, as theirs is" parent_is_counted
done_testing
