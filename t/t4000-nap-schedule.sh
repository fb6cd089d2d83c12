#!/bin/bash
# Naps with a known truth: found, none made up, lengths right.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

# schedule_run TARGET NAP_MS SECONDS [SMCO OPTIONS...]: truth and report
schedule_run() {
	local target=$1 nap=$2 seconds=$3
	shift 3
	smco-trace -q -t "$target" --nap "${nap}ms" -o run.trace "$@" -- \
		"$FIXTURES/nap-schedule" -n 200 -t "$nap" -m 300 -j 2 -i \
		-d $((seconds * 1000)) -s 7 >truth || return 1
	smco-report --json run.trace >report.json
}

judge() {
	perl "$SRC/t/nap-check.pl" "$@" truth report.json
}

nap_at_10() {
	schedule_run 10 600 10 && judge --threshold 600
}
ok "-t 10: every nap, no false one, lengths within 5 % or 20 ms" nap_at_10

nap_at_1() {
	schedule_run 1 600 15 && judge --threshold 600 --recall 0.95
}
ok "-t 1: 95 % of the naps, no false one" nap_at_1

nothing_at_0() {
	schedule_run 0 600 2 &&
		perl -MJSON::PP -e 'local $/; my $r = decode_json(<STDIN>);
			exit(@{$r->{naps}} ? 1 : 0)' <report.json
}
ok "-t 0: nothing is watched" nothing_at_0

done_testing
