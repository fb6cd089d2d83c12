#!/bin/bash
# make bench-abreast [WORKLOADS="bzip2 python"] [TARGETS="none 2 10"] [TURN=500]
#	[PAIRS=6] [OPTIONS="-m range"] [CPU=0] [WARM=4500] [RESULTS=file]
#
# What whole runs lose, each beside the same run unwatched: the two go on in turns
# of TURN ms, the other one standing meanwhile (SIGSTOP), both on CPU, smco-trace
# where it likes (t/bench/abreast.c). What the machine does for longer than a turn
# happens to both. A turn costs the watched one some stops, which the ledger has,
# too. Not much shorter ones: while all of it stands smco-trace hardly looks, and
# of turns of a tenth of a second it uses only a half to a third of what it may.
# The target "none" is two unwatched ones, which says what a difference means.
# Not for programs that write to files of their own, nor servers.
#
# Before each pair WARM MB are used and given back, half of what is free at most.
#
# Median of the pairs' ratios, least to most, by the time from exec to exit and by
# CPU time; the ledger. At last those pairs of which both had as many minor faults
# (within 5 % and 1000), how many they are and their time: python3 has 195 000 or
# 270 000 in the same run, by where its memory lies, which makes three points.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
# shellcheck source=t/bench/workloads.sh
. "$SRC/t/bench/workloads.sh"
: "${WORKLOADS:=bzip2 python}" "${TARGETS:=none 2 10}" "${TURN:=500}"
: "${PAIRS:=6}" "${OPTIONS:=}" "${CPU:=0}" "${WARM:=4500}"

supervisor=()
lap() { # the supervisor's words come first
	taskset -c "$CPU" "$BUILD/t/bench/abreast" lap "$TURN" ${#supervisor[@]} \
		"$@" >/dev/null 2>err
}

row() { # WORKLOAD TARGET
	perl -e '
	sub rows { open my $f, "<", $_[0] or return; return map { [split] } <$f> }
	sub cell {
		my @s = sort { $a <=> $b } @_;
		my $mid = @s % 2 ? $s[@s / 2] : ($s[@s / 2] + $s[@s / 2 - 1]) / 2;
		return sprintf "%.2f (%.2f to %.2f)", $mid, $s[0], $s[-1];
	}
	sub alike {
		my @same = grep { abs($_->[6] - $_->[5]) <= $_->[5] / 20 + 1000 } @_;
		return "none" if !@same;
		return sprintf "%d, %s", scalar @same,
			cell(map { 100 * ($_->[1] / $_->[0] - 1) } @same);
	}
	my ($workload, $target) = @ARGV;
	my @lap = rows("lap");
	my @spent = map { $_->[0] } rows("spent");
	printf "| %s | %s | %.2f | %s | %s | %s | %s |\n", $workload, $target,
		$lap[0][0], cell(map { 100 * ($_->[1] / $_->[0] - 1) } @lap),
		cell(map { 100 * ($_->[3] / $_->[2] - 1) } @lap),
		@spent ? cell(@spent) : "-", alike(@lap);' "$1" "$2"
}

{
	echo
	echo "## $(date -u +%Y-%m-%d), $(nproc) CPUs, Linux $(uname -r), load $(cut -d' ' -f1 /proc/loadavg): abreast of one that is not watched"
	echo
	echo "\`smco-trace -t TARGET $OPTIONS\`, $PAIRS pairs, turns of $TURN ms, on CPU $CPU."
	echo
	echo "| workload | target % | alone s | time % | CPU % | ledger % | pairs of equal faults, time % |"
	echo "| --- | --- | --- | --- | --- | --- | --- |"
} | tee -a "$RESULTS"
for workload in $WORKLOADS; do
	"prepare_$workload" || fail "$workload: cannot prepare"
	for target in $TARGETS; do
		: >lap
		: >spent
		supervisor=()
		# shellcheck disable=SC2206 # OPTIONS is a list of words
		[ "$target" = none ] || supervisor=("$BUILD/smco-trace" -q
			-t "$target" -o t.trace $OPTIONS --)
		for ((p = 0; p < PAIRS; p++)); do
			warm
			"run_$workload" "${supervisor[@]}" ||
				fail "$workload failed at $target"
			[ "$target" = none ] || "$BUILD/smco-report" --json \
				t.trace 2>>err | perl -MJSON::PP -0777 -e '
				printf "%.3f\n", decode_json(<STDIN>)->
					{overhead}{overhead_ppb} / 1e7' >>spent
		done
		row "$workload" "$target" | tee -a "$RESULTS"
	done
done
