#!/bin/bash
# make bench-naps [TARGETS="1 10"] [REPS=3] [OPTIONS=--mechanism=uffd]
#
# How many of a program's known naps are found within a target, and how exactly:
# nap-schedule with 1000 blocks of 8 KiB to 64 MiB in four threads, naps of at
# least a second. "computing" has one more thread that never rests, so that the
# budget is a share of one CPU; "waiting" has not, and a budget ten to thirty
# times smaller. Appends the table to t/bench/RESULTS.md.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
: "${TARGETS:=1 10}" "${REPS:=3}" "${OPTIONS:=}" "${SECONDS_EACH:=20}"

run() { # TARGET SEED FIXTURE-OPTION
	# shellcheck disable=SC2086 # lists of words
	"$BUILD/smco-trace" -q -t "$1" -o run.trace $OPTIONS -- \
		"$BUILD/t/fixtures/nap-schedule" -n 1000 -t 1000 -m 1024 -j 4 \
		-d $((SECONDS_EACH * 1000)) -s "$2" $3 >truth </dev/null || return
	"$BUILD/smco-report" --json run.trace >report.json || return
	# Its status judges; here the sums are wanted.
	perl "$SRC/t/nap-check.pl" --threshold 1000 --strict --recall 0 \
		--kinds read,write,syscall,never truth report.json |
		tail -n 1 >>sums
	perl -MJSON::PP -e 'local $/; my $d = decode_json(<STDIN>);
		printf "%.2f\n", $d->{overhead}{overhead_ppb} / 1e7' \
		<report.json >>ledger
}

row() { # KIND TARGET
	perl -e '
	my ($kind, $target) = @ARGV;
	my ($found, $due, $false, $off, $judged, $split) = (0) x 6;
	open my $f, "<", "sums" or die;
	while (<$f>) {
		my @n = /(\d+) of (\d+) found \([\d.]+ %\), (\d+) false, (\d+) of (\d+) lengths wrong, (\d+) split/
			or die "not a sum: $_";
		$found += $n[0]; $due += $n[1]; $false += $n[2];
		$off += $n[3]; $judged += $n[4]; $split += $n[5];
	}
	open $f, "<", "ledger" or die;
	my @l = sort { $a <=> $b } <$f>;
	chomp @l;
	printf "| %s | %s | %d | %d | %.2f | %d | %d | %.2f | %d | %s to %s |\n",
		$kind, $target, $due, $found, $due ? 100 * $found / $due : 0,
		$false, $off, $judged ? 100 * $off / $judged : 0, $split,
		$l[0], $l[-1];' "$@"
}

{
	echo
	echo "## $(date -u +%Y-%m-%d), $(nproc) CPUs, Linux $(uname -r): known naps"
	echo
	echo "\`smco-trace -t TARGET $OPTIONS\`, $REPS runs of $SECONDS_EACH s each."
	echo "Off: the length differs by more than 5 % and 20 ms."
	echo
	echo "| program | target % | naps | found | % | false | off | off % | split | ledger % |"
	echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
} | tee -a "$RESULTS"
for target in $TARGETS; do
	for kind in computing waiting; do
		rm -f sums ledger
		idle=
		[ $kind = computing ] || idle=-i
		for ((seed = 1; seed <= REPS; seed++)); do
			run "$target" "$seed" "$idle" || exit 1
		done
		row "$kind" "$target" | tee -a "$RESULTS"
	done
done
