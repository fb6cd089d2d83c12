#!/bin/bash
# Naps with a known truth: found, none made up, lengths right. How many are
# found within the budget depends on the machine (make bench measures it); what
# is asserted here holds on a busy one, too.
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

# Reads of pages never written leave no trace that could be reset: they are all
# the kernel's one page of zeroes. The report counts such blocks as not watched.
KINDS=read,write,syscall,never

judge() {
	perl "$SRC/t/nap-check.pl" --threshold 600 "$@" truth report.json \
		>judged
	local status=$?
	cat judged
	return $status
}

# Few were found, perhaps none at all; was any of them wrong?
none_wrong() {
	judge --recall 0 "$@" ||
		grep -q "^naps: 0 of .* 0 false, 0 of 0 lengths wrong, 0 split" \
			judged
}

# lucky RECALL TARGET SECONDS - beside others who want the CPU fewer are found:
# three times lucky, but nothing wrong in any of them.
lucky() {
	local recall=$1 right
	right=$(lengths_by_bits)
	for _ in 1 2 3; do
		schedule_run "$2" 600 "$3" || return 1
		judge --recall "$recall" --lengths "$right" --kinds "$KINDS" && return
		none_wrong --lengths "$right" --kinds "$KINDS" || return 1
	done
	return 1
}
at_10() { lucky 0.7 10 10 && cp run.trace ../local.trace; }
soon "-t 10: naps found, none made up, lengths within the stated error" at_10
# On a machine where everything takes ten times as long, 1 % may be too little
# to see anything.
soon "-t 1: fewer found, none made up" lucky 0.1 1 15
told

# Between m_gt, one eleventh at -t 10, and a quarter of the even share of what
# blocks there are; the controller answers.
local_target() {
	smco-report --json --overhead local.trace | perl -MJSON::PP -0777 -ne '
		my @m = grep { defined } map { $_->{local_target_ppb} } @{decode_json($_)->{rows}};
		my %values = map { $_ => 1 } @m;
		print "@m\n";
		exit !(keys %values > 1 && !grep { $_ < 1e9 / 11 / 1000 / 4 || $_ > 1e9 / 11 } @m)'
}
ok "the local target is told over time" local_target
none_told() {
	smco-trace -q -t unlimited --nap 100ms -o free.trace -- sleep 0.3 &&
		smco-report --json free.trace | perl -MJSON::PP -0777 -ne 'exit !!grep { defined $_->{local_target_ppb} } @{decode_json($_)->{ledger}}'
}
ok "none where there is no limit" none_told

# guards RECALL TARGET... - at one of these
guards() {
	local recall=$1 target
	shift
	for target; do
		schedule_run "$target" 600 10 --mechanism=mprotect || return 1
		judge --recall "$recall" --kinds "$KINDS" && return
		none_wrong --kinds "$KINDS" || return 1
	done
	return 1
}
soon "by mprotect guards alone: none made up" guards 0.4 100 100 200
# They stand for a part of the time then, which was never long enough once. Where
# a stop is dear it is not at 10 % (0 of 356 three times on a guest with shadow
# page tables), but it is at more; beside a load of seven there it was not at 50.
soon "by them at -t 10, or more" guards 0.1 10 20 50 100
told

writes_only() {
	for _ in 1 2 3; do
		schedule_run 10 600 10 --mechanism="$1" || return 1
		judge --recall "$2" --kinds write,never && return
		none_wrong --kinds write,never || return 1
	done
	return 1
}
soon "by page-scan: not written for, none made up" writes_only pagescan 0
soon "by userfaultfd: not written for, none made up" writes_only uffd 0.3

nothing_at_0() {
	schedule_run 0 600 2 &&
		perl -MJSON::PP -e 'local $/; my $r = decode_json(<STDIN>);
			exit(@{$r->{naps}} ? 1 : 0)' <report.json
}
soon "-t 0: nothing is watched" nothing_at_0
told

done_testing
