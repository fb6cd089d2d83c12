#!/bin/bash
# What hits are charged with of a variable that is alone in its loop: no less
# than a window alone costs, as it says itself that it has measured.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE

# The least that one hit cost at any time, picoseconds: what was measured at the
# start changes as jumps and values do.
least_ps() {
	perl -ne '
		if (/find_out: a hit costs (\d+) ps, a value (\d+),.* alone (\d+)/) {
			($alone, $first) = ($3, $1 + $2);
			$least = $alone;
		} elsif (/range_rate_measure: a hit costs (\d+) ps and (\d+) a value/) {
			my $now = int($alone * ($1 + $2) / $first);
			$least = $now if $now < $least;
		}
		END { print $least || die "no price" }' "$1"
}

charged() {
	SMCO_DEBUG=range smco-trace -q -m range --var one::a -t unlimited \
		-o run.trace -- ./hits >out 2>log || return 1
	local least
	least=$(least_ps log) || return 1
	smco-report --ranges --json run.trace >ranges.json &&
		smco-report --json run.trace >sum.json || return 1
	perl -MJSON::PP -e '
		my ($r, $s) = map { local (@ARGV, $/) = $_; decode_json(<>) }
			"ranges.json", "sum.json";
		my ($turns, $hits) = (100_000_000, $r->{rows}[0]{hits});
		my $agent = $s->{overhead}{by_mechanism_ns}{agent};
		print "# $hits hits, $turns turns at $ARGV[0] ps: $agent ns\n";
		exit !($hits >= $turns && $agent >= $turns * $ARGV[0] / 1000 * 0.99)' \
		"$least"
}
"${CC:-cc}" -g -O2 -o hits "$SRC/t/fixtures/range/hits.c"
ok "a variable alone in its loop costs what was measured of one" charged
done_testing
